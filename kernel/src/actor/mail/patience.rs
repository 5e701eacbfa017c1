//! How long mail waits before it may leave the core that it waits on.
//!
//! Nobody reads the clock for a message. Whoever looks at a mailbox with mail notes when it was first seen; whoever finds
//! that note later knows that the mail has waited at least that long. The first message into an empty mailbox takes the
//! note back. So a mailbox that is emptied again and again is never found to have waited, however often one looks.
//!
//! Two looks race with that message: a note made a moment too late lets a fresh message seem old. It then leaves
//! early, which costs a hand-over and nothing else.

use crate::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sched::{self, Setting};

/// What is known of the mail in one mailbox. Every access is relaxed: these are hints.
pub(super) struct Patience {
    /// When the mail that waits was first seen waiting, in clock ticks; 0: not yet.
    seen: AtomicU64,
    /// The last hand-over kept another core busy for long enough to be worth it.
    pays: AtomicBool,
    /// The mail that waits was handed over; how long it keeps its core busy will tell whether that pays.
    tried: AtomicBool,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { seen: AtomicU64::new(0), pays: AtomicBool::new(false), tried: AtomicBool::new(false) }
    }

    /// Nothing is known.
    pub(super) fn reset(&self) {
        self.begin();
        self.pays.store(false, Ordering::Relaxed);
        self.tried.store(false, Ordering::Relaxed);
    }

    /// The first message has come into an empty mailbox.
    #[inline(always)]
    pub(super) fn begin(&self) {
        self.seen.store(0, Ordering::Relaxed);
    }

    /// Whether the mail was seen waiting at least `wait` clock ticks ago. The first to ask notes `now`.
    pub(super) fn is_over(&self, now: u64, wait: u64) -> bool {
        match self.seen.load(Ordering::Relaxed) {
            0 => {
                self.seen.store(now, Ordering::Relaxed);
                false
            }
            seen => now.saturating_sub(seen) >= wait,
        }
    }

    #[inline(always)]
    pub(super) fn pays(&self) -> bool {
        self.pays.load(Ordering::Relaxed)
    }

    /// Whether the next mail is to be timed, because it was handed over.
    #[inline(always)]
    pub(super) fn is_tried(&self) -> bool {
        self.tried.load(Ordering::Relaxed)
    }

    /// The mail that waits is being handed over to another core.
    pub(super) fn hand_over(&self) {
        self.tried.store(true, Ordering::Relaxed);
    }

    /// A hand-over kept another core busy for so many clock ticks.
    pub(super) fn note_handed_over(&self, ticks: u64) {
        let worth = sched::setting_ticks(Setting::ShareWorthMicroseconds);
        self.pays.store(ticks >= worth, Ordering::Relaxed);
        self.tried.store(false, Ordering::Relaxed);
    }
}
