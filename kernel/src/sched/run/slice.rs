//! Slices: the timer's interrupt, which counts them and looks at what waits. What follows when one is over is in
//! `run/preempt.rs`.

use crate::arch::clock;
use crate::mem::stack::StackBlock;
use crate::sched::cores::Core;
use crate::sched::place::{self, wake};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::run::attention;
use crate::sched::spawn::residents;
use crate::stats::{Activity, Name};
use crate::time::{self, comparator};

/// Runs an interrupt's handler. A request to preempt that the interrupted code had is left to that code: the handler's
/// own sections must not end in a preemption. It is known by the name as the longest, if it is.
pub(crate) fn in_handler(name: Name, handler: impl FnOnce(&'static Core)) {
    let word = StackBlock::current().preempt();
    word.hold();
    // SAFETY: interrupts are unmasked only after the core's block was set, and the word is held.
    let core = unsafe { Core::this() };
    let (interrupted, began) = core.enter(Activity::Interrupt);
    core.begin_masked(began);
    handler(core);
    let (_, ended) = core.enter(interrupted);
    core.note_interrupt(name, began, ended);
    word.release();
}

/// The core's timer fired.
pub(crate) fn on_timer() {
    in_handler(|| "the timer", timer_fired);
}

fn timer_fired(core: &'static Core) {
    attention::note_timer(core);
    let now = clock::now();
    let end = core.slice_end.get();
    let slice_ended = end != 0 && now >= end;
    if slice_ended {
        core.slice_end.set(0);
        core.in_turn.note_slice_end();
        // Between two turns, too: a turn that follows another by the short way relies on it.
        ensure_slice_timer(core);
    }
    let look = core.next_look.get();
    if slice_ended || (look != 0 && now >= look) {
        look_for_waiting(core, now);
    }
    // It may have been a timer of the core's queue; the slice, or the wait for a look, goes on.
    for at in [core.slice_end.get(), core.next_look.get()].into_iter().filter(|&at| at != 0) {
        comparator::arm_if_earlier(at);
    }
    // Or it was the slice's end, before the moment of something urgent. What is due by now the end of this interrupt takes care of.
    if let Some(at) = time::next_urgent_deadline(core.id()).filter(|&at| at > now) {
        comparator::arm_if_earlier(at);
    }
}

/// If something waits here while another core is idle, looks once more soon; if it then still does, an idle core comes
/// to see what may leave. In the timer's interrupt.
fn look_for_waiting(core: &Core, now: u64) {
    let was_waiting = core.next_look.replace(0) != 0;
    // Notes what it sees, so that the core that is called finds how long it has been so.
    place::may_be_robbed(core, now);
    let resident = residents::running_here();
    // SAFETY: its turn runs on this stack, so it is alive.
    let has_waiting = resident.is_some_and(|resident| unsafe { residents::has_waiting(resident, now) });
    if !wake::some_core_is_idle() || !(has_waiting | core.queue.has_any()) {
        return;
    }
    if was_waiting {
        if resident.is_some() {
            core.in_turn.ask_to_let_go();
        }
        wake::wake_thief();
    } else {
        core.next_look.set(now + settings::ticks(Setting::ShareWaitMicroseconds));
    }
}

/// Counts slices from now on, unless one is being counted. The turns in between cost one look.
#[inline]
pub(crate) fn ensure_slice_timer(core: &Core) {
    if core.slice_end.get() == 0 {
        let end = clock::now() + settings::ticks(Setting::SliceMicroseconds);
        core.slice_end.set(end);
        comparator::arm_if_earlier(end);
    }
}

/// Arms the timer after the core's timers have fired: for the end of the slice, for the next look at what waits, or for
/// the next timer.
pub(crate) fn arm_timer(core: &Core) {
    let own = [core.slice_end.get(), core.next_look.get()].into_iter().filter(|&at| at != 0);
    comparator::arm(own.chain(time::next_deadline(core.id())));
}

/// Another core's wake-up interrupt. The core loop, or the turn's end, does what is needed.
pub(crate) fn on_wake_up() {}
