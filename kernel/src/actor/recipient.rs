//! Recipients: addresses that know only the type of message.
//!
//! A list of recipients may hold actors of different types, as long as each has the behaviour.

use super::inspect::ActorId;
use super::mail::directory;
use super::mail::envelope::Target;
use super::run;
use super::send;
use super::storage::MailboxIndex;
use crate::arch::CoreId;
use crate::mem::OutOfMemory;
use crate::message::{Message, SendError, SendToAllError};

/// Some actor that has a behaviour for messages of type `M`. Three words; may be copied to any core.
///
/// ```
/// # use magpie::sched;
/// use magpie::actor::{Actor, Config, Context, Executor, Receive, Recipient};
///
/// struct Screen;
/// struct Journal;
/// impl Actor for Screen {}
/// impl Actor for Journal {}
/// impl Receive<&'static str> for Screen {
///     type Reply = ();
///
///     fn receive(&mut self, _: &'static str, _: &mut Context<Self>) {}
/// }
/// impl Receive<&'static str> for Journal {
///     type Reply = ();
///
///     fn receive(&mut self, _: &'static str, _: &mut Context<Self>) {}
/// }
/// # sched::run_on_threads(2, 1, async {
/// let executor = Executor::start(&Config::default())?;
/// let screen = executor.handle().spawn(Screen)?.recipient();
/// let journal = executor.handle().spawn(Journal)?.recipient();
/// screen.send("shown alone")?;
/// assert_eq!(Recipient::send_to_all(&[screen, journal], &"for both"), Ok(2));
/// # executor.stop().await;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
pub struct Recipient<M> {
    target: Target<M>,
}

// SAFETY: as for `Addr`: the cell's header may be read from any core for ever.
unsafe impl<M> Send for Recipient<M> {}
// SAFETY: as above.
unsafe impl<M> Sync for Recipient<M> {}

impl<M> Clone for Recipient<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Recipient<M> {}

impl<M> PartialEq for Recipient<M> {
    /// Whether both are the same actor.
    fn eq(&self, other: &Self) -> bool {
        (self.target.cell, self.target.word) == (other.target.cell, other.target.word)
    }
}

impl<M> Eq for Recipient<M> {}

impl<M: Message> Recipient<M> {
    #[inline(always)]
    pub(super) fn new(target: Target<M>) -> Self {
        Self { target }
    }

    /// Sends a message. Returns the recipient, so that sends can be chained with `?`.
    ///
    /// # Errors
    /// As [`Addr::send`](super::Addr::send).
    #[inline]
    pub fn send(&self, message: M) -> Result<&Self, SendError<M>> {
        send::send(self.target, message)?;
        Ok(self)
    }

    /// Ends the actor from outside, as [`Addr::kill`](super::Addr::kill).
    ///
    /// ```
    /// use magpie::actor::Recipient;
    /// use magpie::mem::OutOfMemory;
    /// fn kill_all(listeners: &[Recipient<u64>]) -> Result<(), OutOfMemory> {
    ///     listeners.iter().try_for_each(Recipient::kill)
    /// }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn kill(&self) -> Result<(), OutOfMemory> {
        run::kill(self.target.cell, self.target.word)
    }

    /// Whether the actor has not ended, as far as can be seen.
    ///
    /// ```
    /// use magpie::actor::Recipient;
    /// fn strike_off_the_dead(listeners: &mut Vec<Recipient<u64>>) {
    ///     listeners.retain(Recipient::is_alive);
    /// }
    /// ```
    pub fn is_alive(&self) -> bool {
        self.target.cell.word().is_same_actor(self.target.word)
    }

    pub(crate) fn actor_id(&self) -> ActorId {
        ActorId::new(self.target.cell, self.target.word)
    }

    pub(super) fn target(&self) -> Target<M> {
        self.target
    }

    /// Where its messages go.
    pub(super) fn mailbox(&self) -> MailboxIndex {
        self.target.word.mailbox()
    }

    /// How many messages are put aside for it while its behaviour is suspended.
    pub(super) fn messages_aside(&self) -> u32 {
        run::messages_aside(self.target.cell, self.target.word)
    }

    /// Whether the worker of its mailbox is of priority `Max` or `High`.
    pub(super) fn is_urgent(&self) -> bool {
        directory::get(self.mailbox()).is_urgent()
    }

    /// Whether a message that `core` sends it, in its loop, is handled by nobody but the worker there, in a turn that it begins later. While that is so
    /// the actor has no behaviour that is suspended, which alone could be elsewhere.
    pub(super) fn stays_on(&self, core: CoreId) -> bool {
        let mailbox = directory::get(self.mailbox());
        mailbox.is_fixed() && mailbox.core() == core && self.target.cell.word_relaxed() == self.target.word
    }

    /// As `send::send_dropping_nothing`.
    pub(super) fn send_dropping_nothing(&self, message: M) -> Result<(), SendError<M>>
    where
        M: Copy,
    {
        send::send_dropping_nothing(self.target, message)
    }

    /// As `send::send_at_once`.
    pub(super) fn send_at_once(&self, message: M) -> Result<(), M> {
        send::send_at_once(self.target, message)
    }

    /// Sends a copy of a message to each of several recipients; at the first that cannot be reached it
    /// stops, and says how many were.
    ///
    /// # Errors
    /// As [`Addr::send`](super::Addr::send), for the first one that failed.
    pub fn send_to_all(all: &[Self], message: &M) -> Result<usize, SendToAllError<M>>
    where
        M: Clone,
    {
        for (sent, recipient) in all.iter().enumerate() {
            recipient.send(message.clone()).map_err(|error| SendToAllError::new(sent, error))?;
        }
        Ok(all.len())
    }
}
