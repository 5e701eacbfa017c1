//! What a core spends its time on, in clock ticks.

use super::counter::Counter;
use crate::arch::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::arch::clock;

/// What a core is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// Running processes, and choosing them: what goes by between turns can be told apart in an image with traces.
    Running,
    /// Searching other cores for work.
    Stealing,
    /// Waiting.
    Idle,
    /// Handling an interrupt.
    Interrupt,
}

impl Activity {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Running, Self::Stealing, Self::Idle, Self::Interrupt];
}

/// One core's time, by activity. Written by that core alone; read by anyone, who may see an interval counted
/// twice or not at all at the moment when it ends.
pub struct TimeSheet {
    spent: [Counter; Activity::ALL.len()],
    current: AtomicU32,
    /// When the current activity began; 0 before the core has started.
    since: AtomicU64,
}

/// What a core did when it was interrupted, as a number: to name it would take a table.
pub(crate) struct Interrupted(u32);

impl TimeSheet {
    pub(super) const fn new() -> Self {
        Self {
            spent: [const { Counter::new() }; Activity::ALL.len()],
            current: AtomicU32::new(Activity::Running as u32),
            since: AtomicU64::new(0),
        }
    }

    // Relaxed throughout: one writer, and statistics for everyone else.

    fn current(&self) -> Activity {
        Activity::ALL[self.current.load(Ordering::Relaxed) as usize % Activity::ALL.len()]
    }

    /// From now on time counts as `activity`. Returns what it counted as until now, and what the clock says.
    #[inline]
    pub(crate) fn enter(&self, activity: Activity) -> (Activity, u64) {
        let now = clock::now();
        let since = self.since.load(Ordering::Relaxed);
        let before = self.current();
        if since != 0 {
            self.spent[before as usize].add(now.saturating_sub(since));
        }
        self.current.store(activity as u32, Ordering::Relaxed);
        self.since.store(now, Ordering::Relaxed);
        (before, now)
    }

    /// An interrupt's handler begins: from now on time counts as [`Activity::Interrupt`]. Returns what [`Self::end_interrupt`] needs, and what
    /// the clock says.
    #[inline(always)]
    pub(crate) fn begin_interrupt(&self) -> (Interrupted, u64) {
        let (now, since) = (clock::now(), self.since.load(Ordering::Relaxed));
        let before = self.current.load(Ordering::Relaxed);
        if since != 0 {
            self.spent[before as usize % Activity::ALL.len()].add(now.saturating_sub(since));
        }
        self.current.store(Activity::Interrupt as u32, Ordering::Relaxed);
        self.since.store(now, Ordering::Relaxed);
        (Interrupted(before), now)
    }

    /// The handler that began at `began` ends. Returns what the clock says.
    #[inline(always)]
    pub(crate) fn end_interrupt(&self, Interrupted(before): Interrupted, began: u64) -> u64 {
        let now = clock::now();
        self.spent[Activity::Interrupt as usize].add(now.saturating_sub(began));
        self.current.store(before, Ordering::Relaxed);
        self.since.store(now, Ordering::Relaxed);
        now
    }

    /// As [`Self::begin_interrupt`] on a core that waits, which therefore needs no more than what the clock says.
    #[inline(always)]
    pub(crate) fn begin_awaited(&self) -> u64 {
        let (now, since) = (clock::now(), self.since.load(Ordering::Relaxed));
        // Sums wrap as the clock's differences do.
        self.spent[Activity::Idle as usize].add(now.wrapping_sub(since));
        self.current.store(Activity::Interrupt as u32, Ordering::Relaxed);
        self.since.store(now, Ordering::Relaxed);
        now
    }

    /// As [`Self::end_interrupt`] of one that [`Self::begin_awaited`] has begun. From now on time counts as [`Activity::Running`].
    #[inline(always)]
    pub(crate) fn end_awaited(&self, began: u64) -> u64 {
        let now = clock::now();
        self.spent[Activity::Interrupt as usize].add(now.wrapping_sub(began));
        self.current.store(Activity::Running as u32, Ordering::Relaxed);
        self.since.store(now, Ordering::Relaxed);
        now
    }

    /// Whether the core waits, as far as its time says.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.current.load(Ordering::Relaxed) == Activity::Idle as u32
    }

    /// Since when it does what it is doing, in clock ticks, unless that is waiting, or it has not started.
    #[cfg(target_os = "none")]
    pub(crate) fn busy_since(&self) -> Option<u64> {
        let since = self.since.load(Ordering::Relaxed);
        (since != 0 && self.current() != Activity::Idle).then_some(since)
    }

    /// When the current activity began. By this core.
    #[cfg(feature = "traced")]
    pub(crate) fn since(&self) -> u64 {
        self.since.load(Ordering::Relaxed)
    }

    /// Ticks spent so far, with the interval that has not ended yet.
    pub fn ticks(&self, activity: Activity) -> u64 {
        let since = self.since.load(Ordering::Relaxed);
        let open =
            if since != 0 && self.current() == activity { clock::now().saturating_sub(since) } else { 0 };
        self.spent[activity as usize].get() + open
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, TimeSheet};
    use crate::arch::clock;

    #[test]
    fn open_intervals_count_for_what_is_being_done() {
        let sheet = TimeSheet::new();
        assert_eq!(sheet.ticks(Activity::Running), 0, "a core that was never started");
        assert_eq!(sheet.enter(Activity::Running).0, Activity::Running);
        assert_eq!(sheet.enter(Activity::Idle).0, Activity::Running);
        let (begin, running) = (clock::now(), sheet.ticks(Activity::Running));
        while sheet.ticks(Activity::Idle) == 0 {}
        assert!(clock::now() > begin);
        assert_eq!(sheet.ticks(Activity::Running), running, "what is over does not grow");
        assert_eq!(sheet.ticks(Activity::Stealing), 0);
    }
}
