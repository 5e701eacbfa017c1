//! Addresses of process mailboxes.

use core::fmt;
use core::mem::ManuallyDrop;

use super::block::{Block, Urgency};
use super::node::Room;
use super::owner::Owner;
use crate::message::ask::Asked;
use crate::message::{Message, SendError, Shared};
use crate::sched::ProcessRef;
use crate::sync::Identity;

/// Where messages to a process go. May be cloned, and used from any core; a mailbox without addresses says so
/// to its receiver.
///
/// ```
/// # use magpie::sched;
/// use core::time::Duration;
/// use magpie::channel::{ProcessMailbox, Request, SendError};
///
/// # sched::run_on_threads(2, 1, async {
/// let mut desk = ProcessMailbox::<Request<u64, u64>>::new(1)?;
/// let clerk = desk.address();
/// sched::spawn(async move {
///     while let Some(request) = desk.receive().await {
///         // Whoever has given up waiting gets nothing.
///         let _ = request.reply.send(2 * request.message);
///     }
/// })?;
/// assert_eq!(clerk.ask(1).await?, 2);
/// assert_eq!(clerk.try_ask(2)?.await?, 4);
/// assert_eq!(clerk.ask_within(Duration::from_secs(10), 3).await?, 6);
///
/// let small = ProcessMailbox::new(1)?;
/// let address = small.address();
/// address.send('a')?;
/// assert!(matches!(address.send_urgent('b'), Err(SendError::Full('b'))));
/// assert_eq!(address.waiting(), 1);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
pub struct ProcessAddr<M>(Shared<Block<M>>);

impl<M: Message> ProcessAddr<M> {
    pub(super) fn new(block: Shared<Block<M>>) -> Self {
        block.count_address();
        Self(block)
    }

    /// Says that `process`, which has not ended, is going to receive: its crash ends the mailbox as if it had received already.
    pub(crate) fn set_owner(&self, process: &ProcessRef) {
        Block::set_owner(
            &self.0,
            Some(Identity::Process(process.id())),
            Some(Owner::Process(process.clone())),
        );
    }

    /// Sends a message. Returns the address, so that sends can be chained with `?`.
    ///
    /// # Errors
    /// The message comes back when the mailbox was dropped or its process has crashed, when as many messages
    /// wait as the mailbox was made for, or when memory is exhausted: see [`SendError`].
    pub fn send(&self, message: M) -> Result<&Self, SendError<M>> {
        self.0.send(message, Urgency::Ordinary)?;
        Ok(self)
    }

    /// Sends a message that overtakes all ordinary ones, and no other urgent one.
    ///
    /// # Errors
    /// As [`ProcessAddr::send`].
    pub fn send_urgent(&self, message: M) -> Result<&Self, SendError<M>> {
        self.0.send(message, Urgency::Urgent)?;
        Ok(self)
    }

    /// Whether nothing is accepted any more.
    pub(crate) fn has_closed(&self) -> bool {
        self.0.lock().has_closed()
    }

    /// Whether both are addresses of one mailbox.
    pub(crate) fn leads_where(&self, other: &Self) -> bool {
        self.0.pointer() == other.0.pointer()
    }

    /// The process that has received from it last, if one has.
    pub(crate) fn owner_process(&self) -> Option<ProcessRef> {
        self.0.lock().owner_process()
    }

    /// The number of that process.
    pub(crate) fn owner_place(&self) -> Option<usize> {
        self.0.lock().owner_place()
    }

    /// Sends a message in a node that comes with it: it overtakes as an urgent one does, and no bound holds it back.
    pub(super) fn send_in(&self, node: Room<M>, message: M) {
        self.0.send_in(node, message);
    }

    /// Under what who is about to ask is listed.
    pub(super) fn asked(&self) -> Asked {
        self.0.note_asked();
        Block::asked(&self.0)
    }

    /// As [`Self::send`], for a core's loop: drops nothing of the application's.
    pub(super) fn send_dropping_nothing(&self, message: M) -> Result<(), SendError<M>> {
        self.0.send_dropping_nothing(message)
    }

    /// Whether its receiver is a process of priority `Max` or `High`, as far as is known.
    pub(super) fn is_urgent(&self) -> bool {
        self.0.lock().is_urgent()
    }

    /// Drops it, unless it is the last: that may close the mailbox of who has crashed, and drop what is in it.
    pub(super) fn drop_unless_last(self) -> Result<(), Self> {
        if !self.0.uncount_unless_last() {
            return Err(self);
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: read once, and `this`, which was uncounted above, is not dropped. What is freed with the block, if it is
        // the last reference, is empty: its mailbox was dropped, because whoever crashes keeps its reference.
        drop(unsafe { core::ptr::read(&raw const this.0) });
        Ok(())
    }

    /// Whether its mailbox is there, as far as can be seen: it was not dropped, and its process has not crashed.
    ///
    /// ```
    /// use magpie::channel::ProcessMailbox;
    ///
    /// let mailbox = ProcessMailbox::<u32>::new(4)?;
    /// let address = mailbox.address();
    /// assert!(address.is_alive());
    /// drop(mailbox);
    /// assert!(!address.is_alive());
    /// # Ok::<(), magpie::mem::OutOfMemory>(())
    /// ```
    pub fn is_alive(&self) -> bool {
        !self.has_closed()
    }

    /// How many messages wait.
    pub fn waiting(&self) -> usize {
        self.0.waiting().0
    }
}

impl<M> Clone for ProcessAddr<M> {
    fn clone(&self) -> Self {
        self.0.count_address();
        Self(self.0.clone())
    }
}

impl<M> Drop for ProcessAddr<M> {
    fn drop(&mut self) {
        Block::uncount_address(&self.0);
    }
}

impl<M> fmt::Debug for ProcessAddr<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessAddr({:p})", &raw const *self.0)
    }
}
