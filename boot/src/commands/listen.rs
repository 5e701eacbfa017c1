//! Listening to the serial line: an interrupt says that something has arrived, and a process takes it.
//!
//! The interrupt masks itself and wakes the process; the process empties the port's queue and unmasks. The line is a
//! level: what arrives between the last look and the unmasking raises the interrupt at once, so nothing is missed.

use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::task::{Poll, Waker};

use magpie::arch::CoreId;
use magpie::internals::arch::gic;
use magpie::log::text;
use magpie::machine;
use magpie::sched::{LoadMonitor, Priority, Spawn};
use spin::Once;

use super::carry_out::answer;
use super::line::Line;
use crate::pl011::CONSOLE;

/// The port's interrupt, once somebody listens.
static INTERRUPT: AtomicU32 = AtomicU32::new(u32::MAX);
/// Something has arrived that the process has not looked at.
static ARRIVED: AtomicBool = AtomicBool::new(false);
static LISTENER: Once<Waker> = Once::new();

/// With the boot argument `commands`, listens on the console's port. `interrupt` is the port's.
pub(crate) fn begin(interrupt: Option<u32>) {
    if machine::argument("commands").is_none() {
        return;
    }
    let Some(interrupt) = interrupt else {
        text!(
            "boot argument commands ignored: the device tree does not say what interrupt the serial port has"
        );
        return;
    };
    // Urgent, because otherwise a loaded system would not answer; on the core that takes the interrupt.
    let listener = Spawn::new().priority(Priority::High).pinned(CoreId::BOOT).start(listen(interrupt));
    if let Err(error) = listener {
        text!("boot argument commands ignored: {error}");
    }
}

/// A device's interrupt: the port's, if anybody listens.
pub(crate) fn on_interrupt(number: u32) {
    // Relaxed: stored before the interrupt is let through.
    if number != INTERRUPT.load(Ordering::Relaxed) {
        return;
    }
    CONSOLE.mask_receive();
    // Release: pairs with the acquire in `arrival`; the wake-up orders it as well.
    ARRIVED.store(true, Ordering::Release);
    if let Some(listener) = LISTENER.get() {
        listener.wake_by_ref();
    }
}

/// Waits until the interrupt says that something has arrived.
async fn arrival() {
    poll_fn(|context| {
        // A process keeps the same waker as long as it lives, and only one process awaits this.
        LISTENER.call_once(|| context.waker().clone());
        // Acquire: pairs with the release in `on_interrupt`. An interrupt after this look wakes the process again.
        if ARRIVED.swap(false, Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

async fn listen(interrupt: u32) {
    let mut line = Line::new();
    let mut monitor = LoadMonitor::new().ok();
    INTERRUPT.store(interrupt, Ordering::Relaxed);
    CONSOLE.prepare_receive();
    gic::enable_device(interrupt);
    text!("commands are taken on this line: help lists them");
    loop {
        while let Some(byte) = CONSOLE.receive() {
            if let Some(completed) = line.push(byte) {
                answer(completed, &mut monitor);
            }
        }
        CONSOLE.unmask_receive();
        arrival().await;
    }
}
