//! Envelopes: messages as they lie in a mailbox.
//!
//! An envelope is three words and the message itself, moved into the buffer byte by byte. Its first word is
//! a function made for the pair of actor and message, which delivers or drops the message; so a mailbox
//! holds messages of any type without looking at them.
//!
//! The function returns the envelope's size, in which the lowest bits are free, together with the outcome:
//! the loop that delivers a batch adds the one and tests the other.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::mem::{align_of, size_of};
use core::ptr::NonNull;

use super::behaviour::{Context, Receive};
use super::storage::{CellHeader, Outcome, Word, cell};
use crate::mem;
use crate::message::Message;

/// What is asked of an envelope.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Request {
    /// Hand the message to the actor.
    Deliver = 0,
    /// Drop the message.
    Drop = 1,
    /// Only say how long it is.
    Measure = 2,
}

/// An envelope's size in bytes, and in the lowest three bits the outcome.
pub(super) type SizeAndOutcome = usize;

pub(super) const OUTCOME_MASK: usize = 7;
/// Buffers and envelopes are aligned to this.
pub(super) const ALIGN: usize = 8;
/// Messages up to this size lie in the envelope; larger ones, and those with a greater alignment, are boxed.
pub(super) const LARGEST_INLINE_BYTES: usize = 256;

/// Bytes of the largest envelope.
pub(super) const LARGEST_ENVELOPE_BYTES: usize = size_of::<Envelope>() + LARGEST_INLINE_BYTES;

/// Made for a pair of actor and message: see [`trampoline`].
pub(super) type Deliver = unsafe fn(NonNull<Envelope>, Request) -> SizeAndOutcome;

/// The beginning of an envelope; the message follows.
#[repr(C)]
pub(super) struct Envelope {
    deliver: Deliver,
    pub cell: NonNull<CellHeader>,
    pub word: Word,
}

#[repr(C)]
struct Filled<M> {
    envelope: Envelope,
    message: M,
}

const fn is_boxed<M>() -> bool {
    size_of::<M>() > LARGEST_INLINE_BYTES || align_of::<M>() > ALIGN
}

/// Bytes of an envelope with a message of type `M`.
pub(super) const fn size_of_envelope<M>() -> usize {
    let bytes = if is_boxed::<M>() { size_of::<Filled<Box<M>>>() } else { size_of::<Filled<M>>() };
    bytes.next_multiple_of(ALIGN)
}

/// A message in the form in which it goes into an envelope.
pub(super) enum Packed<M> {
    Inline(M),
    Boxed(Box<M>),
}

/// Packs a message, or gives it back if it must be boxed and there is no memory.
#[inline(always)]
pub(super) fn pack<M>(message: M) -> Result<Packed<M>, M> {
    if is_boxed::<M>() {
        mem::try_box(message).map(Packed::Boxed).map_err(|(_, m)| m)
    } else {
        Ok(Packed::Inline(message))
    }
}

impl<M> Packed<M> {
    /// The message again.
    pub(super) fn unpack(self) -> M {
        match self {
            Self::Inline(message) => message,
            Self::Boxed(message) => *message,
        }
    }
}

/// Where a message goes: its actor, and the function made for the two.
pub(super) struct Target<M> {
    pub cell: NonNull<CellHeader>,
    pub word: Word,
    deliver: Deliver,
    message: PhantomData<fn(M)>,
}

impl<M> Clone for Target<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Target<M> {}

impl<M: Message> Target<M> {
    /// The behaviour of the actor in `cell`, which is of kind `A`, for messages of type `M`.
    #[inline(always)]
    pub(super) fn new<A: Receive<M>>(cell: NonNull<CellHeader>, word: Word) -> Self {
        Self { cell, word, deliver: trampoline::<A, M>, message: PhantomData }
    }
}

impl<M> Target<M> {
    /// The function.
    #[inline(always)]
    pub(super) fn deliver(&self) -> Deliver {
        self.deliver
    }

    /// A target that was taken apart.
    ///
    /// # Safety
    /// The three parts are those of one target for messages of type `M`.
    pub(super) unsafe fn from_parts(cell: NonNull<CellHeader>, word: Word, deliver: Deliver) -> Self {
        Self { cell, word, deliver, message: PhantomData }
    }
}

/// Writes an envelope.
///
/// # Safety
/// `place` has room for [`size_of_envelope`] bytes and is aligned to [`ALIGN`].
#[inline(always)]
pub(super) unsafe fn write<M: Message>(place: NonNull<u8>, target: Target<M>, message: Packed<M>) {
    let envelope = Envelope { deliver: target.deliver, cell: target.cell, word: target.word };
    // SAFETY: by contract.
    unsafe {
        match message {
            Packed::Inline(message) => place.cast::<Filled<M>>().write(Filled { envelope, message }),
            Packed::Boxed(message) => place.cast::<Filled<Box<M>>>().write(Filled { envelope, message }),
        }
    }
}

/// # Safety
/// The envelope was written by [`write`] for the same `A` and `M`. To deliver or drop: it is done once; to
/// deliver, the actor is alive and this core alone runs it.
unsafe fn trampoline<A: Receive<M>, M: Message>(
    envelope: NonNull<Envelope>,
    request: Request,
) -> SizeAndOutcome {
    let size = size_of_envelope::<M>();
    if request == Request::Measure {
        return size;
    }
    // SAFETY: by contract; the message is moved out here, once.
    let message: M = unsafe {
        if is_boxed::<M>() {
            *envelope.cast::<Filled<Box<M>>>().read().message
        } else {
            (&raw const (*envelope.cast::<Filled<M>>().as_ptr()).message).read()
        }
    };
    if request == Request::Drop {
        drop(message);
        return size;
    }
    // SAFETY: by contract.
    let (cell, word) = unsafe { (envelope.as_ref().cell, envelope.as_ref().word) };
    let mut context = Context::new(cell, word);
    // SAFETY: the cell is of kind `A` and alive, and this core alone runs the actor.
    let actor = unsafe { &mut *cell::state::<A>(cell) };
    size | actor.receive(message, &mut context) as usize
}

impl Envelope {
    /// Carries out a request.
    ///
    /// # Safety
    /// As for [`trampoline`].
    #[inline(always)]
    pub(super) unsafe fn ask(this: NonNull<Self>, request: Request) -> SizeAndOutcome {
        // SAFETY: by contract.
        unsafe { ((*this.as_ptr()).deliver)(this, request) }
    }
}

/// What an outcome's bits mean.
pub(super) fn outcome(result: SizeAndOutcome) -> Outcome {
    match result & OUTCOME_MASK {
        0 => Outcome::Continue,
        1 => Outcome::Delete,
        2 => Outcome::Destroy,
        _ => Outcome::Finished,
    }
}
