//! The receiver's end.

use super::address::ProcessAddr;
use super::block::{Block, Inside, Lists};
use super::by_owner;
use super::owner::Owner;
use crate::mem::OutOfMemory;
use crate::message::{Message, Shared};
use crate::sched;
use crate::sync::Identity;
use core::fmt;
use core::mem;

/// A mailbox that belongs to one process, or to one actor: whoever owns this receives.
///
/// Dropped, it drops what was not received, and senders are told. A process or an actor that crashes drops nothing; so the
/// one that has received from it last is known, and its crash counts as the end of the mailbox.
/// Until somebody has received, or tried to, nobody is known: whoever gives out addresses before that had better be asked with a time
/// limit, because its crash goes unnoticed until then.
///
/// ```
/// # use magpie::sched;
/// use core::time::Duration;
/// use magpie::channel::ProcessMailbox;
///
/// # sched::run_on_threads(2, 1, async {
/// let mut mailbox = ProcessMailbox::new(10)?;
/// let address = mailbox.address();
/// address.send(1)?.send(2)?.send(3)?.send_urgent(4)?;
/// assert_eq!((mailbox.waiting(), address.waiting()), (4, 4));
///
/// assert_eq!(mailbox.receive().await, Some(4));
/// assert_eq!(mailbox.receive_matching(|number| *number > 1).await, Some(2));
/// assert_eq!(mailbox.try_receive(), Some(1));
/// assert_eq!(mailbox.receive_within(Duration::from_secs(10)).await, Ok(Some(3)));
///
/// // Without addresses nothing can come any more.
/// drop(address);
/// assert_eq!(mailbox.receive().await, None);
/// assert_eq!(mailbox.high_water(), 4);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
///
/// One process receives, and what it receives can change cores:
///
/// ```
/// use magpie::channel::ProcessMailbox;
/// fn start(mut mailbox: ProcessMailbox<u32>) {
///     let _ = magpie::sched::spawn(async move { mailbox.receive().await });
/// }
/// ```
///
/// ```compile_fail,E0599
/// use magpie::channel::ProcessMailbox;
/// let mailbox = ProcessMailbox::<std::rc::Rc<u32>>::new(10);
/// ```
///
/// ```compile_fail,E0499
/// use magpie::channel::ProcessMailbox;
/// async fn both(mut mailbox: ProcessMailbox<u32>) {
///     let (first, second) = (mailbox.receive(), mailbox.receive());
///     drop((first.await, second.await));
/// }
/// ```
pub struct ProcessMailbox<M> {
    pub(super) block: Shared<Block<M>>,
    /// What was taken over from the block, and not received yet.
    pub(super) kept: Lists<M>,
    /// Whom the block knows as the owner.
    owner: Option<Identity>,
}

impl<M: Message> ProcessMailbox<M> {
    /// An empty mailbox in which at most `most` messages may wait.
    ///
    /// # Errors
    /// When there is no memory for it. Memory for messages is allocated as they come.
    pub fn new(most: usize) -> Result<Self, OutOfMemory> {
        let block = Shared::new(Block::new(most)).map_err(|error| error.without_message())?;
        Ok(Self { block, kept: Lists::new(), owner: None })
    }

    /// Another address of this mailbox.
    pub fn address(&self) -> ProcessAddr<M> {
        let is_first = !self.block.has_addresses();
        let address = ProcessAddr::new(self.block.clone());
        if is_first && self.owner.is_some() && self.owner == sched::identity_here() {
            // Forgotten with the last address that there was before.
            self.set_owner();
        }
        address
    }

    /// The message that [`Self::receive`] would find waiting.
    pub fn try_receive(&mut self) -> Option<M> {
        self.receive_or(|_, _| ()).ok()
    }

    /// The same, or what `otherwise` says, under the lock, of a block in which nothing waits, and of whether it has addresses.
    #[inline(always)]
    pub(super) fn receive_or<T>(&mut self, otherwise: impl Fn(&Inside<M>, bool) -> T) -> Result<M, T> {
        self.note_owner();
        let mut inside = self.block.lock();
        self.kept.append(&mut inside.come);
        let Some(mut node) = self.kept.pop() else {
            return Err(otherwise(&inside, self.block.has_addresses()));
        };
        let message = node.message.take();
        let surplus = inside.give_back(node);
        drop(inside);
        drop(surplus);
        // A node in a list has a message.
        message.ok_or_else(|| otherwise(&self.block.lock(), self.block.has_addresses()))
    }

    /// How many messages wait.
    pub fn waiting(&self) -> usize {
        self.block.waiting().0
    }

    /// The most messages that ever waited; as many have room for ever.
    pub fn high_water(&self) -> usize {
        self.block.waiting().1
    }

    /// Who runs this receives: the block is told if that is news.
    pub(super) fn note_owner(&mut self) {
        let running = sched::identity_here();
        if running != self.owner {
            self.owner = running;
            self.set_owner();
        }
    }

    fn set_owner(&self) {
        Block::set_owner(&self.block, self.owner, Owner::here());
    }
}

impl<M> Drop for ProcessMailbox<M> {
    /// What waits may be anything, so whoever drops this may crash in the middle, or be killed. Until all is dropped the block is
    /// listed under that one: its crash then tells those who wait for an answer, as it does at any other moment. Requests that were taken
    /// out may wait with who has received, for an answer or their drop: as long as anybody waits for that the block stays listed under that
    /// one, which may crash before it comes to it.
    fn drop(&mut self) {
        let link = Block::link(&self.block);
        let kept = mem::replace(&mut self.kept, Lists::new());
        let (mut left, has_mail) = by_owner::change(|by_owner| {
            by_owner.take_out(link);
            let mut left = self.block.lock().close();
            let has_mail = !left.is_empty() || !kept.is_empty();
            // Without addresses nobody waits for an answer, and nobody can come to.
            if self.block.has_addresses() {
                if has_mail {
                    // SAFETY: the block stays where it is, and lives until it was taken out: by the last address, or below. Whoever
                    // crashes before that keeps its reference.
                    unsafe { by_owner.put(link, sched::identity_here()) };
                } else {
                    Block::stay_listed(&self.block, by_owner, self.owner, left.owner());
                }
            }
            (left, has_mail)
        });
        if !has_mail {
            return;
        }
        let mut owner = left.owner().take();
        // After the lock: messages may be anything.
        drop((left, kept));
        by_owner::change(|by_owner| {
            by_owner.take_out(link);
            if self.block.has_addresses() {
                Block::stay_listed(&self.block, by_owner, self.owner, &mut owner);
            }
        });
    }
}

impl<M> fmt::Debug for ProcessMailbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, high_water) = self.block.waiting();
        write!(f, "ProcessMailbox({waiting} waiting, {high_water} at most)")
    }
}
