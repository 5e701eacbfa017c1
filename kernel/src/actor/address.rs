//! Addresses: how messages are sent.
//!
//! An address is two words, may be copied to any core, and is never dangerous: when its actor has ended the
//! send says so and gives the message back. An actor may end between the check and the delivery; such a
//! message is dropped and counted as a dead letter.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::behaviour::{Actor, Message, Receive};
use super::cell::CellHeader;
use super::envelope;
use super::mailbox::{Mailbox, directory};
use super::segment::Segment;
use super::word::Word;

/// The address of an actor of type `A`.
pub struct Addr<A> {
    cell: NonNull<CellHeader>,
    word: Word,
    actor: PhantomData<fn(A)>,
}

// SAFETY: the cell's header may be read from any core for ever; the state is only touched by the worker.
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
        write!(f, "Addr({:p}/{:#x})", self.cell, self.word.bits())
    }
}

/// Why a message was not sent; it comes back.
#[derive(PartialEq, Eq)]
pub enum SendError<M> {
    /// The actor has ended.
    Ended(M),
    /// No memory for a message of this size, or for the mailbox to grow. Nothing else was lost.
    OutOfMemory(M),
}

impl<M> SendError<M> {
    /// The message.
    pub fn into_message(self) -> M {
        match self {
            Self::Ended(message) | Self::OutOfMemory(message) => message,
        }
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended(_) => "the actor has ended",
            Self::OutOfMemory(_) => "out of memory: the message was not sent",
        })
    }
}

impl<A: Actor> Addr<A> {
    #[inline(always)]
    pub(super) fn new(cell: NonNull<CellHeader>, word: Word) -> Self {
        Self { cell, word, actor: PhantomData }
    }

    /// Sends a message. Returns the address, so that sends can be chained with `?`.
    ///
    /// # Errors
    /// The message comes back when the actor has ended or memory is exhausted.
    #[inline]
    pub fn send<M: Message>(&self, message: M) -> Result<&Self, SendError<M>>
    where
        A: Receive<M>,
    {
        if !self.is_alive() {
            return Err(SendError::Ended(message));
        }
        let packed = match envelope::pack(message) {
            Ok(packed) => packed,
            Err(message) => return Err(SendError::OutOfMemory(message)),
        };
        let bytes = const { envelope::size_of_envelope::<M>() };
        let mailbox = directory::get(self.word.mailbox());
        let mut inside = mailbox.inside.lock();
        if inside.closed {
            return Err(SendError::Ended(packed.unpack()));
        }
        let place = loop {
            if let Some(place) = inside.queue.reserve(bytes) {
                break place;
            }
            drop(inside);
            if !grow(mailbox, bytes) {
                return Err(SendError::OutOfMemory(packed.unpack()));
            }
            inside = mailbox.inside.lock();
            if inside.closed {
                return Err(SendError::Ended(packed.unpack()));
            }
        };
        // SAFETY: the queue reserved that many bytes, aligned; an address is made for a cell of kind `A`.
        unsafe { envelope::write::<A, M>(place, self.cell, self.word, packed) };
        let messages = inside.queue.messages();
        mailbox.set_waiting(messages);
        if messages == 1 {
            // The first one is responsible for waking the owner, while the lock keeps the executor alive.
            // SAFETY: the mailbox is open, and cannot be closed while the lock is held.
            unsafe { mailbox.shared() }.notify(mailbox);
        }
        drop(inside);
        Ok(self)
    }

    pub(super) fn mailbox(&self) -> super::mailbox::MailboxIndex {
        self.word.mailbox()
    }

    /// Whether the actor has not ended, as far as can be seen.
    #[inline(always)]
    pub fn is_alive(&self) -> bool {
        // SAFETY: cells are never unmapped, and their words may be read by anyone.
        let word = unsafe { self.cell.as_ref() }.word();
        word == self.word || word.is_same_actor(self.word)
    }
}

/// Gives a mailbox another segment with room for `bytes`, allocated outside its lock. Whether it could.
#[cold]
#[inline(never)]
fn grow(mailbox: &Mailbox, bytes: usize) -> bool {
    let capacity = mailbox.inside.lock().queue.next_capacity_bytes(bytes);
    let Some(segment) = Segment::new(capacity) else { return false };
    let mut inside = mailbox.inside.lock();
    // Another sender, or a gulp, may have made room meanwhile.
    if inside.queue.has_room(bytes) {
        drop(inside);
        // SAFETY: just made, and empty.
        unsafe { Segment::free(segment) };
    } else {
        inside.queue.extend(segment);
    }
    true
}
