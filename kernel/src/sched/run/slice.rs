//! Slices: the timer's interrupt, which counts them, says of a resident's turn what is to become of it, and looks at what waits. What
//! follows when one is over is in `run/preempt.rs`.
//!
//! A resident's turn is many short pieces of work as a rule. To suspend one of them costs as much as hundreds of them, and helps nobody
//! if it was about to end. So a piece is suspended only if it has run from one slice's end to the next, and a turn that has had its time
//! ends between two pieces. Nor does it end if that would only begin another turn of the same resident, because what it has in hand goes
//! back at a turn's end.

use core::hint;
use core::ptr::NonNull;

use crate::arch::{clock, irq};
use crate::mem::heap::HEAP;
use crate::mem::stack::StackBlock;
use crate::sched::cores::{self, Core, roll_call};
use crate::sched::place::{self, wake};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::{Header, PieceNow};
use crate::sched::run::{aside, attention, core_loop, kill, preempt};
use crate::sched::spawn::residents;
use crate::stats::Name;
use crate::sync::PreemptGuard;
use crate::time::{self, comparator};

/// A resident's turn is asked to end after so long even if nobody waits for the core: then its loop looks at everything that it looks at
/// between two turns. What cannot wait for that is looked at when a slice ends ([`others_want`]). Shorter, and a worker with much mail
/// would put back what it has in hand for nobody: with 2 ms a message of the benchmark `executor` costs a tenth more.
const LONGEST_TURN_MICROSECONDS: u64 = 100_000;

/// How often, in a turn that goes on, what rests in a resident's hand is looked through for what waits for the end of the turn. With
/// longer slices at each end of one.
const LOOK_MICROSECONDS: u64 = 200;

/// How many whole slices that time has, but `least` if they are longer.
fn in_slices(microseconds: u64, least: u64) -> u64 {
    (microseconds / settings::get(Setting::SliceMicroseconds)).max(least)
}

fn most_slices() -> u64 {
    in_slices(LONGEST_TURN_MICROSECONDS, 2)
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
    let mut resident = None;
    if slice_ended {
        core.in_turn.note_slice_end();
        let slice = settings::ticks_inline(Setting::SliceMicroseconds);
        // Between two turns, too: a turn that follows another by the short way relies on it. Armed below.
        core.slice_end.set(now + slice);
        resident = residents::running_here();
        match resident {
            // SAFETY: its turn runs on this stack, so it is alive.
            Some(resident) => unsafe { judge(core, resident, now, slice) },
            None => note_running(core, now),
        }
    }
    let look = core.next_look.get();
    let is_look_due = if look != 0 { now >= look } else { slice_ended && now >= core.looks_from.get() };
    if is_look_due {
        let is_resident = if slice_ended { resident.is_some() } else { residents::running_here().is_some() };
        look_for_waiting(core, now, is_resident);
    }
    // It may have been a timer of the core's queue; the slice, or the wait for a look, goes on. Or it was the slice's end, before the moment
    // of something urgent. What is due by now the end of this interrupt takes care of.
    let urgent =
        time::next_urgent_deadline(core.id()).filter(|&at| at > now || resident.is_some()).unwrap_or(0);
    if resident.is_some() {
        // This has taken long, with interrupts masked. The next one, if any is wanted, does what is to follow.
        core.has_judged.set(true);
        if core.in_turn.turn().wants_interrupt() || kill::is_any_pending() || core.beneath.is_some() {
            return comparator::arm_if_earlier(now);
        }
    }
    // What is 0 is not wanted, and comes last.
    let at =
        [core.slice_end.get(), core.next_look.get(), urgent].map(|at| at.wrapping_sub(1)).into_iter().min();
    if let Some(at) = at.filter(|&at| at != u64::MAX) {
        comparator::arm_if_earlier(at + 1);
    }
}

/// A slice has ended: what runs is seen among the other processes from here on, if it can be entered now. A resident was seen when it first
/// waited, or its turn is interrupted for something else.
fn note_running(core: &'static Core, now: u64) {
    let block = StackBlock::current();
    // One that disables preemption may hold the very lock. The handler disables it once.
    if block.preempt().is_held_once()
        && let Some(process) = NonNull::new(block.process().cast::<Header>())
    {
        // SAFETY: its turn runs on this stack, with preemption enabled, so it is alive.
        let is_killed = unsafe {
            roll_call::enter(core, process, false);
            process.as_ref().run_state().is_killed()
        };
        if is_killed {
            leave_to_the_next(core, now);
        }
    }
}

