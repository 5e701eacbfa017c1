//! Inspection: what can be seen of actors from outside, without stopping anything. All of it is stale as soon as it is read, and each
//! actor is looked at at a moment of its own.

use core::time::Duration;

use super::address::Addr;
use super::behaviour::Actor;
use super::mail::{Mailbox, directory};
use super::run;
use super::storage::cell::{self, Chunk, all_chunks};
use super::storage::meter::{self, Meter};
use super::storage::{CellRef, Life, Word, static_cell};
use crate::arch::{CoreId, clock};
use crate::mem::OutOfMemory;
use crate::time::of_ticks;

/// What an actor is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ActorState {
    /// It waits for messages, or is handling one.
    Ready,
    /// A behaviour of its was suspended because it took long, and goes on as a process. What is sent to it meanwhile waits aside.
    Suspended,
}

/// An actor of whatever type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActorId {
    cell: CellRef,
    word: Word,
}

// SAFETY: as for `Addr`: the cell's header may be read from any core for ever.
unsafe impl Send for ActorId {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for ActorId {}

impl ActorId {
    pub(super) fn new(cell: CellRef, word: Word) -> Self {
        Self { cell, word }
    }

    /// A number that no other actor or process has while it lives.
    pub(crate) fn number(self) -> usize {
        self.cell.pointer().addr().get()
    }

    /// As [`Addr::kill`].
    pub(crate) fn kill(self) -> Result<(), OutOfMemory> {
        run::kill(self.cell, self.word)
    }
}

/// What was seen of an actor.
///
/// ```
/// # use magpie::sched;
/// use magpie::actor::{Actor, ActorState, Config, Executor, actors};
/// struct Bell;
/// impl Actor for Bell {}
/// # sched::run_on_threads(2, 1, async {
/// let executor = Executor::start(&Config::default())?;
/// let bell = executor.handle().spawn(Bell)?;
/// let seen = bell.inspect().ok_or("it has ended")?;
/// assert_eq!((seen.state, seen.waiting), (ActorState::Ready, 0));
/// assert!(seen.type_name.ends_with("Bell"));
/// let in_its_mailbox = actors().filter(|actor| actor.mailbox == seen.mailbox).count();
/// assert!(in_its_mailbox >= 1);
/// # executor.stop().await;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ActorInfo {
    /// A number that no other actor or process has while it lives; its [name](crate::registry::name_of) is found by it.
    pub id: usize,
    /// The actor's type.
    pub type_name: &'static str,
    /// What it is doing.
    pub state: ActorState,
    /// The number of its mailbox, which it shares with others.
    pub mailbox: u16,
    /// How many messages wait in that mailbox, for it and for the others.
    pub waiting: u32,
    /// How many messages workers have taken out of that mailbox's queue since its executor has started. What a sender adds to what its own
    /// core's worker has in hand, never comes there, and is not counted. If the actor has the mailbox alone, these are exactly those that it
    /// was sent since it was spawned, and taken out.
    pub taken: u64,
    /// The core whose worker the mailbox belongs to.
    pub core: CoreId,
    /// How often the mailbox has gone to another core's worker, in the same time.
    pub migrations: u32,
    /// Whether a worker is handling messages from that mailbox.
    pub is_being_processed: bool,
    /// Whether it has that mailbox alone: it was [spawned with a bound](super::ExecutorHandle::spawn_bounded).
    pub is_alone: bool,
    /// How long ago it was spawned, if it has its mailbox alone or [limits of its own](super::Limits). Others do not keep that, because each
    /// would be larger by it; the age of a [supervised](crate::supervise::supervised) one is that of its child's process.
    pub age: Option<Duration>,
    /// How many messages it was handed itself, the one in hand included, if it has limits of its own, or none but is counted so.
    pub messages: Option<u64>,
    /// How many [reductions](crate::sched::charge) its behaviours have taken that have ended, likewise: one for each message, and what they
    /// have sent and started.
    pub reductions: Option<u64>,
    /// How often it was run on another core than the time before, likewise.
    pub moves: Option<u64>,
    /// Whether it lives in the application's own storage.
    pub is_static: bool,
    who: ActorId,
}

impl ActorInfo {
    /// Kills the actor that was seen, as [`Addr::kill`] does: no other one, if that has ended since. So an actor that nobody has an address
    /// or a name of can be ended as well.
    ///
    /// # Errors
    /// Without memory for it; nothing has happened then.
    ///
    /// ```
    /// use magpie::actor::{ActorState, actors};
    /// // All whose behaviours have been suspended.
    /// for actor in actors().filter(|actor| actor.state == ActorState::Suspended) {
    ///     actor.kill()?;
    /// }
    /// # Ok::<(), magpie::mem::OutOfMemory>(())
    /// ```
    pub fn kill(&self) -> Result<(), OutOfMemory> {
        self.who.kill()
    }
}

