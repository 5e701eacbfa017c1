//! Envelopes: messages as they lie in a mailbox.
//!
//! An envelope is three words and the message itself, copied into the buffer once and out of it once. Its first word is
//! a function made for the pair of actor and message, which delivers or drops the message; so a mailbox
//! holds messages of any type without looking at them. Here is how an envelope is laid out, and what is done
//! with one whose types nobody knows; the functions are made above, where behaviours are.
//!
//! The function delivers not one envelope but a *run*: as long as the next one of the batch has the same function it goes on with that,
//! in a loop into which the behaviour is compiled. So a call through a pointer, and what the compiler does at both ends of it, is paid
//! once for mail of one kind.

use alloc::boxed::Box;
use core::hint;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, align_of, size_of};
use core::num::NonZero;
use core::ptr::{self, NonNull};

use super::extent::Extent;
use super::{Mailbox, directory};
use crate::actor::storage::{CellRef, Outcome, Word};
use crate::arch::copy;
use crate::mem;
use crate::message::Message;

/// What is done with an envelope whose types are not known. One word, in which a batch and the operations on a single envelope share the
/// values: what it means says the number of messages that goes with it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Operation(*const Extent);

/// Without messages to deliver: drops the message.
const DROP: Operation = Operation(ptr::null());
/// Without messages to deliver: only says how long it is.
const MEASURE: Operation = Operation(ptr::without_provenance(1));

impl Operation {
    /// Whether an envelope is to be measured only, where it is not to be delivered.
    #[inline(always)]
    pub(crate) fn is_measure(self) -> bool {
        ptr::eq(self.0, MEASURE.0)
    }

    /// Where the envelopes of the batch are.
    ///
    /// # Safety
    /// Some are to be delivered.
    #[inline(always)]
    pub(crate) unsafe fn extent<'a>(self) -> &'a Extent {
        // SAFETY: by contract made of a reference, which lives as long as the delivery.
        unsafe { &*self.0 }
    }
}

/// The function of a run's envelopes, and whether each envelope's actor must be looked at, in one word, so that most often one comparison
/// says that a run goes on: the function's address, and [`CHECKS`] turned in it. No two functions begin so near to each other. The caller
/// of the function says it, who knows the address, and has looked at the actor of the first one.
#[derive(Clone, Copy)]
pub(crate) struct KindOfRun(usize);

/// Each envelope's actor must be looked at.
const CHECKS: usize = 1;

impl KindOfRun {
    /// Of no use, where none is delivered.
    const NONE: Self = Self(0);
}

/// How far a run has come. In two registers, and if the batch goes on one comparison says it.
pub(crate) struct Progress {
    /// If something is left: where the next envelope is, at which the batch's position is by now, and that is not of the run. Otherwise: where the last envelope has
    /// ended its actor, that one's size and outcome, and the position is still at that; 0 at the end of the batch; where the next envelope is, if no more may be delivered. Of what was dropped
    /// or measured: the size, and bits.
    pub at: usize,
    /// How many more may be delivered, if the batch goes on; otherwise 0, and the extent says how many may.
    pub left: u64,
}

impl Progress {
    /// Where the batch goes on, if it does. The run began with `envelope`.
    #[inline(always)]
    pub(crate) fn next(&self, envelope: NonNull<Envelope>) -> Option<NonNull<Envelope>> {
        // SAFETY: if something is left it is where an envelope is.
        (self.left > 0).then(|| envelope.with_addr(unsafe { NonZero::new_unchecked(self.at) }))
    }
}

/// An envelope's size in bytes, and in the lowest three bits the outcome: two for what becomes of the actor and, if that
/// ends, one for whether it has a hook for its end. Of an envelope that is measured they say whether it is a message.
pub(crate) type SizeAndOutcome = usize;

