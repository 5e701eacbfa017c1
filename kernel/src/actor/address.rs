//! Addresses: how messages are sent.
//!
//! An address is two words, may be copied to any core, and is never dangerous: when its actor has ended the
//! send says so and gives the message back. An actor may end between the check and the delivery; such a
//! message is dropped and counted as a dead letter.

use core::fmt;
use core::marker::PhantomData;

use super::behaviour::{Actor, Receive};
use super::inspect::ActorId;
use super::recipient::Recipient;
use super::run;
use super::send;
use super::storage::{CellRef, MailboxIndex, Word};
use super::target::target;
use crate::mem::OutOfMemory;
use crate::message::{Message, SendError, SendToAllError};

/// The address of an actor of type `A`.
///
/// ```
/// # use magpie::sched;
/// use core::time::Duration;
/// use magpie::actor::stop::Retire;
/// use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
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
/// let executor = Executor::start(&Config::default())?;
/// let (one, other) = (executor.handle().spawn(Adder(0))?, executor.handle().spawn(Adder(0))?);
///
/// // Told, it is handled some time later.
/// one.send(1)?.send(2)?;
/// one.send_wait(3).await?;
/// Addr::send_to_all(&[one, other], &4)?;
///
/// // Asked, the reply is awaited.
/// assert_eq!(one.try_ask(5)?.await?, 15);
/// assert_eq!(other.ask_within(Duration::from_secs(10), 6).await?, 10);
///
/// // Who knows the type of the message alone needs no more.
/// let recipient = other.recipient::<u64>();
/// recipient.send(7)?;
///
/// // An actor that has retired leaves its state.
/// one.ask(Retire).await?;
/// while one.is_alive() {
///     sched::yield_now().await;
/// }
/// assert!(one.take().is_some_and(|adder| adder.0 == 15));
/// assert!(one.send(1).is_err() && one.take().is_none());
/// # executor.stop().await;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
///
/// Of exactly that type: a state is both put in through an address, by [`respawn`](super::ExecutorHandle::respawn), and
/// taken out, by [`Addr::take`], so one type may stand for another in neither direction.
///
/// ```
/// use magpie::actor::{Actor, Addr};
/// struct Keeper<F>(F);
/// impl<F: Send + 'static> Actor for Keeper<F> {}
/// fn the_same(keeper: Addr<Keeper<fn(&'static u64)>>) -> Addr<Keeper<fn(&'static u64)>> { keeper }
/// ```
///
/// ```compile_fail,E0308
/// use magpie::actor::{Actor, Addr};
/// struct Keeper<F>(F);
/// impl<F: Send + 'static> Actor for Keeper<F> {}
/// // Taken from the result, the function could be given what lives shortly, and would keep it for ever.
/// fn narrower(keeper: Addr<Keeper<fn(&'static u64)>>) -> Addr<Keeper<for<'a> fn(&'a u64)>> { keeper }
/// ```
///
/// ```compile_fail,E0308
/// use magpie::actor::{Actor, Addr};
/// struct Keeper<F>(F);
/// impl<F: Send + 'static> Actor for Keeper<F> {}
/// // Put in through the result, a function that keeps what it is given could be taken as one that does not.
/// fn wider(keeper: Addr<Keeper<for<'a> fn(&'a u64)>>) -> Addr<Keeper<fn(&'static u64)>> { keeper }
/// ```
pub struct Addr<A> {
    cell: CellRef,
    word: Word,
    actor: PhantomData<fn(A) -> A>,
}

// SAFETY: the cell's header may be read from any core for ever. The state is touched by the worker alone, until `take`
// moves it to its caller: states can change cores, because an actor is `Send`.
unsafe impl<A> Send for Addr<A> {}
// SAFETY: as above.
unsafe impl<A> Sync for Addr<A> {}

impl<A> Clone for Addr<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Addr<A> {}

impl<A> PartialEq for Addr<A> {
    fn eq(&self, other: &Self) -> bool {
        self.cell == other.cell && self.word == other.word
    }
}

impl<A> Eq for Addr<A> {}

impl<A> fmt::Debug for Addr<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Addr({:p}/{:#x})", self.cell.pointer(), self.word.bits())
    }
}

