//! Stopping: the end of the core loops, and what happens when nobody waits for the end.

use crate::arch::atomic::{AtomicU32, Ordering};
use crate::arch::{CoreId, barrier, cpu};
use crate::sched::cores::{self, Core, calls, population};
use crate::sched::place::wake;
use crate::sync::PreemptGuard;
use spin::Once;

static RUNNING: AtomicU32 = AtomicU32::new(0);
static AT_END: Once<fn() -> !> = Once::new();

/// Stops the schedulers: every core leaves its loop after the turn it is in. Processes that have not ended never run again,
/// and nothing of theirs is dropped. An application whose main function returns need not call this.
///
/// ```
/// # use magpie::sched;
/// # let stopped = sched::run_on_threads(2, 1, async {
/// let patrol = sched::spawn(async { loop { sched::yield_now().await } });
/// sched::stop();
/// # sched::yield_now().await;
/// # core::future::pending::<()>().await;
/// # drop(patrol);
/// # });
/// # assert_eq!(stopped, Err(sched::HostError::Stopped));
/// ```
pub fn request() {
    // Once the flag is set, this core takes nothing from its queues any more. If the caller were suspended between two
    // wake-ups, the remaining cores would stay asleep.
    let _here = PreemptGuard::new();
    calls::raise(calls::STOP);
    // Pairs with the barrier in `idle::announce`: a core that announces later sees the request.
    barrier::full();
    for core in cores::all() {
        wake::wake(core);
    }
}

/// Whether the scheduler is stopping.
pub(crate) fn is_requested() -> bool {
    calls::all() & calls::STOP != 0
}

#[cfg(not(target_os = "none"))]
/// The scheduler may be started again (the host back end's tests do).
pub(crate) fn reset() {
    calls::CALLS.lower(calls::STOP);
}

/// Says what core 0 does when it has left its loop.
pub(crate) fn at_end(exit: fn() -> !) {
    AT_END.call_once(|| exit);
}

pub(crate) fn core_started() {
    // AcqRel: pairs with the count down.
    RUNNING.fetch_add(1, Ordering::AcqRel);
}

/// A core has left its loop, on the machine. Core 0 waits for the others and then ends the image.
pub(crate) fn core_stopped() -> ! {
    // AcqRel: core 0 sees all that the others did.
    RUNNING.fetch_sub(1, Ordering::AcqRel);
    let here = PreemptGuard::new();
    let is_boot_core = Core::current(&here).is_some_and(|core| core.id() == CoreId::BOOT);
    if is_boot_core {
        while RUNNING.load(Ordering::Acquire) != 0 {
            cpu::relax();
        }
        if let Some(exit) = AT_END.get() {
            exit();
        }
    }
    loop {
        cpu::wait_for_interrupt();
    }
}

/// The system has run out of work, and nobody awaited that: what is left waits for something that cannot
/// come any more.
pub(crate) fn out_of_work_unawaited() {
    if population::live_processes() > 0 && !is_requested() {
        (DEADLOCK.get().unwrap_or(&(ignore as fn())))();
    }
}

fn ignore() {}

static DEADLOCK: Once<fn()> = Once::new();

/// Says what to do when every process waits for another: nothing is runnable, no timer is pending, no
/// external source exists, and nobody awaits [`crate::sched::run::out_of_work()`]. Called with preemption disabled.
pub fn on_deadlock(handler: fn()) {
    DEADLOCK.call_once(|| handler);
}
