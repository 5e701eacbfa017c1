//! Executors: a table of mailboxes, a worker on each of some cores, and the actors bound to them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use core::ptr::{self, NonNull};
use core::task::{Poll, Waker};

use super::address::Addr;
use super::batch::Batch;
use super::behaviour::Actor;
use super::mailbox::{Mailbox, directory};
use super::resident;
use super::segment::Segment;
use super::steal::VictimRule;
use super::worker::Worker;
use super::{cell, pool, shutdown};
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use crate::arch::{CoreId, barrier};
use crate::machine;
use crate::mem::OutOfMemory;
use crate::sched::{self, Priority};
use crate::sync::{PreemptGuard, SpinLock};

/// Mailboxes for each worker unless the configuration says otherwise: C∀'s sharding factor.
pub const MAILBOXES_PER_WORKER: usize = 16;

/// How an executor is built.
#[derive(Clone, Debug)]
pub struct Config {
    /// Workers, on cores 0 and up; `None` is one for each core.
    pub workers: Option<usize>,
    /// Mailboxes in all, at least as many as workers; `None` is 16 for each worker.
    pub mailboxes: Option<usize>,
    /// Bytes of a mailbox's buffer before it has grown.
    pub segment_bytes: usize,
    /// How thieves choose their victims.
    pub victim: VictimRule,
    /// Workers that may search for a victim at once.
    pub thieves: u32,
    /// The priority of the workers.
    pub priority: Priority,
    /// Messages that a worker handles in one turn.
    pub reductions: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: None,
            mailboxes: None,
            segment_bytes: directory::FIRST_SEGMENT_BYTES,
            victim: VictimRule::LongestVictim,
            thieves: 1,
            priority: Priority::Normal,
            reductions: 4000,
        }
    }
}

/// Why an executor was not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartError {
    /// No workers, or more than there are cores.
    Workers {
        /// The number asked for.
        asked: usize,
        /// The number of cores.
        cores: usize,
    },
    /// Fewer mailboxes than workers: some worker would have none.
    TooFewMailboxes {
        /// The number asked for.
        mailboxes: usize,
        /// The number of workers.
        workers: usize,
    },
    /// No memory for it, or all mailbox numbers are in use.
    OutOfMemory,
    /// The scheduler has as many processes as it is set to have.
    TooManyProcesses,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers { asked, cores } => {
                write!(f, "{asked} workers on {cores} cores: ask for 1 to {cores}")
            }
            Self::TooFewMailboxes { mailboxes, workers } => {
                write!(f, "{mailboxes} mailboxes for {workers} workers: ask for at least {workers}")
            }
            Self::OutOfMemory => {
                f.write_str("out of memory or mailbox numbers: the executor was not started")
            }
            Self::TooManyProcesses => f.write_str("too many processes: raise sched.processes"),
        }
    }
}

/// An actor that was not spawned, for lack of memory or because its executor is stopping.
pub struct SpawnError<A>(pub A);

impl<A> fmt::Debug for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<A> fmt::Display for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the actor was not spawned: out of memory, or the executor is stopping")
    }
}

/// What all workers of an executor share.
pub(super) struct Shared {
    /// The slots. Worker `i` owns a range of them; thieves swap pointers between ranges.
    pub table: Box<[AtomicPtr<Mailbox>]>,
    /// Every mailbox, in the order of the table at the start; never permuted.
    pub mailboxes: Box<[&'static Mailbox]>,
    workers: AtomicPtr<Vec<Arc<Worker>>>,
    pub segment_bytes: usize,
    pub victim_rule: VictimRule,
    thieves: u32,
    pub reductions: u64,
    /// How many mailboxes spawning chooses from; the pinned ones come after them.
    next: AtomicUsize,
    searching: AtomicU32,
    stopping: AtomicBool,
    /// Workers that have not ended, and suspended behaviours.
    running: AtomicU32,
    waiting_for_end: SpinLock<Option<Waker>>,
}

/// The slots of worker `index` of `workers`: a contiguous range, one longer for the first ones if they
/// cannot be shared out evenly.
fn range(slots: usize, workers: usize, index: usize) -> (usize, usize) {
    let (each, more) = (slots / workers, slots % workers);
    (index * each + index.min(more), each + usize::from(index < more))
}

impl Shared {
    pub(super) fn workers(&self) -> &[Arc<Worker>] {
        // Acquire: pairs with the release in `start`.
        // SAFETY: set before the first mailbox is open and taken when all are closed and all workers have
        // ended; it is used by workers and by senders under the lock of an open mailbox.
        unsafe { (*self.workers.load(Ordering::Acquire)).as_slice() }
    }

