//! Shares of CPU time, as an application has them.

use core::fmt;
use core::future::Future;
use core::time::Duration;

use crate::arch::clock;
use crate::mem::OutOfMemory;
use crate::sched::process::ShareRef;
use crate::sched::spawn::builder::{Spawn, SpawnError};
use crate::sched::spawn::task::JoinHandle;
use crate::time::{of_ticks, ticks_of};

/// A share of CPU time: what is started with it uses no more than so much in each period, all together, on all cores. When that is used
/// up they are put aside until the next period begins, even if a core has nothing else to do.
///
/// What is started by one of them is in the share, too: processes, executors, and so the actors of those, a supervisor and its children.
/// So a share is one for a whole subtree. Actors that are spawned on an executor have that executor's share, whoever spawns them.
///
/// A turn that is in progress when nothing is left is ended by the timer's interrupt, and what it took beyond that is taken off the
/// next periods. Several cores may each run such a turn. What is not used in a period is gone.
///
/// Neither priority nor deadline matter: one that is aside waits, and with it those who wait for it. A mutex that it holds is held. When a period
/// begins two for each core come back, those that were put aside first, and one more for each that waits or ends; so of thousands each waits its
/// turn. One that is killed while it is aside ends when it comes back.
///
/// ```
/// # use magpie::sched;
/// use core::time::Duration;
/// use magpie::sched::{CpuShare, Spawn};
/// # sched::run_on_threads(2, 1, async {
/// let share = CpuShare::percent(20)?;
/// let scan = share.start(Spawn::new(), async { (1..=1000_u64).sum::<u64>() })?;
/// assert_eq!(scan.await, Ok(500_500));
/// println!("{} us, put aside {} times", share.usage().total.as_micros(), share.usage().put_aside);
///
/// // Two milliseconds of each fifty.
/// let rare = CpuShare::new(Duration::from_millis(2), Duration::from_millis(50))?;
/// # drop(rare);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Clone)]
pub struct CpuShare(ShareRef);

/// What a [`CpuShare`] was used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CpuShareUsage {
    /// By all turns that have ended.
    pub total: Duration,
    /// The most that was used of one period, with what the ones before had used of it: how much longer than that share the longest turns went
    /// on.
    pub most: Duration,
    /// How often a process, or an executor's worker or suspended behaviour, was put aside.
    pub put_aside: u64,
    /// How many are just now.
    pub aside: usize,
}

impl fmt::Debug for CpuShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuShare({:?})", self.usage())
    }
}

impl CpuShare {
    /// The period of [`percent`](Self::percent).
    pub const PERIOD: Duration = Duration::from_millis(10);

    /// The shortest period, and the longest: one beyond is taken for these.
    pub const PERIODS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));

    /// So much of one core's time, in each [`PERIOD`](Self::PERIOD); more than 100 is more than one core. At least 1.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn percent(percent: u32) -> Result<Self, OutOfMemory> {
        Self::new(Self::PERIOD * percent.max(1) / 100, Self::PERIOD)
    }

    /// So much in each period, at least a hundredth of it. A share that is shorter than a slice may be used up by one turn, and what that took
    /// beyond it is taken off the periods that follow.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(share: Duration, period: Duration) -> Result<Self, OutOfMemory> {
        let period = period.clamp(Self::PERIODS.0, Self::PERIODS.1);
        let share = share.max(period / 100);
        Ok(Self(ShareRef::new(ticks_of(share), ticks_of(period), clock::now())?))
    }

    /// Starts a process in this share, also if the caller is in another.
    ///
    /// # Errors
    /// As [`Spawn::start`].
    pub fn start<F>(&self, how: Spawn, future: F) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        how.start_in(Some(self.0.clone()), future)
    }

    /// What it was used for.
    pub fn usage(&self) -> CpuShareUsage {
        let used = self.0.used();
        CpuShareUsage {
            total: of_ticks(used.total),
            most: of_ticks(used.most),
            put_aside: used.put_aside,
            aside: used.aside,
        }
    }
}
