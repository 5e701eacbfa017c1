//! Starting processes.

use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::time::Duration;

use crate::arch::{CoreId, CoreSet};
use crate::mem::{MemoryLimit, Payer};
use crate::sched::cores::population::{self, Unbroken};
use crate::sched::cores::{self, here};
use crate::sched::place::enqueue;
use crate::sched::process::{Deadline, Priority, ProcessRef, Runnable, ShareRef};
use crate::sched::spawn::task::{self, JoinHandle, Sort};
use crate::sync::PreemptGuard;

/// Why a process was not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// As many processes exist as [`Setting::ProcessLimit`](crate::sched::Setting::ProcessLimit) allows.
    TooManyProcesses,
    /// No memory for it, or none within its limit.
    OutOfMemory,
    /// None of the cores that it may run on exists.
    NoSuchCore,
    /// It is pinned to a core that is offline.
    CoreOffline,
    /// It has a deadline and is not of priority `High`.
    DeadlineNotHigh,
    /// Its [`MemoryLimit`] was dropped, and nothing has that any more.
    LimitDropped,
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooManyProcesses => "too many processes: raise sched.processes",
            Self::OutOfMemory => "out of memory: the process was not started",
            Self::CoreOffline => {
                "it is pinned to a core that is offline: bring the core back, or pin it elsewhere"
            }
            Self::DeadlineNotHigh => "only a process of priority High can have a deadline",
            Self::LimitDropped => "its memory limit was dropped: keep it while something is to be started",
            Self::NoSuchCore => "none of the cores that it may run on exists: the process was not started",
        })
    }
}

impl core::error::Error for SpawnError {}

/// A process that is to be started otherwise than by [`spawn`]: at another priority, on some cores only.
///
/// ```
/// # use magpie::{sched, time};
/// use magpie::arch::{CoreId, CoreSet};
/// use magpie::sched::{Priority, Spawn};
/// # sched::run_on_threads(2, 1, async {
/// let urgent = Spawn::new().priority(Priority::High).pinned(CoreId::BOOT);
/// let here = urgent.start(async { sched::current_core() })?;
/// assert_eq!(here.await, Ok(Some(CoreId::BOOT)));
///
/// // Wherever there is room, but on the core that boots.
/// let elsewhere = Spawn::new().affinity(CoreSet::ALL.without(CoreId::BOOT));
/// let there = elsewhere.start(async { sched::current_core() })?;
/// assert_eq!(there.await, Ok(CoreId::new(1)));
/// # Ok::<(), sched::SpawnError>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Spawn {
    priority: Priority,
    deadline: Option<Duration>,
    affinity: u64,
    /// Without, the caller's.
    payer: Option<Payer>,
}

/// Counts a process that may run on these cores, which is about to be started before `unbroken` is given up.
///
/// # Errors
/// None more may be started, or its only core is offline; then nothing was counted.
pub(crate) fn count(affinity: u64, unbroken: &impl Unbroken) -> Result<(), SpawnError> {
    if !population::count_start(unbroken) {
        return Err(SpawnError::TooManyProcesses);
    }
    if !population::count_pinned(affinity) {
        population::uncount_start();
        return Err(SpawnError::CoreOffline);
    }
    Ok(())
}

/// Starts a process with the defaults: `Normal`, on any core.
///
/// # Errors
/// [`SpawnError`]; then the future was dropped.
///
/// ```
/// # use magpie::{sched, time};
/// # sched::run_on_threads(2, 1, async {
/// let answer = sched::spawn(async { 6 * 7 })?;
/// assert_eq!(answer.await, Ok(42));
/// # Ok::<(), sched::SpawnError>(())
/// # }).unwrap().unwrap();
/// ```
pub fn spawn<F>(future: F) -> Result<JoinHandle<F::Output>, SpawnError>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Spawn::new().start(future)
}

/// Starts a procedure that belongs to no actor: a process whose body is a plain closure.
///
/// # Errors
/// As for [`spawn`].
///
/// ```
/// # use magpie::{sched, time};
/// # sched::run_on_threads(2, 1, async {
/// let sum = sched::procedure(|| (1..=10).sum::<u32>())?;
/// assert_eq!(sum.await, Ok(55));
/// # Ok::<(), sched::SpawnError>(())
/// # }).unwrap().unwrap();
/// ```
pub fn procedure<R: Send + 'static>(
    body: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>, SpawnError> {
    spawn(async move { body() })
}

impl Spawn {
    /// `Normal`, on any core.
    pub const fn new() -> Self {
        Self { priority: Priority::Normal, deadline: None, affinity: u64::MAX, payer: None }
    }