    /// Mail has come for an empty mailbox. The caller holds its lock.
    #[inline(always)]
    pub(super) fn notify(&self, mailbox: &Mailbox) {
        if let Some(worker) = self.workers().get(mailbox.owner()) {
            worker.notify();
        }
    }

    /// A worker begins a batch: if it has more than that and a core is idle, that core comes to steal.
    #[inline(always)]
    pub(super) fn call_thief(&self, worker: &Worker) {
        if self.victim_rule != VictimRule::None
            && sched::some_core_is_idle()
            && worker.mailboxes_with_mail() > 0
        {
            sched::wake_thief();
        }
    }

    pub(super) fn begin_search(&self) -> bool {
        // AcqRel: a count that limits; it orders nothing else.
        if self.searching.fetch_add(1, Ordering::AcqRel) < self.thieves {
            return true;
        }
        self.end_search();
        false
    }

    pub(super) fn end_search(&self) {
        self.searching.fetch_sub(1, Ordering::AcqRel);
    }

    #[inline(always)]
    pub(super) fn is_stopping(&self) -> bool {
        // Acquire: pairs with the release in `stop`.
        self.stopping.load(Ordering::Acquire)
    }

    pub(super) fn piece_began(&self) {
        // Relaxed: its worker has not ended, so the count is not zero meanwhile.
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn piece_ended(&self) {
        self.one_ended();
    }

    pub(super) fn worker_ended(&self) {
        self.one_ended();
    }

    fn one_ended(&self) {
        // AcqRel: who sees zero sees everything that workers and behaviours did.
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(waker) = self.waiting_for_end.lock().take()
        {
            waker.wake();
        }
    }

    fn spawn_in<A: Actor>(&self, mailbox: &Mailbox, actor: A) -> Result<Addr<A>, SpawnError<A>> {
        let here = PreemptGuard::new();
        let kind = const { cell::kind_of::<A>() };
        let Some(cell) = pool::take(kind, &here) else { return Err(SpawnError(actor)) };
        // SAFETY: cells are never unmapped.
        let header = unsafe { cell.as_ref() };
        let free = header.word();
        // SAFETY: the cell is free, of this kind, and ours.
        if let Err((OutOfMemory, actor)) = unsafe { cell::fill(cell, actor) } {
            pool::put_back(cell, kind, &here);
            return Err(SpawnError(actor));
        }
        let word = free.spawned(mailbox.index());
        header.set_word(word);
        Worker::statistics(&here).actors_created.bump();
        Ok(Addr::new(cell, word))
    }
}

/// An executor that runs. Its actors live until they end or it is stopped.
pub struct Executor {
    handle: ExecutorHandle,
}

/// The right to spawn actors on an executor; any number of them, on any core.
#[derive(Clone)]
pub struct ExecutorHandle(Arc<Shared>);

impl Executor {
    /// Starts an executor.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left behind.
    pub fn start(config: &Config) -> Result<Self, StartError> {
        let cores = machine::cores();
        let workers = config.workers.unwrap_or(cores);
        if workers == 0 || workers > cores {
            return Err(StartError::Workers { asked: workers, cores });
        }
        let mailboxes = config.mailboxes.unwrap_or(workers * MAILBOXES_PER_WORKER);
        if mailboxes < workers {
            return Err(StartError::TooFewMailboxes { mailboxes, workers });
        }
        // One more for each worker, for pinned actors.
        let taken = take_mailboxes(mailboxes + workers).ok_or(StartError::OutOfMemory)?;
        let table = taken.iter().map(|mailbox| AtomicPtr::new(ptr::from_ref(*mailbox).cast_mut())).collect();
        let shared = Arc::new(Shared {
            table,
            mailboxes: taken.into_boxed_slice(),
            workers: AtomicPtr::new(ptr::null_mut()),
            segment_bytes: config.segment_bytes.max(64),
            victim_rule: config.victim,
            thieves: config.thieves,
            reductions: config.reductions.max(1),
            next: AtomicUsize::new(0),
            searching: AtomicU32::new(0),
            stopping: AtomicBool::new(false),
            running: AtomicU32::new(workers as u32),
            waiting_for_end: SpinLock::new(None),
        });
        let list = make_workers(&shared, workers).ok_or(StartError::OutOfMemory)?;
        for worker in &list {
            let process = resident::start(worker.clone(), config.priority)?;
            worker.set_process(process);
        }
        // Release: pairs with the acquire in `workers`.
        shared.workers.store(Box::into_raw(Box::new(list)), Ordering::Release);
        for worker in shared.workers() {
            for slot in worker.first..worker.first + worker.slots {
                let pinned = slot + 1 == worker.first + worker.slots;
                shared.mailboxes[slot].open(&shared, worker.index, pinned);
            }
        }
        Ok(Self { handle: ExecutorHandle(shared) })
    }

