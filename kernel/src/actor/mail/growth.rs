//! How long a mailbox's next segment is: twice as long as what waits, up to [`LONGEST_BYTES`]; beyond that a part of what waits.
//!
//! A segment is zeroed when it is made, as a rule outside every lock and with preemption enabled. What takes longer than a slice has its maker
//! suspended in the middle of that, and meanwhile the next sender finds no room either: with 100,000 messages in a mailbox and slices of 50 µs all
//! memory went into 80 segments of 3 MB, of which one was needed. So there is a limit. Of very much each segment is a part of what waits all the same,
//! because some things take as long as a chain has segments. And while somebody makes a long one, whoever needs no more takes a
//! [short](SHORT_BYTES) one.
//!
//! The maker may be killed, and its note stays. It holds until [`MOST_SHORT`] short segments were begun, which together are as long as what was to be made;
//! then whoever is next makes a long one. So makers have about as much memory as mail has, and at most as many times that as send at once.

use crate::arch::atomic::{AtomicUsize, Ordering};

/// Up to so many bytes a mailbox's segments grow until all that waits lies in one, and nothing is allocated any more. To make it takes some 9,000 instructions.
const LONGEST_BYTES: usize = 1 << 18;

/// Up to so many bytes are made by anyone at any time.
const SHORT_BYTES: usize = 1 << 16;

/// Where a segment is made with preemption disabled it has no more bytes: that takes some 1,200 instructions.
pub(crate) const AT_ONCE_BYTES: usize = 1 << 15;

/// Of very much the next segment is one of so many parts: a gigabyte lies in 41 segments.
const PART: usize = 4;

/// How many short ones are made while one makes a long one.
const MOST_SHORT: usize = 16;

/// The bits of a note in which they are counted.
const COUNT: usize = 2 * MOST_SHORT - 1;

/// What is being made for one mailbox: bytes, rounded down, with the number of short segments made meanwhile; 0 for nothing.
///
/// Every access is relaxed, and a look and a note are two steps: two that begin at the same moment both make a long one, which costs memory
/// for a while and nothing else.
pub(crate) struct Growth(AtomicUsize);

impl Growth {
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Whether one at a time makes a segment of so many bytes.
    fn is_long(bytes: usize) -> bool {
        bytes > SHORT_BYTES
    }

    /// How long the next segment is to be, in bytes, that were as long as `needed_bytes` if it could be made at once, where so many bytes wait.
    pub(super) fn limited(needed_bytes: usize, waiting_bytes: usize) -> usize {
        needed_bytes.min(LONGEST_BYTES.max(waiting_bytes / PART))
    }

    /// Somebody is about to make a segment for what needs so many bytes: how many it makes. It says so when it is [made](Self::end).
    pub(crate) fn begin(&self, needed_bytes: usize) -> usize {
        if !Self::is_long(needed_bytes) {
            return needed_bytes;
        }
        let note = self.0.load(Ordering::Relaxed);
        if note & !COUNT >= needed_bytes & !COUNT && note & COUNT < MOST_SHORT {
            self.0.store(note + 1, Ordering::Relaxed);
            return (needed_bytes / MOST_SHORT).max(SHORT_BYTES);
        }
        self.0.store(needed_bytes & !COUNT, Ordering::Relaxed);
        needed_bytes
    }

    /// A segment of so many bytes was made, or there was no memory for it.
    pub(crate) fn end(&self, bytes: usize) {
        if Self::is_long(bytes) && self.0.load(Ordering::Relaxed) & !COUNT == bytes & !COUNT {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// Nobody makes anything.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Growth, LONGEST_BYTES, MOST_SHORT, PART, SHORT_BYTES};

    const LONG_BYTES: usize = 3_000_001;

    #[test]
    fn one_at_a_time_makes_a_long_segment() {
        let growth = Growth::new();
        assert_eq!(growth.begin(LONG_BYTES), LONG_BYTES);
        assert_eq!(growth.begin(LONG_BYTES), LONG_BYTES / MOST_SHORT, "while it is made");
        assert_eq!(growth.begin(2 * SHORT_BYTES), SHORT_BYTES, "no shorter than a short one");
        growth.end(SHORT_BYTES);
        assert_eq!(
            growth.begin(LONG_BYTES),
            LONG_BYTES / MOST_SHORT,
            "a short one was made, not the long one"
        );
        growth.end(LONG_BYTES);
        assert_eq!(growth.begin(LONG_BYTES), LONG_BYTES, "when it is made");
    }

    #[test]
    fn segments_grow_up_to_a_limit_and_then_with_what_waits() {
        assert_eq!(Growth::limited(2048, 1024), 2048);
        assert_eq!(Growth::limited(2_000_000, 1_000_000), LONGEST_BYTES);
        let much = 100 * LONGEST_BYTES;
        assert_eq!(Growth::limited(2 * much, much), much / PART);
        let (mut waiting, mut segments) = (1024, 1);
        while waiting < 1 << 30 {
            waiting += Growth::limited(2 * waiting, waiting);
            segments += 1;
        }
        assert!(segments < 60, "{segments} for a gigabyte");
    }

    #[test]
    fn whoever_needs_more_than_is_being_made_makes_it() {
        let growth = Growth::new();
        assert_eq!(growth.begin(LONG_BYTES), LONG_BYTES);
        assert_eq!(growth.begin(2 * LONG_BYTES), 2 * LONG_BYTES);
        growth.end(LONG_BYTES);
        assert!(growth.begin(2 * LONG_BYTES) < LONG_BYTES, "the longer one is still being made");
    }

    #[test]
    fn short_ones_are_made_by_anybody() {
        let growth = Growth::new();
        for _ in 0..2 * MOST_SHORT {
            assert_eq!(growth.begin(SHORT_BYTES), SHORT_BYTES);
        }
    }

    #[test]
    fn one_that_is_never_made_is_given_up() {
        let growth = Growth::new();
        assert_eq!(growth.begin(LONG_BYTES), LONG_BYTES);
        let meanwhile: usize = (0..MOST_SHORT).map(|_| growth.begin(LONG_BYTES)).sum();
        assert!(meanwhile <= LONG_BYTES && meanwhile > LONG_BYTES - LONG_BYTES / MOST_SHORT, "{meanwhile}");
        assert_eq!(growth.begin(LONG_BYTES), LONG_BYTES, "as much was made meanwhile");
    }
}