pub(crate) const OUTCOME_MASK: usize = 7;
/// The actor that ends has a hook for that.
pub(crate) const HAS_HOOK: usize = 4;
/// What is measured is no message of anybody's, or one that a watch tells: no bound forgets it.
pub(crate) const NO_MESSAGE: usize = 4;
/// The outcome of what ends an actor that was killed: it is told so, and its hook is run if it has one.
pub(crate) const KILLED: usize = HAS_HOOK;
/// What is measured is no message, and ends its actor, which was killed.
const KILL: usize = NO_MESSAGE | 1;
/// Buffers and envelopes are aligned to this.
pub(crate) const ALIGN: usize = 8;
/// Messages up to this size lie in the envelope; larger ones, and those with a greater alignment, are boxed. Copying so many
/// bytes takes about 100 instructions, once on the way in and once on the way out, and a box 160 more. But an envelope is
/// written with its mailbox's lock held, and what waits in a mailbox needs memory in a few large pieces.
const LARGEST_INLINE_BYTES: usize = 1024;

/// Bytes of the largest envelope.
pub(crate) const LARGEST_ENVELOPE_BYTES: usize = size_of::<Envelope>() + LARGEST_INLINE_BYTES;

/// Carries out an operation on an envelope. Made for a pair of actor and message, where both types are known.
///
/// # Safety
/// The envelope was written by [`write()`] for a target with this function. To deliver or drop: it is done once. To deliver, up to so many
/// messages: the operation was made of the extent of the batch, whose current envelope this is; its actor is alive, and this core alone
/// runs it, and so it is with the others of the batch, or those are to be looked at.
pub(crate) type Deliver = unsafe fn(NonNull<Envelope>, u64, Operation, KindOfRun) -> Progress;

/// The beginning of an envelope; the message follows.
#[repr(C)]
pub(crate) struct Envelope {
    deliver: Deliver,
    pub cell: CellRef,
    pub word: Word,
}

#[repr(C)]
struct Filled<M> {
    envelope: Envelope,
    message: M,
}

/// Whether a message lies in a box.
pub(crate) const fn is_boxed<M>() -> bool {
    size_of::<M>() > LARGEST_INLINE_BYTES || align_of::<M>() > ALIGN
}

/// Bytes of an envelope with a message of type `M`.
pub(crate) const fn size_of_envelope<M>() -> usize {
    let bytes = if is_boxed::<M>() { size_of::<Filled<Box<M>>>() } else { size_of::<Filled<M>>() };
    bytes.next_multiple_of(ALIGN)
}

/// A message in the form in which it goes into an envelope: itself, or a box of it.
pub(crate) trait Packed<M> {
    /// The message again.
    fn unpack(self) -> M;
}

/// A message that lies in its envelope itself.
#[repr(transparent)]
pub(crate) struct Inline<M>(pub M);

impl<M> Packed<M> for Inline<M> {
    fn unpack(self) -> M {
        self.0
    }
}

impl<M> Packed<M> for Box<M> {
    fn unpack(self) -> M {
        *self
    }
}

/// Boxes a message, or gives it back if there is no memory.
#[inline(always)]
pub(crate) fn pack_boxed<M>(message: M) -> Result<Box<M>, M> {
    // By its address: the message is copied once, into the box.
    let message = ManuallyDrop::new(message);
    // SAFETY: the box is made of the message's bytes, and then the message is not used again, nor dropped.
    match unsafe {
        mem::try_box_in_place(|place: *mut M| place.copy_from_nonoverlapping(&raw const *message, 1))
    } {
        Ok(boxed) => Ok(boxed),
        Err(_) => Err(ManuallyDrop::into_inner(message)),
    }
}

/// Where a message goes: its actor, and the function made for the two.
pub(crate) struct Target<M> {
    pub cell: CellRef,
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

impl<M> Target<M> {
    /// The function.
    #[inline(always)]
    pub(crate) fn deliver(&self) -> Deliver {
        self.deliver
    }

