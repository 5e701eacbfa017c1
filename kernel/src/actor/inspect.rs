//! Inspection: what can be seen of actors from outside, without stopping anything. All of it is stale as soon as it is read, and each
//! actor is looked at at a moment of its own.

use super::address::Addr;
use super::behaviour::Actor;
use super::mail::directory;
use super::run;
use super::storage::cell::{self, Chunk, all_chunks};
use super::storage::{CellRef, Life, Word, static_cell};
use crate::arch::CoreId;
use crate::mem::OutOfMemory;

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
    /// core's worker has in hand, never comes there, and is not counted.
    pub taken: u64,
    /// The core whose worker the mailbox belongs to.
    pub core: CoreId,
    /// How often the mailbox has gone to another core's worker.
    pub migrations: u32,
    /// Whether a worker is handling messages from that mailbox.
    pub is_being_processed: bool,
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