    /// With this priority.
    pub const fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Due so long after each time that it becomes runnable, that is, after its start and after each wake-up: of the `High` processes
    /// of a core those with a deadline run first, and of those the one that is due first. It preempts the others at once.
    ///
    /// A yield, or being preempted, does not change when it is due; but once it is late, what it has left to do is due that long after
    /// the end of that turn. Whoever is late at a turn's end is counted
    /// ([`deadlines_missed`](crate::stats::CoreStatistics::deadlines_missed)); nothing else happens.
    ///
    /// Those with a deadline run before all other `High` ones: together they must leave some time to those.
    ///
    /// ```
    /// # use magpie::{sched, time};
    /// use core::time::Duration;
    /// use magpie::sched::{Priority, Spawn, SpawnError};
    /// # sched::run_on_threads(2, 1, async {
    /// let prompt = Spawn::new().priority(Priority::High).deadline(Duration::from_millis(2));
    /// let ticks = prompt.start(async {
    ///     for _ in 0..3 {
    ///         time::sleep(Duration::from_millis(5)).await;
    ///         // What is to be done within 2 ms from here.
    ///     }
    /// })?;
    /// assert_eq!(ticks.process().deadline(), Some(Duration::from_millis(2)));
    /// ticks.await?;
    ///
    /// let refused = Spawn::new().deadline(Duration::from_millis(2)).start(async {});
    /// assert_eq!(refused.err(), Some(SpawnError::DeadlineNotHigh));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub const fn deadline(self, deadline: Duration) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// On these cores only; those of them that do not exist count for nothing.
    pub const fn affinity(self, cores: CoreSet) -> Self {
        Self { affinity: cores.mask(), ..self }
    }

    /// On this core only.
    pub const fn pinned(self, core: CoreId) -> Self {
        self.affinity(CoreSet::of(core))
    }

    /// With this limit for its memory, and for that of all that it starts. Otherwise it has its parent's, if that has one.
    ///
    /// ```
    /// # use magpie::sched;
    /// use magpie::mem::MemoryLimit;
    /// use magpie::sched::{Spawn, SpawnError};
    /// # sched::run_on_threads(2, 1, async {
    /// let limit = MemoryLimit::new(64 * 1024)?;
    /// let modest = Spawn::new().memory(&limit);
    /// modest.start(async { vec![0_u8; 1000].len() })?.await?;
    /// drop(limit);
    /// // Nothing has it any more.
    /// assert_eq!(modest.start(async {}).err(), Some(SpawnError::LimitDropped));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn memory(self, limit: &MemoryLimit) -> Self {
        Self { payer: Some(limit.payer()), ..self }
    }

    /// Starts a process.
    ///
    /// # Errors
    /// [`SpawnError`]; then the future was dropped.
    pub fn start<F>(self, future: F) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.start_in(here::share_here(), future)
    }

    /// As [`Self::start`], in that share.
    pub(crate) fn start_in<F>(
        self,
        share: Option<ShareRef>,
        future: F,
    ) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // SAFETY: just started, to be joined.
        self.create_and_start::<F, F>(share, future, Sort::Joined, |_| {})
            .map(|process| unsafe { JoinHandle::of(process) })
    }

    /// As [`Self::start`], but nobody will take the result, and it is seen under the name of the type `N`.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(crate) fn start_alone<N, F>(self, future: F) -> Result<ProcessRef, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.create_and_start::<N, F>(here::share_here(), future, Sort::Alone, |_| {})
    }

    /// As [`Self::start`], but nobody will take the result; `before` is called when nothing can keep the process from starting any more, and before it can be
    /// killed, with preemption disabled.
    pub(crate) fn start_alone_after<F>(
        self,
        future: F,
        before: impl FnOnce(&ProcessRef),
    ) -> Result<ProcessRef, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.create_and_start::<F, F>(here::share_here(), future, Sort::Alone, before)
    }

    #[inline(always)]
    fn create_and_start<N, F>(
        self,
        share: Option<ShareRef>,
        future: F,
        sort: Sort,
        before: impl FnOnce(&ProcessRef),
    ) -> Result<ProcessRef, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let affinity = self.affinity & cores::existing();
        if affinity == 0 {
            return Err(SpawnError::NoSuchCore);
        }
        if self.payer.is_some_and(|payer| !payer.lives()) {
            return Err(SpawnError::LimitDropped);
        }
        let deadline = match self.deadline {
            None => None,
            deadline => keep(deadline, self.priority)?,
        };
        // A mask of every core also includes those that come online later.
        let affinity = if self.affinity == u64::MAX { u64::MAX } else { affinity };
        let created =
            task::create::<N, F>(future, sort, self.priority, (deadline, share), affinity, self.payer);
        let Ok((process, reference)) = created else { return Err(SpawnError::OutOfMemory) };
        // Until it is queued.
        let here = PreemptGuard::new();
        if let Err(error) = count(affinity, &here) {
            drop(here);
            // SAFETY: just made, with the scheduler's reference, which nobody else will give up. With the other the future goes.
            drop(unsafe { ProcessRef::from_counted(process) });
            return Err(error);
        }
        before(&reference);
        // SAFETY: just made, with the scheduler's reference.
        start(unsafe { Runnable::new(process) });
        Ok(reference)
    }
}

/// Memory for a deadline, if there is one.
pub(crate) fn keep(
    deadline: Option<Duration>,
    priority: Priority,
) -> Result<Option<Box<Deadline>>, SpawnError> {
    match deadline {
        None => Ok(None),
        Some(_) if priority != Priority::High => Err(SpawnError::DeadlineNotHigh),
        Some(deadline) => Deadline::new(deadline).map(Some).ok_or(SpawnError::OutOfMemory),
    }
}

impl Default for Spawn {
    fn default() -> Self {
        Self::new()
    }
}

fn start(process: Runnable) {
    process.run_state().mark_queued();
    enqueue::spawned(process);
}