    /// The three words that an envelope for it begins with.
    #[inline(always)]
    pub(crate) fn head(&self) -> [u64; 3] {
        let cell = self.cell.pointer().as_ptr().expose_provenance();
        [(self.deliver as *const ()).expose_provenance() as u64, cell as u64, self.word.bits()]
    }

    /// A target of its parts.
    ///
    /// # Safety
    /// The function is made for messages of type `M`, and for actors of the cell's kind.
    #[inline(always)]
    pub(crate) unsafe fn from_parts(cell: CellRef, word: Word, deliver: Deliver) -> Self {
        Self { cell, word, deliver, message: PhantomData }
    }
}

/// Writes an envelope, with the message at `packed`, which is moved there: by its address, so that it is copied once.
///
/// # Safety
/// `place` has room for [`size_of_envelope`] bytes and is aligned to [`ALIGN`]. `P` is a box exactly if [`is_boxed`] says
/// so for `M`. What is at `packed` is valid, and is not used again, nor dropped.
#[inline(always)]
pub(crate) unsafe fn write<M: Message, P: Packed<M>>(
    place: NonNull<u8>,
    target: Target<M>,
    packed: *const P,
) {
    debug_assert_eq!(size_of::<Filled<P>>().next_multiple_of(ALIGN), size_of_envelope::<M>());
    let filled = place.cast::<Filled<P>>().as_ptr();
    // SAFETY: by contract.
    unsafe {
        (&raw mut (*filled).envelope).write(Envelope {
            deliver: target.deliver,
            cell: target.cell,
            word: target.word,
        });
        (&raw mut (*filled).message).copy_from_nonoverlapping(packed, 1);
    }
}

/// Moves the message out of an envelope.
///
/// # Safety
/// The envelope was written by [`write()`] for the same `M`, and the message was not moved out yet.
#[inline(always)]
pub(crate) unsafe fn take_message<M: Message>(envelope: NonNull<Envelope>) -> M {
    // SAFETY: by contract.
    unsafe {
        if is_boxed::<M>() {
            *(&raw const (*envelope.cast::<Filled<Box<M>>>().as_ptr()).message).read()
        } else {
            // An envelope has a whole number of words, and the message begins with one.
            copy::take(&raw const (*envelope.cast::<Filled<M>>().as_ptr()).message)
        }
    }
}

impl Envelope {
    /// # Safety
    /// The contract of [`Deliver`].
    #[inline(always)]
    unsafe fn carry_out(this: NonNull<Self>, operation: Operation) -> Progress {
        // SAFETY: by contract.
        unsafe { ((*this.as_ptr()).deliver)(this, 0, operation, KindOfRun::NONE) }
    }

    /// Whether this one, which comes next, is of the run: it is delivered by the same function, and its actor is attached, if that is to
    /// be looked at.
    ///
    /// # Safety
    /// It was written, and not overwritten since.
    #[inline(always)]
    pub(crate) unsafe fn goes_on(this: NonNull<Self>, kind: KindOfRun) -> bool {
        // SAFETY: by contract.
        unsafe {
            let differs = this.as_ref().deliver as usize ^ kind.0;
            if differs == 0 {
                return true;
            }
            hint::cold_path();
            differs == CHECKS && Self::is_for_attached(this)
        }
    }

    /// The mailbox of its actor.
    pub(crate) fn mailbox(&self) -> &'static Mailbox {
        directory::get(self.word.mailbox())
    }

    /// Whether its actor is attached. The acquire in it pairs with re-attaching on another core.
    ///
    /// # Safety
    /// It was written, and not overwritten since.
    #[inline(always)]
    pub(crate) unsafe fn is_for_attached(this: NonNull<Self>) -> bool {
        // SAFETY: by contract.
        let envelope = unsafe { this.as_ref() };
        envelope.cell.word() == envelope.word
    }

    /// How many bytes it has. Changes nothing.
    ///
    /// # Safety
    /// It was written, and not overwritten since; its message may be gone.
    #[inline(always)]
    pub(crate) unsafe fn measure(this: NonNull<Self>) -> usize {
        // SAFETY: by contract.
        unsafe { Self::carry_out(this, MEASURE) }.at & !OUTCOME_MASK
    }