/// What is in a cell; `None` unless an actor lives there.
fn look(cell: CellRef) -> Option<ActorInfo> {
    let word = cell.word_relaxed();
    let state = match word.life()? {
        Life::Attached => ActorState::Ready,
        Life::Detached => ActorState::Suspended,
        _ => return None,
    };
    let mailbox = directory::get(word.mailbox());
    let let_at = mailbox.let_at();
    let counted = meter::of(word.meter()).map(Meter::read);
    Some(ActorInfo {
        id: cell.pointer().addr().get(),
        type_name: (cell::kind(cell, word).name)(),
        state,
        mailbox: word.mailbox().get(),
        waiting: mailbox.waiting(),
        taken: mailbox.taken(),
        core: mailbox.core(),
        migrations: mailbox.moves(),
        is_being_processed: mailbox.is_being_processed(),
        is_alone: let_at.is_some(),
        age: counted.map(|it| it.began).or(let_at).map(|at| of_ticks(clock::now().saturating_sub(at))),
        messages: counted.map(|it| it.messages),
        reductions: counted.map(|it| it.reductions),
        moves: counted.map(|it| it.moves),
        is_static: word.is_static(),
        who: ActorId::new(cell, word.attached()),
    })
}

/// The actors of all executors. Looks at each cell that there ever was at once: with a million actors that takes its time, so do it where
/// nobody waits.
///
/// ```
/// use magpie::actor::{ActorState, actors};
/// let suspended = actors().filter(|actor| actor.state == ActorState::Suspended).count();
/// # let _ = suspended;
/// ```
pub fn actors() -> impl Iterator<Item = ActorInfo> {
    all_chunks().flat_map(Chunk::cells).chain(static_cell::all()).filter_map(look)
}

/// What was seen of a mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MailboxInfo {
    /// Its number: [`ActorInfo::mailbox`] of those who are in it.
    pub number: u16,
    /// The core whose worker it belongs to.
    pub core: CoreId,
    /// How many messages wait in it.
    pub waiting: u32,
    /// The most that waited, as far as a worker has found them waiting.
    pub most_waiting: u32,
    /// How many may wait, if that is limited.
    pub bound: Option<u32>,
    /// How many messages workers have taken out of its queue: see [`ActorInfo::taken`].
    pub taken: u64,
    /// How often it has gone to another core's worker.
    pub migrations: u32,
    /// Whether a worker is handling messages from it.
    pub is_being_processed: bool,
    /// Whether it is pinned to its core.
    pub is_pinned: bool,
    /// Whether it is there for one actor alone, which may be gone by now.
    pub is_of_one: bool,
    /// Bytes of the buffers that it waits with.
    pub buffer_bytes: usize,
}

fn look_into(mailbox: &'static Mailbox) -> Option<MailboxInfo> {
    let inside = mailbox.inside.lock();
    if inside.closed {
        return None;
    }
    let (bound, most, buffer_bytes) = (inside.bound, inside.most_messages, inside.queue.capacity_bytes());
    drop(inside);
    let waiting = mailbox.waiting();
    Some(MailboxInfo {
        number: mailbox.index().get(),
        core: mailbox.core(),
        waiting,
        most_waiting: most.max(waiting),
        bound: bound.most(),
        taken: mailbox.taken(),
        migrations: mailbox.moves(),
        is_being_processed: mailbox.is_being_processed(),
        is_pinned: mailbox.is_pinned(),
        is_of_one: bound.is_of_one(),
        buffer_bytes,
    })
}

/// The mailboxes of all executors that run, in order of their numbers. Each is looked at at a moment of its own; senders to it wait
/// meanwhile for as long as one of them takes. It takes no memory.
///
/// ```
/// use magpie::actor::mailboxes;
/// // Where the most waits.
/// if let Some(longest) = mailboxes().max_by_key(|mailbox| mailbox.waiting) {
///     println!("{} wait in mailbox {}", longest.waiting, longest.number);
/// }
/// ```
pub fn mailboxes() -> impl Iterator<Item = MailboxInfo> {
    directory::all().filter_map(look_into)
}

impl<A: Actor> Addr<A> {
    /// What can be seen of the actor; `None` if it has ended.
    ///
    /// ```
    /// use magpie::actor::{Actor, Addr};
    /// fn is_behind<A: Actor>(actor: Addr<A>) -> bool {
    ///     actor.inspect().is_some_and(|seen| seen.waiting > 1000)
    /// }
    /// ```
    pub fn inspect(&self) -> Option<ActorInfo> {
        let seen = look(self.cell())?;
        // What was seen may be a successor.
        self.is_alive().then_some(seen)
    }
}
