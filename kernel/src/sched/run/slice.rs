//! Slices: the timer's interrupt, which counts them, says of a resident's turn what is to become of it, and looks at what waits. What
//! follows when one is over is in `run/preempt.rs`.
//!
//! A resident's turn is many short pieces of work as a rule. To suspend one of them costs as much as hundreds of them, and helps nobody
//! if it was about to end. So a piece is suspended only if it has run from one slice's end to the next, and a turn that has had its time
//! ends between two pieces. Nor does it end if that would only begin another turn of the same resident, because what it has in hand goes
//! back at a turn's end.

use core::ptr::NonNull;

use crate::arch::clock;
use crate::mem::stack::StackBlock;
use crate::sched::cores::{self, Core, roll_call};
use crate::sched::place::{self, wake};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::Header;
use crate::sched::run::{aside, attention, preempt};
use crate::sched::spawn::residents;
use crate::stats::Name;
use crate::sync::PreemptGuard;
use crate::time::{self, comparator};

/// A resident's turn is asked to end after two slices, or after so long if they are short, even if nobody waits for the core: then its
/// loop looks at everything that it looks at between two turns.
const LONGEST_TURN_MICROSECONDS: u64 = 400;

/// How many slices that are.
fn most_slices() -> u64 {
    (LONGEST_TURN_MICROSECONDS / settings::get(Setting::SliceMicroseconds)).max(2)
}

/// Runs an interrupt's handler. A request to preempt that the interrupted code had is left to that code: the handler's
/// own sections must not end in a preemption. It is known by the name as the longest, if it is. The
/// handler is told when it began.
pub(crate) fn in_handler(name: Name, handler: impl FnOnce(&'static Core, u64)) {
    let word = StackBlock::current().preempt();
    word.hold();
    // SAFETY: interrupts are unmasked only after the core's block was set, and the word is held.
    let core = unsafe { Core::this() };
    let (interrupted, began) = core.statistics.time.begin_interrupt();
    core.begin_masked(began);
    handler(core, began);
    let ended = core.statistics.time.end_interrupt(interrupted, began);
    core.note_interrupt(name, began, ended);
    word.release();
}

/// The core's timer fired.
pub(crate) fn on_timer() {
    in_handler(|| "the timer", timer_fired);
}

fn timer_fired(core: &'static Core, now: u64) {
    attention::note_timer(core);
    let end = core.slice_end.get();
    let slice_ended = end != 0 && now >= end;
    if slice_ended {
        core.slice_end.set(0);
        core.in_turn.note_slice_end();
        // Between two turns, too: a turn that follows another by the short way relies on it. Armed below.
        core.slice_end.set(now + settings::ticks(Setting::SliceMicroseconds));
        if let Some(resident) = residents::running_here() {
            // SAFETY: its turn runs on this stack, so it is alive.
            unsafe { judge(core, resident, now) };
        }
        note_running(core);
    }
    let look = core.next_look.get();
    if slice_ended || (look != 0 && now >= look) {
        look_for_waiting(core, now);
    }
    // It may have been a timer of the core's queue; the slice, or the wait for a look, goes on. Or it was the slice's end, before the moment
    // of something urgent. What is due by now the end of this interrupt takes care of.
    let urgent = time::next_urgent_deadline(core.id()).filter(|&at| at > now).unwrap_or(0);
    // What is 0 is not wanted, and comes last.
    let at =
        [core.slice_end.get(), core.next_look.get(), urgent].map(|at| at.wrapping_sub(1)).into_iter().min();
    if let Some(at) = at.filter(|&at| at != u64::MAX) {
        comparator::arm_if_earlier(at + 1);
    }
}

/// A slice has ended: what runs is seen among the other processes from here on, if it can be entered now.
fn note_running(core: &'static Core) {
    let block = StackBlock::current();
    // One that disables preemption may hold the very lock. The handler disables it once.
    if block.preempt().is_held_once()
        && let Some(process) = NonNull::new(block.process().cast::<Header>())
    {
        // SAFETY: its turn runs on this stack, with preemption enabled.
        unsafe { roll_call::enter(core, process, false) };
    }
}

/// A slice has ended in a resident's turn. A piece of work that has seen two slice ends is suspended.
///
/// If others wait for the core, the turn is asked to end between two pieces of work, and what runs when the next slice ends is
/// suspended. A turn that has not had half a slice yet is asked half a slice later. So the resident gets about a slice, and the others
/// wait for two at most. If nobody waits the turn goes on: it would be followed by one of the same resident.
///
/// # Safety
/// The turn of `resident` runs on this stack.
unsafe fn judge(core: &Core, resident: NonNull<Header>, now: u64) {
    // SAFETY: by contract.
    let is_spent = aside::is_spent(core, unsafe { resident.as_ref() });
    let others_wait = is_spent || preempt::others_wait(core) || attention::is_wanted(core);
    let half = settings::ticks(Setting::SliceMicroseconds) / 2;
    if others_wait && now.saturating_sub(core.turn_began_at()) < half {
        // So young a turn runs nothing that has seen a slice end.
        // Armed at the end of the interrupt.
        core.slice_end.set(now + half);
        return;
    }
    // SAFETY: by contract.
    let (is_same, is_waited_for) =
        unsafe { (residents::note_slice_end(resident), residents::has_waiting_for_end(resident)) };
    if is_same || core.in_turn.was_to_end() {
        core.in_turn.note_long();
    } else if others_wait || is_waited_for || u64::from(core.in_turn.slices()) >= most_slices() {
        core.in_turn.ask_to_end();
    }
}

/// Whether the turn of a resident that has used up what it was granted may go on in the place of the next one: nothing else is to run
/// on this core or to be looked at between turns, no core is idle, and the turn has not been asked to end. In that turn.
pub(crate) fn may_go_on() -> bool {
    let here = PreemptGuard::new();
    let block = StackBlock::current();
    let Some(core) = Core::current(&here) else { return false };
    let most = most_slices() * settings::ticks(Setting::SliceMicroseconds);
    if block.is_asked_to_end()
        || wake::some_core_is_idle()
        || preempt::others_wait(core)
        || attention::is_wanted(core)
        || clock::now().saturating_sub(core.turn_began_at()) >= most
        // SAFETY: its turn runs on this stack, so it is alive.
        || residents::running_here().is_some_and(|resident| aside::is_spent(core, unsafe { resident.as_ref() }))
    {
        return false;
    }
    block.grant_more(settings::get(Setting::Reductions));
    true
}

/// If something waits here while another core is idle, looks once more soon; if it then still does, an idle core comes
/// to see what may leave. In the timer's interrupt.
fn look_for_waiting(core: &Core, now: u64) {
    if cores::count() == 1 {
        // Nobody will come, and to look at all mailboxes takes longer than all else that a slice's end does.
        return;
    }
    let was_waiting = core.next_look.replace(0) != 0;
    // Notes what it sees, so that the core that is called finds how long it has been so.
    place::note_waiting(core, now);
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