impl<A: Actor> Addr<A> {
    #[inline(always)]
    pub(super) fn new(cell: CellRef, word: Word) -> Self {
        Self { cell, word, actor: PhantomData }
    }

    /// Sends a message. Returns the address, so that sends can be chained with `?`.
    ///
    /// # Errors
    /// The message comes back when the actor has ended, when its mailbox refuses more than are in it, or when memory is
    /// exhausted: see [`SendError`].
    #[inline]
    pub fn send<M: Message>(&self, message: M) -> Result<&Self, SendError<M>>
    where
        A: Receive<M>,
    {
        send::send(target::<A, M>(self.cell, self.word), message)?;
        Ok(self)
    }

    /// Sends a copy of a message to each of several actors; at the first that cannot be reached it stops,
    /// and says how many were.
    ///
    /// # Errors
    /// As [`Addr::send`], for the first one that failed.
    pub fn send_to_all<M: Message + Clone>(all: &[Self], message: &M) -> Result<usize, SendToAllError<M>>
    where
        A: Receive<M>,
    {
        for (sent, addr) in all.iter().enumerate() {
            addr.send(message.clone()).map_err(|error| SendToAllError::new(sent, error))?;
        }
        Ok(all.len())
    }

    /// The same actor, as somewhere to send messages of one type to.
    pub fn recipient<M: Message>(&self) -> Recipient<M>
    where
        A: Receive<M>,
    {
        Recipient::new(target::<A, M>(self.cell, self.word))
    }

    /// Ends the actor from outside, whatever it does. Returns at once; whoever watches it is told [`Exit::Killed`](crate::watch::Exit::Killed).
    ///
    /// - One that waits for messages, or for its turn, ends before those that wait in its mailbox: its hook
    ///   [`stopped`](Actor::stopped) is run, its state dropped. Only what its worker has taken out of the mailbox already comes before.
    /// - One whose behaviour runs ends behind that. If it has not within two slices, or is suspended, it ends as in a crash, and is on record as
    ///   one: neither the hook nor a destructor runs. So do a hook, and the destructor of the state, that take longer than a slice. On host
    ///   threads, which interrupt nobody, the behaviour ends by itself first.
    /// - One that has ended has ended.
    ///
    /// A behaviour that is suspended ends when it would go on: less urgent ones do not while others go on for ever.
    ///
    /// ```
    /// # use magpie::sched;
    /// use magpie::actor::{Actor, Config, Executor};
    /// use magpie::channel::ProcessMailbox;
    /// use magpie::watch::{Ended, Exit};
    ///
    /// struct Idler;
    /// impl Actor for Idler {}
    /// # sched::run_on_threads(2, 1, async {
    /// let executor = Executor::start(&Config::default())?;
    /// let idler = executor.handle().spawn(Idler)?;
    /// let mut ends = ProcessMailbox::<Ended>::new(1)?;
    /// idler.watch(&ends.address())?;
    /// idler.kill()?;
    /// assert_eq!(ends.receive().await.map(|ended| ended.exit()), Some(Exit::Killed));
    /// assert!(!idler.is_alive());
    /// # executor.stop().await;
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// When there is no memory for it, two blocks of 64 bytes: then nothing has happened.
    pub fn kill(&self) -> Result<(), OutOfMemory> {
        run::kill(self.cell, self.word)
    }

    /// The same with memory that was there before.
    pub(crate) fn kill_in(&self, room: run::KillRoom) {
        room.kill_unless_done(self.cell, self.word);
    }

    pub(crate) fn actor_id(&self) -> ActorId {
        ActorId::new(self.cell, self.word)
    }

    pub(super) fn cell(&self) -> CellRef {
        self.cell
    }

    pub(super) fn word(&self) -> Word {
        self.word
    }

    pub(super) fn mailbox(&self) -> MailboxIndex {
        self.word.mailbox()
    }

    /// Whether the actor has not ended, as far as can be seen.
    #[inline(always)]
    pub fn is_alive(&self) -> bool {
        let word = self.cell.word();
        word == self.word || word.is_same_actor(self.word)
    }
}
