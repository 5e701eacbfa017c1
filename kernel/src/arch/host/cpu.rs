//! Waiting and hints. Doze and sleep both park the thread that stands in for the core.

use super::{ipi, percpu};

/// Waits for an event, a wake-up or a short while: a doze is always bounded.
pub fn wait_for_event() {
    relax();
}

/// Ends every other core's doze.
pub fn send_event() {}

/// Waits until the core is woken by [`ipi::send`] or its timer's deadline passes.
///
/// A wake-up sent before the call ends it at once, as a pending interrupt ends WFI.
pub fn wait_for_interrupt() {
    ipi::park(percpu::host_core());
}

/// Says that this is a spin loop.
pub fn relax() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
    #[cfg(not(any(loom, shuttle)))]
    std::thread::yield_now();
}
