//! Handles: the right to spawn actors on an executor, for any number of owners on any core.

use core::fmt;

use super::address::Addr;
use super::behaviour::Actor;
use super::limits::Limits;
use super::mail::{Bound, directory};
use super::run::ExecutorState;
use super::spawn::{self, NotSpawned};
use crate::arch::{CoreId, CoreSet};
use crate::mem::Counted;

/// How much memory an executor's mailboxes have needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HighWater {
    /// Bytes of buffers, each mailbox at its own peak.
    pub bytes: usize,
    /// The most messages that waited in one mailbox. Where many waited on their senders' own core it is an estimate, and not
    /// too low.
    pub messages: u32,
}

/// The right to spawn actors on an executor.
///
/// ```
/// # use magpie::sched;
/// use magpie::actor::stop::Vacate;
/// use magpie::actor::{Actor, Config, Context, Executor, Receive};
/// use magpie::arch::CoreId;
///
/// struct Adder(u64);
/// impl Actor for Adder {}
/// impl Receive<u64> for Adder {
///     type Reply = u64;
///
///     fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
///         self.0 += number;
///         self.0
///     }
/// }
/// # sched::run_on_threads(2, 1, async {
/// let executor = Executor::start(&Config::default().workers(1).mailboxes(4))?;
/// let handle = executor.handle().clone();
/// assert_eq!((handle.workers(), handle.mailboxes()), (1, 4));
///
/// let anywhere = handle.spawn(Adder(0))?;
/// let at_first = handle.spawn_on(CoreId::BOOT, Adder(0))?;
/// let for_ever = handle.spawn_pinned(CoreId::BOOT, Adder(0))?;
/// let neighbour = handle.spawn_beside(for_ever, Adder(0))?;
/// assert_eq!(handle.live_actors(), 4);
///
/// neighbour.send(1)?.send(Vacate)?;
/// while neighbour.is_alive() {
///     sched::yield_now().await;
/// }
/// let successor = handle.respawn(neighbour, Adder(10))?;
/// assert_eq!(successor.ask(1).await?, 11);
/// assert!(handle.high_water().messages >= 1 && handle.table_is_whole());
/// # let _ = (anywhere, at_first);
/// # executor.stop().await;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Clone)]
pub struct ExecutorHandle(Counted<ExecutorState>);

impl fmt::Debug for ExecutorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Executor({} workers, {} mailboxes)", self.workers(), self.mailboxes())
    }
}

impl ExecutorHandle {
    pub(super) fn new(executor: Counted<ExecutorState>) -> Self {
        Self(executor)
    }

    pub(super) fn state(&self) -> &ExecutorState {
        &self.0
    }

    pub(super) fn counted_state(&self) -> Counted<ExecutorState> {
        self.0.clone()
    }

    /// How many workers it has: on cores 0 and up.
    pub fn workers(&self) -> usize {
        self.0.worker_count
    }

    /// The cores that it has workers on.
    ///
    /// ```
    /// use magpie::actor::{Actor, Addr, ExecutorHandle, NotSpawned};
    /// struct Watch;
    /// impl Actor for Watch {}
    /// fn everywhere(handle: &ExecutorHandle) -> Result<Vec<Addr<Watch>>, NotSpawned<Watch>> {
    ///     handle.cores().iter().map(|core| handle.spawn_pinned(core, Watch)).collect()
    /// }
    /// ```
    pub fn cores(&self) -> CoreSet {
        (0..self.workers()).filter_map(CoreId::new).collect()
    }

    /// How many mailboxes it has, without those for pinned actors, and those for one actor each.
    pub fn mailboxes(&self) -> usize {
        self.0.movable()
    }

    /// How many actors live. Exact while none is created or ends.
    pub fn live_actors(&self) -> u64 {
        self.0.live.count()
    }

    /// Spawns an actor; its mailbox is chosen round robin.
    ///
    /// # Errors
    /// The actor comes back: see [`NotSpawned`].
    #[inline]
    pub fn spawn<A: Actor>(&self, actor: A) -> Result<Addr<A>, NotSpawned<A>> {
        spawn::spawn(&self.0, self.0.next_mailbox(), actor)
    }

    /// Spawns an actor in one of the mailboxes that began on `core`; thieves may move them.
    ///
    /// # Errors
    /// As [`Self::spawn`], and when the executor has no worker on that core.
    pub fn spawn_on<A: Actor>(&self, core: CoreId, actor: A) -> Result<Addr<A>, NotSpawned<A>> {
        match self.0.next_mailbox_of(core.index()) {
            Some(mailbox) => spawn::spawn(&self.0, mailbox, actor),
            None => Err(NotSpawned::NoSuchWorker(actor)),
        }
    }

    /// Spawns an actor that never leaves `core`: its mailbox is not stolen. A behaviour of it that is suspended is
    /// resumed there, too.
    ///
    /// # Errors
    /// As [`Self::spawn_on`].
    pub fn spawn_pinned<A: Actor>(&self, core: CoreId, actor: A) -> Result<Addr<A>, NotSpawned<A>> {
        match self.0.pinned_mailbox_of(core.index()) {
            Some(mailbox) => spawn::spawn(&self.0, mailbox, actor),
            None => Err(NotSpawned::NoSuchWorker(actor)),
        }
    }

