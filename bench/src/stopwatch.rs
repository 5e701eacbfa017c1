//! The time of one benchmark: from the first message to the moment when the last part of it is done.

use core::sync::atomic::{AtomicU64, Ordering};
use magpie::arch::clock;

static BEGIN: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);
static LEFT: AtomicU64 = AtomicU64::new(0);

/// The benchmark begins; it ends when [`done`] has been called so many times.
pub fn begin(parts: u64) {
    // Relaxed: the message that starts the others comes afterwards.
    LEFT.store(parts, Ordering::Relaxed);
    END.store(0, Ordering::Relaxed);
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

/// The benchmark ends now.
pub fn end() {
    END.store(clock::now(), Ordering::Relaxed);
}

/// Nanoseconds between beginning and end; `None` if it has not ended.
pub fn nanoseconds() -> Option<u64> {
    let (begin, end) = (BEGIN.load(Ordering::Relaxed), END.load(Ordering::Relaxed));
    (end != 0).then(|| ((end - begin) as u128 * 1_000_000_000 / clock::frequency() as u128) as u64)
}
