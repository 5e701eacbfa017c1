//! Starting processes.

use core::fmt;
use core::future::Future;
use core::ptr::NonNull;

use super::cores::{self, Core};
use super::enqueue;
use super::priority::Priority;
use super::process::Header;
use super::settings::{self, Setting};
use super::task::{self, JoinHandle};
use crate::arch::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::arch::{CoreId, MAX_CORES, barrier};
use crate::sync::PreemptGuard;

/// Why a process was not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpawnError {
    /// As many processes exist as [`Setting::ProcessLimit`] allows.
    TooManyProcesses,
    /// No memory for it.
    OutOfMemory,
    /// Its affinity mask names no core that exists.
    NoSuchCore,
    /// It is pinned to a core that is offline.
    CoreOffline,
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooManyProcesses => "too many processes: raise sched.processes",
            Self::OutOfMemory => "out of memory: the process was not started",
            Self::CoreOffline => {
                "it is pinned to a core that is offline: bring the core back, or pin it elsewhere"
            }
            Self::NoSuchCore => "no core of the affinity mask exists: the process was not started",
        })
    }
}

impl core::error::Error for SpawnError {}

/// What does not fit the default: see [`Spawn::priority`] and its siblings.
#[derive(Clone, Copy, Debug)]
pub struct Spawn {
    priority: Priority,
    affinity: u64,
}

/// Processes that exist.
static LIVE: AtomicU64 = AtomicU64::new(0);

/// Of those, how many can run on one core only.
static PINNED: [AtomicU32; MAX_CORES] = [const { AtomicU32::new(0) }; MAX_CORES];

/// How many processes can run on no other core.
pub(super) fn pinned_to(core: CoreId) -> u32 {
    // Relaxed: ordered by the caller's barrier.
    PINNED[core.index()].load(Ordering::Relaxed)
}

fn pinned_core(affinity: u64) -> Option<usize> {
    affinity.is_power_of_two().then(|| affinity.trailing_zeros() as usize)
}

/// Counts a process with this mask if it is pinned. Whether its core is in service.
pub(super) fn count_pinned(affinity: u64) -> Result<(), SpawnError> {
    let Some(core) = pinned_core(affinity) else { return Ok(()) };
    // Relaxed: ordered by the barrier.
    PINNED[core].fetch_add(1, Ordering::Relaxed);
    // Pairs with the barrier in `offline`.
    barrier::full();
    if cores::existing() & affinity != 0
        && cores::online() & affinity == 0
        && cores::started() & affinity != 0
    {
        uncount_pinned(affinity);
        return Err(SpawnError::CoreOffline);
    }
    Ok(())
}

pub(super) fn uncount_pinned(affinity: u64) {
    if let Some(core) = pinned_core(affinity) {
        // Relaxed: a process that has ended needs no core.
        PINNED[core].fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many processes exist.
pub fn live_processes() -> u64 {
    // Relaxed: a statistic.
    LIVE.load(Ordering::Relaxed)
}

pub(super) fn count_start() -> Result<(), SpawnError> {
    // Relaxed: a limit; nothing is inferred from the count.
    if LIVE.fetch_add(1, Ordering::Relaxed) >= settings::get(Setting::ProcessLimit) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        return Err(SpawnError::TooManyProcesses);
    }
    Ok(())
}

/// A detached piece is a process until it ends. It is bounded by the stacks that can be lent, and refusing
/// it would let a hog go on, so no limit applies.
pub(super) fn count_detached(affinity: u64) {
    // Relaxed: as above.
    LIVE.fetch_add(1, Ordering::Relaxed);
    // Its core may be offline only if its worker was not pinned to it, so this cannot fail.
    let _ = count_pinned(affinity);
}

/// A process was counted and not started.
pub(super) fn uncount_start() {
    // Relaxed: as above.
    LIVE.fetch_sub(1, Ordering::Relaxed);
}

/// A process has ended.
pub(super) fn note_end(header: &Header) {
    uncount_start();
    uncount_pinned(header.affinity());
}

/// Starts a process with the defaults: `Normal`, on any core.
pub fn spawn<F>(future: F) -> Result<JoinHandle<F::Output>, SpawnError>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Spawn::new().start(future)
}

/// Starts a procedure that belongs to no actor: a process whose body is a plain closure.
pub fn procedure<R: Send + 'static>(
    body: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>, SpawnError> {
    spawn(async move { body() })
}

impl Spawn {
    /// `Normal`, on any core.
    pub const fn new() -> Self {
        Self { priority: Priority::Normal, affinity: u64::MAX }
    }

    /// With this priority.
    pub const fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// On the cores in this mask only.
    pub const fn affinity(self, affinity: u64) -> Self {
        Self { affinity, ..self }
    }

    /// On this core only.
    pub const fn pinned(self, core: CoreId) -> Self {
        self.affinity(core.mask())
    }

    /// Starts a process.
    pub fn start<F>(self, future: F) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let affinity = self.affinity & super::cores::existing();
        if affinity == 0 {
            return Err(SpawnError::NoSuchCore);
        }
        // Every core means: also those that come online later.
        let affinity = if self.affinity == u64::MAX { u64::MAX } else { affinity };
        count_start()?;
        if let Err(error) = count_pinned(affinity) {
            uncount_start();
            return Err(error);
        }
        let home = CoreId::new(home_for(affinity)).unwrap_or(CoreId::BOOT);
        let (process, handle) = match task::create(future, self.priority, affinity, home) {
            Ok(created) => created,
            Err(future) => {
                uncount_start();
                uncount_pinned(affinity);
                drop(future);
                return Err(SpawnError::OutOfMemory);
            }
        };
        start(process);
        Ok(handle)
    }
}

impl Default for Spawn {
    fn default() -> Self {
        Self::new()
    }
}

fn start(process: NonNull<Header>) {
    // SAFETY: just made, so alive.
    unsafe { process.as_ref() }.turns().mark_queued();
    enqueue::spawned(process);
}

/// The parent's core if the mask allows it, else the first that it does.
fn home_for(affinity: u64) -> usize {
    let here = PreemptGuard::new();
    match Core::current(&here) {
        Some(core) if affinity & core.id().mask() != 0 => core.id().index(),
        _ => affinity.trailing_zeros() as usize,
    }
}