    /// The right to spawn on it.
    pub fn handle(&self) -> &ExecutorHandle {
        &self.handle
    }

    /// Stops it: no message is accepted or delivered any more, behaviours that run end, what was not
    /// delivered is dropped, and so is every actor. Returns how many messages were dropped.
    pub async fn stop(self) -> u64 {
        let shared = &self.handle.0;
        // Release: pairs with the acquire in `is_stopping`.
        shared.stopping.store(true, Ordering::Release);
        for mailbox in &shared.mailboxes {
            mailbox.inside.lock().closed = true;
        }
        // Pairs with the barrier in `Worker::wait`: a worker that waits later sees the request.
        barrier::full();
        for worker in shared.workers() {
            worker.wake();
        }
        poll_fn(|context| {
            let mut waiting = shared.waiting_for_end.lock();
            // Acquire: pairs with the release in `one_ended`.
            if shared.running.load(Ordering::Acquire) == 0 {
                return Poll::Ready(());
            }
            *waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
        // SAFETY: all workers and behaviours have ended and all mailboxes are closed.
        unsafe { shutdown::clear(shared) }
    }
}

impl Shared {
    /// The workers, for the last time.
    ///
    /// # Safety
    /// All have ended, and all mailboxes are closed.
    pub(super) unsafe fn take_workers(&self) -> Vec<Arc<Worker>> {
        let workers = self.workers.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: stored by `start` from a box; by contract nobody uses it any more.
        *unsafe { Box::from_raw(workers) }
    }
}

fn take_mailboxes(count: usize) -> Option<Vec<&'static Mailbox>> {
    let mut taken: Vec<&'static Mailbox> = Vec::new();
    taken.try_reserve_exact(count).ok()?;
    for _ in 0..count {
        match directory::take() {
            Some(mailbox) => taken.push(mailbox),
            None => {
                taken.into_iter().for_each(directory::give);
                return None;
            }
        }
    }
    Some(taken)
}

fn make_workers(shared: &Arc<Shared>, workers: usize) -> Option<Vec<Arc<Worker>>> {
    let mut list = Vec::new();
    list.try_reserve_exact(workers).ok()?;
    for index in 0..workers {
        let core = CoreId::new(index)?;
        let spare = Segment::new(shared.segment_bytes)?;
        let range = range(shared.table.len(), workers, index);
        list.push(Arc::new(Worker::new(shared.clone(), index, core, range, Batch::new()?, spare)));
    }
    Some(list)
}

impl ExecutorHandle {
    /// # Safety
    /// `shared` is inside an `Arc`, as every executor's is.
    pub(super) unsafe fn of(shared: &Shared) -> Self {
        // SAFETY: by contract.
        unsafe {
            Arc::increment_strong_count(shared);
            Self(Arc::from_raw(shared))
        }
    }

