//! What a core's loop looks at besides its queues, and that one bit says that there may be some.
//!
//! Whoever wants something looked at makes it visible and then sets the bit ([`Core::ask_attention`]). The loop looks at
//! everything, and clears the bit only if nothing is left that wants another look; see `cores/ready_mask.rs` for why
//! nothing is missed. While the bit is set, every round comes here, and no process goes from one turn to the next by the
//! short way (`core_loop::go_on`), which relies on all this:
//!
//! | what | who sets the bit |
//! |---|---|
//! | a timer, or the end of a slice, is due | the timer's interrupt; on threads, which have none, [`notice_timer`] |
//! | something was raised by an interrupt, or left to the loop | [`Raisable`](crate::sched::cores::raised::Raisable), as if a timer were due; but what is urgent and raised while the loop waits that looks for itself (`idle`) |
//! | a call to all cores | [`calls::raise`], and who calls for standing still |
//! | the core was taken out of service | `offline` |
//! | its loop runs on its last stack | `preempt`, for as long as that is so |
//! | its next turn tells whether a theft was worth it | `steal`, until it has told |
//! | a resident has to give back what it has in hand | `give_back`, for as long as that is so |
//! | crashed code has left something on a stack | `remains`, for as long as that is so |
//! | processes wait in the global queue, or are to | `global::push`; see below |
//!
//! What is urgent does not wait for all of it: of the timers those that wake something urgent fire first, and if something urgent
//! waits then, the rest is put off until that has had its turn, a bounded number of times in a row.
//!
//! The most frequent of all this, one timer that wakes something urgent, has a way of its own ([`first`]), which looks at nothing else; so has what is urgent
//! and waits.
//!
//! That the dispatch scheme was changed sets no bit: a core notices at the end of its slice.

use core::sync::atomic::compiler_fence;
use core::task::Waker;

use crate::arch::atomic::Ordering;
use crate::arch::{clock, timer};
use crate::mem::heap::HEAP;
use crate::sched::cores::here::is_wanted_urgently;
use crate::sched::cores::{self, Core, ThisCore, calls};
use crate::sched::place::{enqueue, global, waker};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::Runnable;
use crate::sched::run::{balance, ending, give_back, offline, remains, slice};
#[cfg(target_os = "none")]
use crate::sched::run::{collect, watchdog};
use crate::time;

/// Asks a host's timer, which does not interrupt.
#[inline(always)]
pub(crate) fn notice_timer(core: &Core) {
    if timer::poll() {
        note_timer(core);
    }
}

/// The timer has fired.
pub(crate) fn note_timer(core: &Core) {
    #[cfg(target_os = "none")]
    if watchdog::is_on() {
        watchdog::look(core);
    }
    core.ask_for_timers();
}

/// What comes before the loop looks at everything.
pub(crate) enum First {
    /// This one's turn.
    Turn(Runnable),
    /// The turn of what waits in the queues.
    Queues,
    /// Nothing.
    Nothing,
}

/// What is urgent, and may have the next turn before the loop looks at anything else: a timer that is due has woken it, an interrupt has ended a turn
/// for it, or it waits. The bit stays set, so the end of that turn leads to [`attend`].
// Out of line, for the size of an image: two call it.
#[inline(never)]
pub(crate) fn first(core: &ThisCore<'_>) -> First {
    // Relaxed: set by this core's own interrupt.
    let is_timer_due = core.timer_due.load(Ordering::Relaxed) == 1;
    if !(is_timer_due || waits_urgently(core))
        || calls::all() != 0
        || ending::is_wanted(core)
        || core.put_off.get() >= MOST_PUT_OFF
        || give_back::is_wanted(core)
        || remains::is_wanted(core)
    {
        return First::Nothing;
    }
    core.turn_ended_at.set(0);
    carry_out_urgent(core);
    let more = time::expire_one_urgent(core.id(), core.here(), |waker| waker::wake_in_loop(core, waker));
    // What is more urgent goes first.
    if more {
        return First::Nothing;
    }
    let first = if core.queue.has_urgent() {
        first_of_queues(core)
    } else {
        // What is urgent has a turn on the core's last stack, too.
        core.take_chosen().map_or(First::Nothing, First::Turn)
    };
    if !matches!(first, First::Nothing) {
        core.put_off.set(core.put_off.get() + 1);
    }
    first
}

/// The same where something urgent is flagged in the queues. It may be gone. A core that is out of service hands it on, and what was raised for others
/// is carried out one by one before such turns.
#[inline(always)]
fn first_of_queues(core: &ThisCore<'_>) -> First {
    let waits = core.chosen.is_some() || core.queue.has_urgent_waiting();
    if !waits || is_offline(core) || core.raised.has_any() { First::Nothing } else { First::Queues }
}

