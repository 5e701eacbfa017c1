//! When work leaves the core that it came up on.
//!
//! Waking a core costs thousands of instructions, a short turn a few hundred. So what becomes runnable stays where it is
//! unless it waits:
//!
//! - nobody is called for a lone process that its core will reach soon. A thief is called at once only for a queue of
//!   `share.processes`, or if the processes that were taken from that core lately kept the thief busy for long
//!   ([`Worth`]);
//! - what has waited for `share.wait_us` may be taken, however little it is. A core is *crowded* while it has one
//!   process in hand and at least one waiting; whoever looks at it notes since when. A core where processes only wake
//!   one another is never found crowded for long, because in between it has only one.
//!
//! Two parties look. A core that has become idle looks a few times (`share.looks`), each time after twice as long, and
//! then sleeps until it is called. A busy core looks at itself when its slice ends; if something waits there, once more
//! after `share.wait_us`, and then calls. So what waits behind a turn, however long, leaves within a slice and two waits
//! (one for the caller to be sure, one for the called core to see for itself).
//!
//! Mail follows the same rule, see `actor/worker/surplus.rs`.

use crate::arch::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sched::policy::settings::{self, Setting};

/// Since when a core has been seen to have more than it runs.
pub(crate) struct Crowd(AtomicU64);

impl Crowd {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// It does not hold. Written only if it is news: others read it.
    #[inline(always)]
    pub(crate) fn ends(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// Whether `is_crowded` holds at `now`, and did at a look long ago and at each since. Relaxed: a hint; two cores
    /// that look at once may take each other's note for their own.
    pub(crate) fn lasts(&self, is_crowded: bool, now: u64) -> bool {
        if !is_crowded {
            self.ends();
            return false;
        }
        match self.0.load(Ordering::Relaxed) {
            0 => {
                self.0.store(now, Ordering::Relaxed);
                false
            }
            since => now.saturating_sub(since) >= settings::ticks(Setting::ShareWaitMicroseconds),
        }
    }
}

/// Whether taking work from somebody has been worth a hand-over: processes from a core, mailboxes from a worker.
///
/// A thief times the first turn, or batch, after each theft. After a long one the next processes may leave at once.
/// After a few short ones in a row they stay until they have waited for long.
pub(crate) struct Worth(AtomicU32);

impl Worth {
    /// Short turns in a row until processes are kept.
    const MOST: u32 = 3;

    /// Before anything was taken.
    pub(crate) fn new(pays: bool) -> Self {
        Self(AtomicU32::new(if pays { Self::MOST } else { 0 }))
    }

    pub(crate) fn pays(&self) -> bool {
        // Relaxed, here and below: a hint.
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Records that what was taken kept the thief busy for this many clock ticks at first.
    pub(crate) fn note(&self, ticks: u64) {
        let left = if ticks >= settings::ticks(Setting::ShareWorthMicroseconds) {
            Self::MOST
        } else {
            self.0.load(Ordering::Relaxed).saturating_sub(1)
        };
        self.0.store(left, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Crowd, Setting, Worth, settings};

    #[test]
    fn a_crowd_must_be_seen_twice_and_not_dissolve_between() {
        let wait = settings::ticks(Setting::ShareWaitMicroseconds);
        let crowd = Crowd::new();
        assert!(!crowd.lasts(true, 1));
        assert!(!crowd.lasts(true, wait));
        assert!(crowd.lasts(true, wait + 1));
        assert!(!crowd.lasts(false, wait + 2));
        assert!(!crowd.lasts(true, wait + 3));
        assert!(crowd.lasts(true, 2 * wait + 3));
    }

    #[test]
    fn a_few_short_turns_in_a_row_end_what_a_long_one_begins() {
        let long = settings::ticks(Setting::ShareWorthMicroseconds);
        let worth = Worth::new(true);
        assert!(worth.pays());
        for _ in 0..Worth::MOST {
            assert!(worth.pays());
            worth.note(long - 1);
        }
        assert!(!worth.pays());
        worth.note(long);
        worth.note(long - 1);
        assert!(worth.pays());
    }
}