/// As for a resident, the next interrupt, which comes at once, does what is to follow: this has taken long.
#[cold]
#[inline(never)]
fn leave_to_the_next(core: &Core, now: u64) {
    core.has_judged.set(true);
    comparator::arm_if_earlier(now);
}

/// A slice has ended in a resident's turn. A piece of work that has seen two slice ends is suspended.
///
/// If others wait for the core, the turn is asked to end between two pieces of work, and what runs when the next slice ends is
/// suspended. A turn that has not had half a slice yet is asked half a slice later. So the resident gets about a slice, and the others
/// wait for two at most. If nobody waits the turn goes on: it would be followed by one of the same resident.
///
/// # Safety
/// The turn of `resident` runs on this stack.
unsafe fn judge(core: &Core, resident: NonNull<Header>, now: u64, slice: u64) {
    // SAFETY: by contract.
    let is_spent = aside::is_spent(core, unsafe { resident.as_ref() });
    let others_wait = is_spent || others_want(core);
    let half = slice / 2;
    if others_wait && now.saturating_sub(core.turn_began_at()) < half {
        // So young a turn runs nothing that has seen a slice end.
        // Armed at the end of the interrupt.
        core.slice_end.set(now + half);
        return;
    }
    // SAFETY: by contract.
    let (is_same, waits_for_end) = unsafe {
        (residents::note_slice_end(resident), residents::has_waiting_for_end(resident, LOOKED_AT_ONCE))
    };
    let slices = u64::from(core.in_turn.slices());
    if is_same || core.in_turn.was_to_end() {
        core.in_turn.note_long();
    } else if others_wait || waits_for_end == Some(true) || slices >= most_slices() {
        core.in_turn.ask_to_end();
    } else if waits_for_end.is_none() && slices.is_multiple_of(in_slices(LOOK_MICROSECONDS, 1)) {
        // Not at each end of short slices: it takes hundreds of instructions.
        core.in_turn.ask_to_look(false);
    }
}

/// Whether anybody wants the turn in progress to end: others wait for the core, its loop has something to look at, or memory was short, and
/// the loop gives back what the core keeps.
fn others_want(core: &Core) -> bool {
    let shortages = HEAP.shortages();
    let was_short = core.shortages.replace(shortages) != shortages;
    was_short || preempt::others_wait(core) || attention::is_wanted(core)
}

/// Whether the turn of a resident that has used up what it was granted may go on in the place of the next one: nothing else is to run
/// on this core or to be looked at between turns, no core is idle, and the turn has not been asked to end. An idle core says nothing of a turn that `keeps`
/// what it has: none of that waits for long enough to leave. In that turn.
pub(crate) fn may_go_on(keeps: bool) -> bool {
    let here = PreemptGuard::new();
    let block = StackBlock::current();
    let Some(core) = Core::current(&here) else { return false };
    let Some(process) = NonNull::new(block.process().cast::<Header>()) else { return false };
    // SAFETY: its turn runs on this stack, so it is alive.
    let process = unsafe { process.as_ref() };
    let most = most_slices() * settings::ticks_inline(Setting::SliceMicroseconds);
    if block.is_asked_to_end()
        || (!keeps && wake::some_core_is_idle())
        || preempt::others_wait(core)
        || attention::is_wanted(core)
        || clock::now().saturating_sub(core.turn_began_at()) >= most
        || aside::is_spent(core, process)
    {
        return false;
    }
    // As at a turn's end, or who looks at statistics would see it in steps of the longest turn.
    if let Some(charged) = block.take_charged() {
        core_loop::count_charged(core, process, charged);
    }
    block.grant(settings::get(Setting::Reductions));
    true
}

/// How many of the mailboxes that wait for the end of a turn an interrupt looks at itself.
const LOOKED_AT_ONCE: usize = 8;

