//! Each core's one-shot timer: the virtual timer.

use super::{clock, cpu, irq};
use aarch64_cpu::asm::barrier::{SY, isb};
use aarch64_cpu::registers::{CNTV_CTL_EL0, CNTV_CVAL_EL0, CNTVCT_EL0, ReadWriteable, Readable, Writeable};

/// Whether a deadline interrupts what the core runs.
pub const INTERRUPTS: bool = true;

/// What the counter shows at that time.
#[inline(always)]
fn counter_at(time: u64) -> u64 {
    time.saturating_sub(clock::ZERO)
}

/// Arms this core's timer for `deadline` in clock ticks; one in the past fires at once.
#[inline(always)]
pub fn arm(deadline: u64) {
    CNTV_CVAL_EL0.set(counter_at(deadline));
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::SET + CNTV_CTL_EL0::IMASK::CLEAR);
}

/// Disarms this core's timer.
#[inline(always)]
pub fn disarm() {
    CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::CLEAR);
}

/// Arms this core's timer for `deadline`, unless it is armed for an earlier moment.
pub fn arm_if_earlier(deadline: u64) {
    if !CNTV_CTL_EL0.is_set(CNTV_CTL_EL0::ENABLE) || CNTV_CVAL_EL0.get() > counter_at(deadline) {
        arm(deadline);
    }
}

/// Keeps this core's timer from interrupting, and from ending a wait for an interrupt, until [`unmask`]; it stays armed.
#[inline(always)]
pub fn mask() {
    CNTV_CTL_EL0.modify(CNTV_CTL_EL0::IMASK::SET);
}

/// Ends what [`mask`] began: a deadline that has passed meanwhile interrupts now.
#[inline(always)]
pub fn unmask() {
    CNTV_CTL_EL0.modify(CNTV_CTL_EL0::IMASK::CLEAR);
}

/// Sleeps until an interrupt is pending, for so many clock ticks at most. The timer stays armed as it was.
///
/// Where interrupts are masked it returns at once: what would wake it might be the interrupt that is being handled, of which the controller
/// tells a second time only when that has ended. Who has [masked](mask) the timer has masked them.
pub fn sleep_at_most(ticks: u64) {
    if irq::mask() {
        return;
    }
    let (control, deadline, end) = (CNTV_CTL_EL0.extract(), CNTV_CVAL_EL0.get(), CNTVCT_EL0.get() + ticks);
    if !control.is_set(CNTV_CTL_EL0::ENABLE) || deadline > end {
        CNTV_CVAL_EL0.set(end);
        CNTV_CTL_EL0.write(CNTV_CTL_EL0::ENABLE::SET);
    }
    cpu::wait_for_interrupt();
    CNTV_CVAL_EL0.set(deadline);
    CNTV_CTL_EL0.set(control.get());
    // So that the timer interrupts no more for the moment that was armed here. One that comes all the same finds nothing new.
    isb(SY);
    // SAFETY: they were unmasked, and nothing here relies on the mask any more.
    unsafe { irq::enable() };
}

/// Disarms this core's timer if its deadline has passed, and returns whether it had. With interrupts masked, in the place of its
/// interrupt; one that comes all the same finds nothing new.
#[inline(always)]
pub fn take_due() -> bool {
    // Read twice, because who waits for a device finds the one bit clear, and one bit is one branch.
    let due = CNTV_CTL_EL0.is_set(CNTV_CTL_EL0::ISTATUS) && CNTV_CTL_EL0.is_set(CNTV_CTL_EL0::ENABLE);
    if due {
        disarm();
    }
    due
}

/// Whether the deadline has passed without a notification: never, because the interrupt notifies.
#[inline(always)]
pub fn poll() -> bool {
    false
}
