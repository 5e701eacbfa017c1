//! Starting the scheduler on every core.
//!
//! On the machine, boot calls [`prepare`] on the first core, then [`enter`] on each core, the first one
//! last. On the host, `run_on_threads` does all of it.

use crate::arch::handlers::{self, Fault, Handlers, Verdict};
use crate::arch::switch::Frame;
use crate::arch::{CoreId, append, percpu};
use crate::mem::stack::StackBlock;
use crate::sched::cores::{self, Core, ThisCore, longest};
use crate::sched::place::waker;
#[cfg(target_os = "none")]
use crate::sched::run::kernel_panic;
use crate::sched::run::{core_loop, out_of_work, preempt, reserve, slice, stop};
use crate::sched::spawn::foreign;
use crate::stats::Activity;
use crate::sync::{Keeper, PaidBy, register_keeper};
use spin::Once;

/// Makes the blocks of `cores` cores and registers the interrupt handlers. Returns how many cores there
/// is memory for; the others must not be started.
///
/// # Safety
/// No core has entered the scheduler; on the host, none of an earlier start is still in it. `fault` and `exit` are what
/// boot does about a fault and at the end. They do not rely on what was running.
pub unsafe fn prepare(
    cores: usize,
    seed: u64,
    device: fn(u32),
    fault: unsafe fn(&Fault, *mut Frame) -> Verdict,
    exit: fn() -> !,
) -> usize {
    cores::set_seed(seed);
    // SAFETY: by contract no core has entered the scheduler, without which no interrupt is unmasked.
    unsafe { append::sort() };
    register_keeper(Keeper {
        keep: foreign::keep,
        is_for: foreign::is_for,
        is_of_crashed: waker::is_of_crashed,
        is_of_urgent: waker::is_of_urgent,
    });
    stop::at_end(exit);
    DEVICE.call_once(|| device);
    handlers::register(Handlers {
        timer: slice::on_timer,
        #[cfg(target_os = "none")]
        stop: kernel_panic::on_stop,
        device: on_device,
        interrupt_exit: preempt::consider,
        preempt_trap: preempt::end_section,
        fault,
    });
    cores::install(cores)
}

/// What boot does about a device's interrupt.
static DEVICE: Once<fn(u32)> = Once::new();

/// What boot does about a device's interrupt. For handlers.
#[inline(always)]
fn device_handler() -> fn(u32) {
    // SAFETY: `prepare` has set it, before it registers any handler, and before there is a core.
    unsafe { *DEVICE.get_unchecked() }
}

/// A device's interrupt. Whom it wakes is delivered as from another core: the code that was interrupted may be in the
/// middle of this core's queues. Unless that is a turn: then somebody urgent is chosen for the next one, which is a place of its own.
fn on_device(number: u32) {
    slice::in_handler(
        || longest::DEVICE,
        |core, _| {
            core.in_interrupt.set(true);
            let block = StackBlock::current();
            // A turn that has run out of stack is left by a way of its own.
            core.has_met_turn.set(!block.process().is_null() && !block.is_in_reserve());
            // Not who was interrupted.
            let _nobody = PaidBy::nobody();
            device_handler()(number);
            core.has_met_turn.set(false);
            core.in_interrupt.set(false);
        },
    );
}

/// The same where the core's loop has waited for it: nobody was interrupted, so there is nobody who might be preempted, or pay.
#[inline(always)]
pub(super) fn on_awaited_device(core: &ThisCore<'_>, number: u32) {
    let began = core.statistics.time.begin_awaited();
    device_handler()(number);
    let ended = core.statistics.time.end_awaited(began);
    core.note_awaited_interrupt(began, ended);
}

/// Runs the scheduler on the calling core, for ever on the machine; on the host until it is stopped.
///
/// # Safety
/// Called once for each core that [`prepare`] made, on that core, with its stack block set, preemption
/// disabled once, and nothing on its stack that must be dropped.
///
/// # Panics
/// If the core was not prepared.
pub unsafe fn enter(id: CoreId) {
    let Some(core) = cores::get(id.index()) else {
        panic!("core {} was not prepared: start as many as prepare() returned", id.index())
    };
    // SAFETY: the block is leaked, and is this core's own.
    unsafe { percpu::set_core_block(core::ptr::from_ref::<Core>(core).cast_mut().cast()) };
    reserve::prepare(core);
    // Cores come one after another: one that checks whether the system has run out of work, and has not counted this
    // one, must not miss what this one takes from its queue now.
    out_of_work::note_entry(|| online(id));
    stop::core_started();
    core.enter(Activity::Running);
    // SAFETY: both blocks are set and preemption is disabled, by contract and the line above.
    unsafe {
        crate::arch::irq::enable();
        core_loop::run();
    }
    #[cfg(target_os = "none")]
    stop::core_stopped();
}

/// Lets a core take work; what is placed on it waits until it has entered.
pub(crate) fn online(id: CoreId) {
    cores::start(id);
}