/// If something waits here while another core is idle, looks once more soon; if it then still does, an idle core comes
/// to see what may leave. In the timer's interrupt, which looks at the queues alone: behind a resident many mailboxes may wait, so all of that is
/// left to [`look_behind`].
fn look_for_waiting(core: &Core, now: u64, is_resident: bool) {
    if cores::count() == 1 {
        // Nobody will come, and to look at all mailboxes takes longer than all else that a slice's end does.
        return;
    }
    let was_waiting = core.next_look.replace(0) != 0;
    if is_resident {
        // As between the looks of one that sees that others are idle: not with each end of short slices.
        core.looks_from.set(now + settings::ticks_inline(Setting::ShareWaitMicroseconds) / 2);
        return core.in_turn.ask_to_look(was_waiting);
    }
    // Notes what it sees, so that the core that is called finds how long it has been so.
    place::note_waiting(core, now, || core.in_turn.is_in());
    if wake::some_core_is_idle() && core.queue.has_any() {
        if residents::piece_runs_here() {
            core.in_turn.ask_to_look(was_waiting);
        }
        call_or_look_again(core, now, was_waiting);
    }
    if core.queue.is_flagged() {
        // The look at the queues and a preemption are too much for one interrupt.
        leave_to_the_next(core, now);
    }
}

/// Something waits here, and has for long enough: where another core is idle, the next interrupt, which comes at once, calls it.
pub(super) fn look_at_once(core: &Core) {
    if cores::count() > 1 && wake::some_core_is_idle() {
        let now = clock::now();
        core.next_look.set(now);
        comparator::arm_if_earlier(now);
    }
}

/// Something waits here while another core is idle.
fn call_or_look_again(core: &Core, now: u64, was_waiting: bool) {
    if was_waiting {
        wake::wake_thief();
    } else {
        let wait = settings::ticks_inline(Setting::ShareWaitMicroseconds);
        core.next_look.set(now + wait);
        // With slices that are shorter than what waits has to wait, not each begins with a look: else who handles much mail gave it away so much more
        // often.
        core.looks_from.set(now + 2 * wait);
    }
}

/// The rest of the look at what waits, behind a resident whose turn was interrupted: with interrupts unmasked, because it may have hundreds of
/// mailboxes. Whether something waits for the end of the turn, which nobody else takes.
///
/// # Safety
/// The caller is the core's loop; the turn of `process` was interrupted on this core and holds no lock.
pub(super) unsafe fn look_behind(core: &Core, process: NonNull<Header>, was_waiting: bool) -> bool {
    // SAFETY: by contract, its turn was interrupted, so it is alive. Only residents can detach.
    let table = unsafe { process.as_ref() }.vtable();
    if table.detach.is_none() {
        if let Some(piece) = table.piece {
            // What it has sent to the resident here goes where others find it, before one is called by the second look.
            // SAFETY: its turn was interrupted on this core, whose loop the caller is.
            unsafe { piece(process, PieceNow::Stops) };
        }
        return false;
    }
    if cores::count() > 1 {
        // As at the end of another's slice, where no interrupt does the same in between.
        irq::disable();
        let now = clock::now();
        place::note_waiting(core, now, || true);
        // SAFETY: by contract this is the core's loop, which runs with interrupts unmasked.
        unsafe { irq::enable() };
        // SAFETY: as above. First the look, which notes what it sees.
        let has_waiting = unsafe { residents::has_waiting(process, now) };
        if wake::some_core_is_idle() && (has_waiting | core.queue.has_any()) {
            if was_waiting {
                // SAFETY: by contract.
                unsafe { residents::let_go(process) };
            }
            call_or_look_again(core, now, was_waiting);
            let look = core.next_look.get();
            if look != 0 {
                comparator::arm_if_earlier(look);
            }
        }
    }
    // SAFETY: as above.
    unsafe { residents::has_waiting_for_end(process, usize::MAX) == Some(true) }
}

/// Counts slices from now on, unless one is being counted. The turns in between cost one look.
#[inline]
pub(crate) fn ensure_slice_timer(core: &Core, now: u64) {
    if core.slice_end.get() == 0 {
        let setting = settings::get(Setting::SliceMicroseconds);
        if core.slice_setting.get() != setting {
            hint::cold_path();
            core.slice_ticks.set(settings::ticks(Setting::SliceMicroseconds));
            // Changed in between, it is looked up again the next time.
            if settings::get(Setting::SliceMicroseconds) == setting {
                core.slice_setting.set(setting);
            }
        }
        let end = now + core.slice_ticks.get();
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
