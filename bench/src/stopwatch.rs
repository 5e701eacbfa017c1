//! The time of one benchmark, and what the kernel did in it: from the first message to the moment when the last part
//! of it is done.

use core::sync::atomic::{AtomicU64, Ordering};
use magpie::internals::arch::clock;
use magpie::internals::sync::SpinLock;

use crate::activity::Activity;

static BEGIN: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);
/// When main began.
static MAIN: AtomicU64 = AtomicU64::new(0);
static LEFT: AtomicU64 = AtomicU64::new(0);
/// The counters at the beginning; what they have come to since, once the benchmark has ended.
static ACTIVITY: SpinLock<Activity> = SpinLock::new(Activity::NONE);

/// Main begins.
pub fn main_begins() {
    MAIN.store(clock::now(), Ordering::Relaxed);
}

/// What is measured is what came before main. Nothing was counted then.
pub fn boot() {
    BEGIN.store(clock::ZERO, Ordering::Relaxed);
    *ACTIVITY.lock() = Activity::NONE;
    END.store(MAIN.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// The benchmark begins; it ends when [`done`] has been called so many times.
pub fn begin(parts: u64) {
    // Relaxed: the message that starts the others comes afterwards.
    LEFT.store(parts, Ordering::Relaxed);
    END.store(0, Ordering::Relaxed);
    // The counters are read outside the time that is taken.
    *ACTIVITY.lock() = Activity::now();
    BEGIN.store(clock::now(), Ordering::Relaxed);
}

/// So many parts are to be done from here on; for benchmarks that go on in batches.
pub fn expect(parts: u64) {
    LEFT.store(parts, Ordering::Relaxed);
}

/// A part is done. Whether it was the last.
pub fn part_done() -> bool {
    // AcqRel: who does the last part has seen all others.
    LEFT.fetch_sub(1, Ordering::AcqRel) == 1
}

/// A part is done; with the last one the benchmark ends.
pub fn done() {
    if part_done() {
        end();
    }
}

/// The benchmark ends now. Out of line, because it is no part of what is measured, and would take registers from it.
#[cold]
#[inline(never)]
pub fn end() {
    END.store(clock::now(), Ordering::Relaxed);
    let mut activity = ACTIVITY.lock();
    *activity = Activity::now().since(&activity);
}

/// Nothing has been measured.
pub fn reset() {
    END.store(0, Ordering::Relaxed);
}

/// Nanoseconds between beginning and end, and what was counted; `None` if it has not ended.
pub fn reading() -> Option<(u64, Activity)> {
    let (begin, end) = (BEGIN.load(Ordering::Relaxed), END.load(Ordering::Relaxed));
    let nanoseconds = || ((end - begin) as u128 * 1_000_000_000 / clock::frequency() as u128) as u64;
    (end != 0).then(|| (nanoseconds(), *ACTIVITY.lock()))
}
