//! Waiting, and which core this is.

use aarch64_cpu::asm;
use aarch64_cpu::registers::{CNTKCTL_EL1, MPIDR_EL1, Readable, Writeable};

/// The affinity fields of `MPIDR_EL1`, which name a core to the firmware and the interrupt controller.
const AFFINITY: u64 = 0xff_00ff_ffff;

/// Waits for an event: SEV from another core, an interrupt, or the event stream, so never for long.
#[inline(always)]
pub fn wait_for_event() {
    asm::wfe();
}

/// Ends every other core's doze.
#[inline(always)]
pub fn send_event() {
    // The work was made visible before, by the caller's full barrier.
    asm::sev();
}

/// Waits for an interrupt. One that is pending, masked or not, ends it at once.
#[inline(always)]
pub fn wait_for_interrupt() {
    aarch64_cpu::asm::barrier::dsb(aarch64_cpu::asm::barrier::SY);
    asm::wfi();
}

/// A hint that this is a spin loop: another core has to go on first.
#[inline(always)]
pub fn relax() {
    // SAFETY: a hint. An emulator that runs the cores in turns goes on with the next one; without it a core that waits for
    // a lock would spin until the end of its turn.
    unsafe { core::arch::asm!("yield", options(nomem, nostack, preserves_flags)) };
    // A barrier that empties the pipeline, which makes a short pause.
    core::hint::spin_loop();
}

/// This core's affinity value.
pub fn affinity() -> u64 {
    MPIDR_EL1.get() & AFFINITY
}

/// Lets the counter send an event every 2^(bit+1) ticks, so that a doze is bounded: bit 9 at 54 to
/// 62.5 MHz is every 16 to 19 microseconds.
pub fn start_event_stream() {
    const TRIGGER_BIT: u64 = 9 << 4;
    const ENABLE: u64 = 1 << 2;
    CNTKCTL_EL1.set(ENABLE | TRIGGER_BIT);
}