    /// Whether it is a message, and not the beginning of an actor.
    ///
    /// # Safety
    /// As [`Self::measure`].
    pub(crate) unsafe fn is_message(this: NonNull<Self>) -> bool {
        // SAFETY: by contract.
        unsafe { Self::carry_out(this, MEASURE) }.at & NO_MESSAGE == 0
    }

    /// Whether it ends its actor, which was killed.
    ///
    /// # Safety
    /// As [`Self::measure`].
    pub(crate) unsafe fn is_kill(this: NonNull<Self>) -> bool {
        // SAFETY: by contract.
        unsafe { Self::carry_out(this, MEASURE) }.at & OUTCOME_MASK == KILL
    }

    /// Drops the message. Returns the envelope's size.
    ///
    /// # Safety
    /// As [`Self::measure`], and the message is there; it is not looked at again.
    #[inline(always)]
    pub(crate) unsafe fn drop_message(this: NonNull<Self>) -> usize {
        // SAFETY: by contract.
        unsafe { Self::carry_out(this, DROP) }.at
    }

    /// Hands the message to the actor, and those of the run that begins with it to theirs: at most so many, and at least one. Before all
    /// but the first it looks at the actor if it `checks`: one whose word is another now is not of the run.
    ///
    /// # Safety
    /// As [`Self::drop_message`], for each of them; this one is where the extent is. The actors that are not looked at are alive, and this core
    /// alone runs them; the others it runs alone if they have the word.
    #[inline(always)]
    pub(crate) unsafe fn deliver_run(
        this: NonNull<Self>,
        extent: &Extent,
        most: u64,
        checks: bool,
    ) -> Progress {
        // SAFETY: by contract.
        unsafe {
            let deliver = (*this.as_ptr()).deliver;
            let kind = KindOfRun(deliver as usize ^ (usize::from(checks) * CHECKS));
            deliver(this, most, Operation(extent), kind)
        }
    }

    /// Hands the message to the actor, and none that follows it.
    ///
    /// # Safety
    /// As [`Self::drop_message`], and the actor is alive and this core alone runs it.
    pub(crate) unsafe fn deliver(this: NonNull<Self>) -> SizeAndOutcome {
        let alone = Extent::new();
        // SAFETY: by contract. Behind this one the extent is at its end.
        let Progress { at, .. } = unsafe { Self::deliver_run(this, &alone, 1, false) };
        if at & OUTCOME_MASK != 0 { at } else { alone.position().addr() - this.addr().get() }
    }
}

/// What lies in the envelope that ends an actor which was killed: nothing, and of the actor it need not know the type.
pub(crate) struct Kill;

/// The end of the actor in `cell`.
pub(crate) fn kill(cell: CellRef, word: Word) -> Target<Kill> {
    // SAFETY: the function looks at neither a message nor a state.
    unsafe { Target::from_parts(cell, word, end_killed) }
}

/// # Safety
/// None is needed: see [`kill`].
unsafe fn end_killed(_: NonNull<Envelope>, most: u64, operation: Operation, _: KindOfRun) -> Progress {
    let size = const { size_of_envelope::<Kill>() };
    if most > 0 {
        // SAFETY: there is one to deliver.
        unsafe { operation.extent() }.set_left(most - 1);
        return Progress { at: size | KILLED, left: 0 };
    }
    Progress { at: if operation.is_measure() { size | KILL } else { size }, left: 0 }
}

/// What an outcome's bits mean.
pub(crate) fn outcome(result: SizeAndOutcome) -> Outcome {
    match result & OUTCOME_MASK & !HAS_HOOK {
        0 => Outcome::Continue,
        1 => Outcome::End,
        2 => Outcome::Vacate,
        _ => Outcome::Retire,
    }
}
