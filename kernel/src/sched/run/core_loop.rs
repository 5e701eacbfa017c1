//! The core loop: pick a process, give it a turn, deal with how the turn ended.
//!
//! The loop runs with preemption disabled and calls a turn with preemption enabled. While a turn runs the
//! stack may be lent to it (see `run/preempt.rs`), so the code after the turn may be on another core, and the
//! process that ended its turn may be a detached piece of the one that began it. Hence after the turn
//! everything is read afresh: the core from its register, the process from the stack block.

use core::ptr::NonNull;

use crate::arch::atomic::Ordering;
use crate::arch::{clock, timer};
use crate::mem::heap::HEAP;
use crate::mem::stack::StackBlock;
use crate::sched::cores::{self, Core, ThisCore, calls, population};
use crate::sched::place::{enqueue, pick};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::{Header, ProcessRef, Runnable, Step};
#[cfg(target_os = "none")]
use crate::sched::run::collect;
use crate::sched::run::{balance, idle, offline, reserve, resume, slice, steal};
use crate::stats::Activity;
use crate::time;

/// Runs processes until the scheduler is stopped.
///
/// # Safety
/// Called on a core whose block and stack block are set, with preemption disabled once.
pub(crate) unsafe fn run() {
    // SAFETY: the caller promised that the core's block is set.
    unsafe { Core::this() }.enter(Activity::Running);
    loop {
        // SAFETY: by contract; made afresh in every round, because a turn may end on another core.
        let core = unsafe { ThisCore::of_loop() };
        let called_for = calls::all();
        if called_for & calls::STOP != 0 {
            return;
        }
        #[cfg(target_os = "none")]
        if called_for != 0 {
            // SAFETY: this is the core's own loop, between two turns.
            unsafe { collect::answer(&core, called_for) };
        }
        housekeeping(&core);
        if cores::online() & core.id().mask() == 0 {
            offline::evacuate(&core);
        }
        match pick::next(&core) {
            Some(process) if reserve::is_kept_waiting(&core, &process) => {
                enqueue::requeue(&core, process);
                let passed_over = core.passed_over.get() + 1;
                core.passed_over.set(passed_over);
                if passed_over > core.load() {
                    core.passed_over.set(0);
                    idle::idle(&core);
                }
            }
            Some(process) => {
                core.passed_over.set(0);
                turn(core, process);
            }
            None => {
                core.turn_ended_at.set(0);
                idle::idle(&core);
            }
        }
    }
}

/// What is due between turns.
fn housekeeping(core: &ThisCore<'_>) {
    // Relaxed: set by this core's own interrupt.
    if core.timer_due.load(Ordering::Relaxed) != 0 || timer::poll() {
        core.timer_due.store(0, Ordering::Relaxed);
        core.turn_ended_at.set(0);
        let more = time::expire(core.id(), clock::now(), settings::get(Setting::TimersPerPass) as usize);
        let keeps_more = HEAP.answer_shortage();
        #[cfg(target_os = "none")]
        collect::begin_if_wanted();
        if more || keeps_more {
            core.timer_due.store(1, Ordering::Relaxed);
        }
        slice::arm_timer(core);
        balance::run_if_due(core);
    }
}

/// Gives a process its turn, or resumes it on the stack it was suspended on. Gives up the core, too: after the turn it may be
/// another.
fn turn(core: ThisCore<'_>, process: Runnable) {
    let core = core.core();
    let header: &Header = &process;
    debug_assert!(
        header.is_dispatchable(),
        "corrupted queue: core {} took {header:p} from its queue {:?}, and it is not runnable",
        core.number(),
        header.priority()
    );
    core.statistics.context_switches.bump();
    let now = match core.turn_ended_at.replace(0) {
        0 => clock::now(),
        ended => ended,
    };
    core.statistics.scheduling_latency.record(now.saturating_sub(header.enqueued_at()));
    header.set_home(core.id());
    if core.taken_from.get().is_some() {
        core.turn_began_at.set(now);
    }
    // Relaxed: read by this core's own interrupt, and by others as an estimate.
    core.slices.store(0, Ordering::Relaxed);
    core.busy.store(1, Ordering::Relaxed);
    core.looks.set(0);
    slice::ensure_slice_timer(core);
    if let Some(stack) = NonNull::new(header.take_stack()) {
        // SAFETY: this is the core's own loop; the process was taken from a queue, suspended on that stack. Does not return.
        unsafe { resume::resume(core, stack) }
    }
    header.run_state().begin();
    let process = process.into_pointer();
    let block = StackBlock::current();
    // Relaxed: the block is touched by code on this stack and by interrupts on it.
    block.set_process(process.as_ptr().cast());
    // In range because the setting's range is.
    block.set_reductions(settings::get(Setting::Reductions) as i64);
    block.preempt().reset(0);
    // SAFETY: the process is running, and this core alone runs it.
    let step = unsafe { (process.as_ref().vtable().step)(process) };
    block.preempt().reset(1);
    // SAFETY: preemption is disabled again, by the line above.
    unsafe { finish_turn(step) };
}

/// The turn that ran on this stack has ended, wherever it began.
///
/// # Safety
/// Called by a core loop, right after the turn, with preemption disabled.
unsafe fn finish_turn(step: Step) {
    // SAFETY: by contract; the turn may have moved to another core.
    let core = unsafe { ThisCore::of_loop() };
    let block = StackBlock::current();
    let Some(process) = NonNull::new(block.take_process().cast::<Header>()) else {
        panic!("the stack block of core {} names no process after a turn: it was overwritten", core.number());
    };
    // Relaxed: as in `turn`.
    core.busy.store(0, Ordering::Relaxed);
    if core.taken_from.get().is_some() {
        steal::judge_theft(&core);
    }
    let charged = (settings::get(Setting::Reductions) as i64).saturating_sub(block.reductions());
    core.statistics.reductions.add(charged.max(0) as u64);
    // SAFETY: the scheduler's reference has kept the process alive during its turn.
    let header = unsafe { process.as_ref() };
    match step {
        Step::Pending => {
            header.note_yielded();
            if header.run_state().end_pending() {
                // SAFETY: `end_pending` says that it is to be queued, by its last turn and nobody else.
                enqueue::requeue(&core, unsafe { Runnable::new(process) });
            }
        }
        Step::Yield => {
            header.note_yielded();
            // SAFETY: its turn is over, and it stays marked as running while it is queued.
            enqueue::requeue(&core, unsafe { Runnable::new(process) });
        }
        Step::Done => {
            header.run_state().finish();
            population::note_end(header);
            core.pace.note_event();
            // SAFETY: the scheduler's reference, which ends with the process.
            drop(unsafe { ProcessRef::from_counted(process) });
        }
    }
}