/// Looks at everything. Whether the loop goes on.
///
/// # Safety
/// The caller is the core's own loop, between two turns.
#[inline(never)]
pub(crate) unsafe fn attend(core: &ThisCore<'_>) -> bool {
    // What follows is no part of a turn.
    core.turn_ended_at.set(0);
    let called_for = calls::all();
    if called_for != 0 {
        enqueue::queue_chosen(core);
    }
    if called_for & calls::STOP != 0 {
        core.raised.give_up();
        return false;
    }
    #[cfg(target_os = "none")]
    if called_for != 0 {
        // SAFETY: by contract.
        unsafe { collect::answer(core, called_for) };
    }
    // Relaxed: set by this core's own interrupt.
    if core.timer_due.load(Ordering::Relaxed) != 0 {
        if core.raised.has_any() {
            // SAFETY: by contract.
            unsafe { core.raised.carry_out(|| is_wanted_urgently(core.here()) || waits_urgently(core)) };
            if core.chosen.is_some() && !is_urgent_timer_due(core) && may_put_off(core) {
                return true;
            }
        }
        let is_forced = core.put_off.get() >= MOST_PUT_OFF;
        let more = fire_timers(core, is_forced);
        carry_out_urgent(core);
        if waits_urgently(core) && may_put_off(core) {
            return true;
        }
        // What follows may look at the queues, and takes longer.
        enqueue::queue_chosen(core);
        housekeeping(core, more);
        // Or it would wait until somebody else has begun a turn, and was interrupted.
        carry_out_urgent(core);
    }
    if give_back::is_wanted(core) {
        enqueue::queue_chosen(core);
        give_back::go_on(core);
    }
    if remains::is_wanted(core) {
        enqueue::queue_chosen(core);
        remains::go_on(core);
        // A collection that the crash asks for comes before anybody has a turn who would find no memory.
        #[cfg(target_os = "none")]
        if !remains::is_wanted(core) && calls::all() & (calls::COLLECT | calls::STOP) == calls::COLLECT {
            enqueue::queue_chosen(core);
            // SAFETY: by contract.
            unsafe { collect::answer(core, calls::COLLECT) };
            look_for_urgent(core);
        }
    }
    core.put_off.set(0);
    if is_offline(core) {
        enqueue::queue_chosen(core);
        offline::evacuate(core);
    }
    if !wants_more(core) {
        core.queue.note_attended(|| !wants_more(core));
    }
    true
}

/// What was raised since for somebody urgent.
#[inline(always)]
pub(super) fn carry_out_urgent(core: &ThisCore<'_>) {
    if core.raised.has_urgent() {
        // SAFETY: this is the core's loop between two turns, which holds no lock.
        unsafe { core.raised.carry_out_urgent() };
    }
}

/// Wakes what is urgent and due by now.
pub(super) fn look_for_urgent(core: &ThisCore<'_>) {
    carry_out_urgent(core);
    // Relaxed: as in `attend`.
    if core.timer_due.load(Ordering::Relaxed) != 0 && is_urgent_timer_due(core) {
        fire_timers(core, false);
    }
}

fn is_offline(core: &Core) -> bool {
    cores::online() & core.mask() == 0
}

/// Whether the next round must come here, too.
fn wants_more(core: &Core) -> bool {
    core.timer_due.load(Ordering::Relaxed) != 0 || is_wanted(core)
}

/// Whether something wants to be looked at between turns that does not come with each end of a slice.
pub(crate) fn is_wanted(core: &Core) -> bool {
    calls::all() != 0
        || is_offline(core)
        || core.on_reserve.get()
        || core.taken_from.get().is_some()
        || global::is_in_use()
        || give_back::is_wanted(core)
        || remains::is_wanted(core)
}

/// Fires the core's timers: those that wake something urgent, and then the others until something urgent waits, or a few of them
/// whoever waits (`is_forced`). Whether more may be due.
#[inline(never)]
fn fire_timers(core: &ThisCore<'_>, is_forced: bool) -> bool {
    core.turn_ended_at.set(0);
    let most = settings::get(Setting::TimersPerPass) as usize;
    let most = if is_forced { most.min(MOST_FORCED) } else { most };
    let is_to_stop = || !is_forced && (waits_urgently(core) || core.raised.has_urgent());
    time::expire(core.id(), most, core.here(), is_to_stop, Waker::wake)
}

/// Whether something urgent is to have the next turn.
#[inline(always)]
fn waits_urgently(core: &Core) -> bool {
    core.queue.has_urgent() || core.chosen.is_some()
}

/// Whether a timer is due that wakes something urgent.
fn is_urgent_timer_due(core: &Core) -> bool {
    time::next_urgent_deadline(core.id()).is_some_and(|deadline| deadline <= clock::now())
}

/// How often in a row all else may wait for a turn of something urgent.
const MOST_PUT_OFF: u32 = 16;

/// So many timers fire then although something urgent waits: each takes some 600 instructions.
const MOST_FORCED: usize = 4;

/// Whether the rest of the look can wait until something urgent has had a turn. The bit stays set, so the end of that turn leads
/// here again.
#[inline(always)]
fn may_put_off(core: &Core) -> bool {
    let put_off = core.put_off.get();
    core.put_off.set(put_off + 1);
    put_off < MOST_PUT_OFF && !is_offline(core) && give_back::may_wait(core) && remains::may_wait(core)
}

/// What is due between turns when the timer has fired, besides the timers.
fn housekeeping(core: &ThisCore<'_>, more_timers: bool) {
    // Relaxed: as in `attend`. The look at what was raised comes after it, also for an interrupt of this core's, which alone sets it.
    core.timer_due.store(0, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    time::free_ended(core.id());
    core.note_interrupts();
    let keeps_more = HEAP.answer_shortage();
    #[cfg(target_os = "none")]
    collect::begin_if_wanted();
    if more_timers || keeps_more || core.raised.has_any() {
        core.timer_due.store(2, Ordering::Relaxed);
    }
    slice::arm_timer(core);
    balance::run_if_due(core);
}
