//! The ends of those who were killed, where more urgent work keeps the cores.
//!
//! One that was killed ends in a turn of its own. If it is less urgent than what goes on for ever, that turn would never come. So after a
//! kill each core looks through what waits there, a few at each boundary between two turns, as long as something more urgent waits besides:
//! in its queues nothing but the order of turns changes, by a full turn. What it finds that is to end, ends at once:
//!
//! - one that waits, or has not begun, drops what it owns, until an interrupt comes, in [`GRANTED_MICROSECONDS`] at the latest;
//! - one that is suspended, in whatever, ends there as in a crash;
//! - the worker of an executor that stops has its last turn.
//!
//! **The bound**: the most that a turn takes while others wait (two slices, and the longest section), for each [`AT_ONCE`] that wait at that core
//! with the same priority; two slices more for one that runs when it is killed. If it is interrupted while it drops what it owns, twice
//! that.
//!
//! A core looks until all have ended that were killed, or as many turns have passed as were waiting, and some slices, so that what was on
//! its way has come; and not while a resident of its own is giving back what it has in hand, a slice at most. Where nothing
//! urgent waits it looks at nothing, and only counts; turns of `Normal` processes that follow one another by the core loop's short way are not
//! counted, and pay nothing.
//!
//! What waits in the global queue (`Dispatch::Global`) is not looked through, nor what is aside because its share is used up: that ends when
//! it comes back.

use core::ptr::NonNull;

use crate::arch::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::arch::clock;
use crate::sched::cores::{Core, ThisCore};
use crate::sched::place::enqueue;
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::kill_count::Unended;
use crate::sched::process::{EndOfPiece, Header, Priority, ProcessRef, Runnable};
use crate::sched::run::{kill, reserve};
use crate::sched::spawn::residents;
use crate::time::comparator;

/// So many of each priority are looked at between two turns.
const AT_ONCE: usize = 4;

/// What was killed has so long, at least, to drop what it owns, although something urgent waits.
const GRANTED_MICROSECONDS: u64 = 50;

/// So long after a kill what was on its way is in a queue, or has ended.
const SETTLED_SLICES: u64 = 4;

/// A core looks so often more than as many wait.
const MORE_LOOKS: usize = 16;

/// How many kills there were.
static KILLS: AtomicU32 = AtomicU32::new(0);
/// When the last was, in clock ticks.
static LAST: AtomicU64 = AtomicU64::new(0);

/// How many of them have not ended: processes, and executors that stop.
static UNENDED: Unended = Unended::new();

/// Kills a process. With preemption disabled.
pub(crate) fn kill(process: &ProcessRef) {
    if process.kill_count().kill(process.run_state(), &UNENDED) {
        process.wake();
        note();
    }
}

/// A process has ended that was killed before.
#[inline(always)]
pub(crate) fn note_end(process: &Header) {
    process.kill_count().take_back(&UNENDED);
}

/// The workers of an executor are to end. It is noted afterwards.
pub(crate) fn begin_stop() {
    UNENDED.begin();
}

/// They have ended.
pub(crate) fn end_stop() {
    UNENDED.end();
}

/// Somebody was killed, and can be found so by now.
pub(crate) fn note() {
    // Relaxed: read after the count, which releases it.
    LAST.store(clock::now(), Ordering::Relaxed);
    // Release: pairs with the acquire in `is_wanted` and `look`, for the mark of the kill and that it is counted.
    KILLS.fetch_add(1, Ordering::Release);
}

/// Whether this core looks for what was killed.
pub(crate) fn is_wanted(core: &Core) -> bool {
    core.looks_for_killed.get() != 0 || KILLS.load(Ordering::Acquire) != core.kills_heard.get()
}

/// Looks for one that is to end although something more urgent waits. Between two turns of the core's own loop.
#[cold]
#[inline(never)]
pub(crate) fn look(core: &ThisCore<'_>) -> Option<Runnable> {
    let kills = KILLS.load(Ordering::Acquire);
    if UNENDED.none() && !kill::is_any_pending() {
        core.kills_heard.set(kills);
        core.looks_for_killed.set(0);
        return None;
    }
    let begin = || {
        core.kills_heard.set(kills);
        // Each look is at one of each priority, at least; without urgent work one of `Low` has a turn for so many of `Normal`.
        let turns = settings::get(Setting::NormalPerLow) as usize + 1;
        core.looks_for_killed.set(core.queue.waiting().saturating_mul(turns) + MORE_LOOKS);
    };
    if kills != core.kills_heard.get() {
        begin();
    }
    core.looks_for_killed.set(core.looks_for_killed.get() - 1);
    if core.looks_for_killed.get() == 0 || !core.queue.has_urgent() {
        let settled = SETTLED_SLICES * settings::ticks(Setting::SliceMicroseconds);
        let is_settled = clock::now().saturating_sub(LAST.load(Ordering::Relaxed)) >= settled;
        if is_settled && core.queue.is_empty() {
            core.looks_for_killed.set(0);
        } else if !is_settled && core.looks_for_killed.get() == 0 {
            begin();
        }
        if !core.queue.has_urgent() {
            return None;
        }
    }
    enqueue::queue_chosen(core);
    [Priority::High, Priority::Normal, Priority::Low].into_iter().find_map(|priority| look_at(core, priority))
}

fn look_at(core: &ThisCore<'_>, priority: Priority) -> Option<Runnable> {
    if !core.queue.has_more_urgent(priority) {
        return None;
    }
    for _ in 0..AT_ONCE {
        let process = core.take_of(priority)?;
        if is_to_end(&process) && !reserve::is_kept_waiting(core, &process) {
            core.is_swept.set(process.run_state().is_suspended());
            let until = clock::now() + GRANTED_MICROSECONDS * clock::frequency() / 1_000_000;
            core.granted_until.set(until);
            comparator::arm_if_earlier(until);
            return Some(process);
        }
        core.push(process);
    }
    None
}

/// Whether a turn, which something urgent would end, is the one in which what was killed drops what it owns, and has time left for that.
#[inline(always)]
pub(crate) fn is_granted(core: &Core, process: &Header) -> bool {
    process.run_state().is_ending() && comparator::arm_if_ahead(core.granted_until.get())
}

/// Whether one that was taken from a queue has nothing to do but to end.
fn is_to_end(process: &Runnable) -> bool {
    let header: &Header = process;
    let (state, table, pointer) = (header.run_state(), header.vtable(), NonNull::from(header));
    if state.is_killed() || state.is_ending() {
        return true;
    }
    let Some(asks) = table.is_to_end else { return false };
    if table.detach.is_some() {
        // SAFETY: a resident, which the caller has in hand.
        return unsafe { residents::is_ending(pointer) };
    }
    let asked = EndOfPiece { is_killed: false, is_long: true };
    // SAFETY: a piece that is suspended, and in hand, so it holds no lock; preemption is disabled.
    kill::is_any_pending() && unsafe { asks(pointer, asked) }
}