    /// Spawns an actor with a mailbox that is its alone, and so with a bound of its own: who floods it takes no room from others, and
    /// what the bound gives up is its mail. What it spawns lives elsewhere, as ever.
    ///
    /// What its worker has in hand does not count, nor what a behaviour that was suspended has before it when it goes on; so at
    /// times there are more than the bound says, up to four times as many. When the actor has
    /// ended, and its worker has dropped what still waited for it, the next may have the mailbox. One that has
    /// [vacated](super::Context::vacate) its storage keeps the mailbox for its successor.
    ///
    /// ```
    /// # use magpie::sched;
    /// use magpie::actor::{Actor, Bound, Config, Executor, NotSpawned, WhenFull};
    /// struct Display;
    /// impl Actor for Display {}
    /// # sched::run_on_threads(2, 1, async {
    /// let executor = Executor::start(&Config::default().own_mailboxes(1))?;
    /// let newest = Bound::new(1, WhenFull::DropOldest);
    /// let display = executor.handle().spawn_bounded(Display, newest)?;
    /// let second = executor.handle().spawn_bounded(Display, newest);
    /// assert!(matches!(second, Err(NotSpawned::NoMailbox(Display))) && display.is_alive());
    /// # executor.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Self::spawn`]; [`NotSpawned::NoMailbox`] when as many such actors live as
    /// [`Config::own_mailboxes`](super::Config::own_mailboxes) says.
    pub fn spawn_bounded<A: Actor>(&self, actor: A, bound: Bound) -> Result<Addr<A>, NotSpawned<A>> {
        spawn::spawn_bounded(&self.0, bound, actor)
    }

    /// Spawns an actor that is counted by itself, and held to limits of its own: a memory limit, wherever its mailbox is, and a bound of its
    /// mailbox.
    ///
    /// ```
    /// # use magpie::sched;
    /// use magpie::actor::{Actor, Config, Executor, Limits};
    /// use magpie::mem::MemoryLimit;
    /// struct Parser;
    /// impl Actor for Parser {}
    /// # sched::run_on_threads(2, 1, async {
    /// let executor = Executor::start(&Config::default())?;
    /// let limit = MemoryLimit::new(1 << 20)?;
    /// let parser = executor.handle().spawn_limited(Parser, Limits::new().memory(&limit))?;
    /// assert!(parser.inspect().is_some_and(|seen| seen.age.is_some() && !seen.is_alone));
    /// # executor.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Self::spawn`], and with a bound as [`Self::spawn_bounded`]; [`NotSpawned::OverLimit`] when the memory limit has no room for it or
    /// was dropped; [`NotSpawned::NoMeter`] when 4095 such actors live.
    pub fn spawn_limited<A: Actor>(&self, actor: A, limits: Limits) -> Result<Addr<A>, NotSpawned<A>> {
        spawn::spawn_limited(&self.0, limits, actor)
    }

    /// Spawns an actor in the same mailbox as another: the two always run on one core, one at a time.
    ///
    /// # Errors
    /// As [`Self::spawn`]; [`NotSpawned::Stopped`] also when the other belongs to another executor;
    /// [`NotSpawned::Alone`] when it was [spawned with a bound of its own](Self::spawn_bounded).
    pub fn spawn_beside<A: Actor, B: Actor>(
        &self,
        other: Addr<B>,
        actor: A,
    ) -> Result<Addr<A>, NotSpawned<A>> {
        spawn::spawn_beside(&self.0, directory::get(other.mailbox()), actor)
    }

    /// Spawns an actor into the storage, and the mailbox, of one that has ended with
    /// [`Context::vacate`](super::Context::vacate), or that has ended in any way, also by a crash, in a
    /// [`StaticActor`](super::StaticActor). Old addresses stay those of an actor that has ended.
    ///
    /// # Errors
    /// As [`Self::spawn`]; [`NotSpawned::NotFree`] while the actor lives or its state is there; [`NotSpawned::GivenBack`] when it has ended
    /// otherwise, so that its storage was freed, or somebody else was faster; [`NotSpawned::UsedUp`] after 2^32 - 1 actors.
    pub fn respawn<A: Actor>(&self, old: Addr<A>, actor: A) -> Result<Addr<A>, NotSpawned<A>> {
        spawn::respawn(&self.0, directory::get(old.mailbox()), old, actor)
    }

    /// The most that its mailboxes have had since it was started.
    pub fn high_water(&self) -> HighWater {
        self.0.mailboxes.iter().fold(HighWater::default(), |all, mailbox| {
            let inside = mailbox.inside.lock();
            let ((bytes, messages), HighWater { bytes: all_bytes, messages: most }) =
                (mailbox.hand.most(), all);
            HighWater {
                bytes: all_bytes + inside.most_bytes + bytes,
                messages: most.max(messages).max(inside.most_messages),
            }
        })
    }

    /// Checks that every mailbox is in exactly one slot of the table; for tests, while nobody steals.
    pub fn table_is_whole(&self) -> bool {
        self.0.table.holds_each_once(self.0.mailboxes.iter().copied())
    }
}
