//! When work leaves the core that it came up on.
//!
//! Waking a core costs thousands of instructions, a short turn a few hundred. So what becomes runnable stays where it is
//! unless it waits:
//!
//! - nobody is called for a lone process that its core will reach soon. A thief is called at once only for a queue of
//!   `share.processes`, unless what thieves found there of late was little, or if the processes that were taken from that core lately kept the
//!   thief busy for long ([`Worth`]);
//! - what has waited for `share.wait_us` may be taken, however little it is, unless thieves have come there in vain ([`Crowd`]). A core is *crowded* while it has one
//!   process in hand and at least one waiting; whoever looks at it notes since when. A core where processes only wake
//!   one another is never found crowded for long, because in between it has only one.
//!
//! Two parties look. A core that has become idle looks a few times (`share.looks`), each time after twice as long, and
//! then sleeps until it is called. A busy core looks at itself when its slice ends; if something waits there, once more
//! after `share.wait_us`, and then calls. So what waits behind a turn, however long, leaves within a slice and two waits
//! (one for the caller to be sure, one for the called core to see for itself). Where a slice is shorter than a wait it may be three: the first look comes no
//! sooner after one that was the second than that.
//!
//! Mail follows the same rule, see `actor/worker/surplus.rs`.

use crate::arch::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sched::policy::settings::{self, Setting};

/// Since when a core has been seen to have more than it runs, and what came of it when thieves took that.
///
/// Where processes wait for one another, others come for each that has had its turn, and what a thief takes is done as soon as it has come. If that took
/// less than [`Self::ENOUGH`] times as long as to take it, thieves wait for twice `share.wait_us` before they try again, then for twice as long each time,
/// up to sixteen times that setting. One that finds more to do may have been kept busy by others' work, so it halves how often they came in vain. Only where what waits has its turn before long, see `place/backlog.rs`.
pub(crate) struct Crowd {
    since: AtomicU64,
    /// How many thefts were in vain, up to [`Self::MOST`], half as many after one that was not; and when the last one was made.
    in_vain: AtomicU32,
    tried_at: AtomicU64,
}

impl Crowd {
    const MOST: u32 = 4;

    /// So many times as long as a theft took must keep the thief busy.
    pub(crate) const ENOUGH: u64 = 16;

    pub(crate) const fn new() -> Self {
        Self { since: AtomicU64::new(0), in_vain: AtomicU32::new(0), tried_at: AtomicU64::new(0) }
    }

    /// It does not hold. Written only if it is news: others read it.
    #[inline(always)]
    pub(crate) fn ends(&self) {
        if self.since.load(Ordering::Relaxed) != 0 {
            self.since.store(0, Ordering::Relaxed);
        }
    }

    /// Records whether `is_crowded` holds at `now`. Relaxed, as everywhere here: a hint; two cores that look at once may take each other's note for
    /// their own.
    #[inline(always)]
    pub(crate) fn note(&self, is_crowded: bool, now: u64) {
        if !is_crowded {
            self.ends();
        } else if self.since.load(Ordering::Relaxed) == 0 {
            self.since.store(now, Ordering::Relaxed);
        }
    }

    /// As [`Self::note`]: whether it holds, and did at a look long ago and at each since.
    pub(crate) fn lasts(&self, is_crowded: bool, now: u64) -> bool {
        self.note(is_crowded, now);
        is_crowded
            && self.since.load(Ordering::Relaxed) + settings::ticks(Setting::ShareWaitMicroseconds) <= now
    }

    /// Whether a thief may try: the last ones have not come in vain, or that was long ago.
    pub(crate) fn may_be_tried(&self, now: u64) -> bool {
        let in_vain = self.in_vain.load(Ordering::Relaxed);
        let patience = settings::ticks(Setting::ShareWaitMicroseconds) << in_vain;
        in_vain == 0 || self.tried_at.load(Ordering::Relaxed) + patience <= now
    }

    /// A thief has taken something at `now`. If thefts were in vain of late it is the only one until it is judged, or has had time enough.
    pub(crate) fn note_theft(&self, now: u64) {
        self.tried_at.store(now, Ordering::Relaxed);
    }

    /// The thief that took something at that moment has nothing to do any more: whether it had enough. Of several the last one tells.
    pub(crate) fn judge(&self, tried_at: u64, had_enough: bool) {
        if self.tried_at.load(Ordering::Relaxed) == tried_at {
            let in_vain = self.in_vain.load(Ordering::Relaxed);
            self.in_vain.store(
                if had_enough { in_vain / 2 } else { (in_vain + 1).min(Self::MOST) },
                Ordering::Relaxed,
            );
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
    fn thieves_that_find_little_try_seldom_until_one_finds_more() {
        let wait = settings::ticks(Setting::ShareWaitMicroseconds);
        let crowd = Crowd::new();
        let mut now = 1;
        assert!(crowd.may_be_tried(now));
        for patience in [2, 4, 8, 16, 16] {
            crowd.note_theft(now);
            crowd.judge(now, false);
            let next = now + patience * wait;
            assert!(!crowd.may_be_tried(next - 1), "so soon after {patience}");
            assert!(crowd.may_be_tried(next), "never again");
            now = next;
        }
        crowd.note_theft(now);
        assert!(!crowd.may_be_tried(now + 1), "two at once");
        // Who took something before the last one tells nothing.
        crowd.judge(now - 1, true);
        assert!(!crowd.may_be_tried(now + 1));
        for patience in [4, 2] {
            crowd.judge(now, true);
            assert!(
                !crowd.may_be_tried(now + patience * wait - 1) && crowd.may_be_tried(now + patience * wait)
            );
        }
        crowd.judge(now, true);
        assert!(crowd.may_be_tried(now + 1));
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