    /// How many workers it has.
    pub fn workers(&self) -> usize {
        self.0.workers().len()
    }

    /// Spawns an actor; its mailbox is chosen round robin among all that may move.
    ///
    /// # Errors
    /// The actor comes back when there is no memory for it.
    #[inline]
    pub fn spawn<A: Actor>(&self, actor: A) -> Result<Addr<A>, SpawnError<A>> {
        let shared = &*self.0;
        loop {
            // Relaxed: any fair choice will do.
            let next = shared.next.fetch_add(1, Ordering::Relaxed) % shared.mailboxes.len();
            let mailbox = shared.mailboxes[next];
            if !mailbox.is_pinned() {
                return shared.spawn_in(mailbox, actor);
            }
        }
    }

    /// Spawns an actor in one of the mailboxes that began on `worker`; thieves may move them.
    ///
    /// # Errors
    /// As [`Self::spawn`], and when there is no such worker.
    pub fn spawn_on<A: Actor>(&self, worker: usize, actor: A) -> Result<Addr<A>, SpawnError<A>> {
        let shared = &*self.0;
        let Some(worker) = shared.workers().get(worker) else { return Err(SpawnError(actor)) };
        let next = shared.next.fetch_add(1, Ordering::Relaxed) % (worker.slots - 1).max(1);
        shared.spawn_in(shared.mailboxes[worker.first + next], actor)
    }

    /// Spawns an actor that never leaves `worker`'s core: its mailbox is not stolen.
    ///
    /// # Errors
    /// As [`Self::spawn_on`].
    pub fn spawn_pinned<A: Actor>(&self, worker: usize, actor: A) -> Result<Addr<A>, SpawnError<A>> {
        let shared = &*self.0;
        let Some(worker) = shared.workers().get(worker) else { return Err(SpawnError(actor)) };
        shared.spawn_in(shared.mailboxes[worker.first + worker.slots - 1], actor)
    }

    /// Spawns an actor in the same mailbox as another: the two always run on one core, one at a time.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub fn spawn_beside<A: Actor, B: Actor>(
        &self,
        other: Addr<B>,
        actor: A,
    ) -> Result<Addr<A>, SpawnError<A>> {
        self.0.spawn_in(directory::get(other.mailbox()), actor)
    }

    /// Checks that every mailbox is in exactly one slot; for tests, while nobody steals.
    pub fn table_is_whole(&self) -> bool {
        let mut found: Vec<usize> =
            self.0.table.iter().map(|slot| slot.load(Ordering::Acquire) as usize).collect();
        let mut expected: Vec<usize> =
            self.0.mailboxes.iter().map(|mailbox| ptr::from_ref(*mailbox) as usize).collect();
        found.sort_unstable();
        expected.sort_unstable();
        found == expected
    }
}

impl From<sched::SpawnError> for StartError {
    fn from(error: sched::SpawnError) -> Self {
        match error {
            sched::SpawnError::TooManyProcesses => Self::TooManyProcesses,
            sched::SpawnError::OutOfMemory | sched::SpawnError::NoSuchCore => Self::OutOfMemory,
        }
    }
}

/// Only its address matters to a cell's mailbox.
pub(super) fn is_of(mailbox: &Mailbox, shared: &Shared) -> bool {
    mailbox.is_open_for(NonNull::from(shared))
}
