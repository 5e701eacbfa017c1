//! Targets made from types: the behaviour of an actor for a message, told or asked, as the function that an envelope carries.
//!
//! This is where the types of actor and message meet; from here on down nobody knows them. What an envelope looks like, and
//! what is done with one whose types are not known, is in `mail/envelope.rs`.

use core::any::TypeId;
use core::ptr::NonNull;

use super::behaviour::{Actor, Context, Receive};
use super::mail::Envelope;
use super::mail::envelope::{self, HAS_HOOK, KindOfRun, NO_MESSAGE, Operation, Progress, Target};
use super::storage::cell::Stored;
use super::storage::{CellRef, Outcome, Word, cell};
use crate::message::Message;
use crate::message::ask::{AskError, Request};
use crate::watch::Ended;

/// The behaviour of the actor in `cell`, which is of kind `A`, for messages of type `M`.
#[inline(always)]
pub(super) fn target<A: Receive<M>, M: Message>(cell: CellRef, word: Word) -> Target<M> {
    // SAFETY: the function is made for messages of type `M`, and for actors of the cell's kind.
    unsafe { Target::from_parts(cell, word, trampoline::<A, M>) }
}

/// The same behaviour, for a message that wants what it returns.
#[inline(always)]
pub(super) fn asking_target<A: Receive<M>, M: Message>(
    cell: CellRef,
    word: Word,
) -> Target<Request<M, A::Reply>> {
    // SAFETY: the function is made for requests with messages of type `M`, and for actors of the cell's kind.
    unsafe { Target::from_parts(cell, word, answering_trampoline::<A, M>) }
}

/// # Safety
/// The contract of [`Deliver`](envelope::Deliver): the envelope was written for a target of the same `A` and `M`.
unsafe fn trampoline<A: Receive<M>, M: Message>(
    envelope: NonNull<Envelope>,
    most: u64,
    operation: Operation,
    kind: KindOfRun,
) -> Progress {
    // SAFETY: by contract.
    unsafe { carry_out::<A, M, Told, true>(envelope, most, operation, kind) }
}

impl<A: Receive<M>, M: Message> Behave<A, M> for Told {
    #[inline(always)]
    fn behave(actor: &mut A, message: M, context: &mut Context<A>) {
        drop(actor.receive(message, context));
    }
}

/// # Safety
/// As [`trampoline`], for a target of requests.
unsafe fn answering_trampoline<A: Receive<M>, M: Message>(
    envelope: NonNull<Envelope>,
    most: u64,
    operation: Operation,
    kind: KindOfRun,
) -> Progress {
    // SAFETY: by contract.
    unsafe { carry_out::<A, Request<M, A::Reply>, Asked, true>(envelope, most, operation, kind) }
}

impl<A: Receive<M>, M: Message> Behave<A, Request<M, A::Reply>> for Asked {
    #[inline(always)]
    fn behave(actor: &mut A, request: Request<M, A::Reply>, context: &mut Context<A>) {
        let answer = actor.receive(request.message, context);
        // An answer that nobody waits for any more is dropped.
        drop(request.reply.send(answer));
    }
}

/// What an actor does with a message. A trait in place of a closure: what a closure is called with is a tuple, which lies in memory as a
/// whole if a long message in it does, and then the context is taken for known to others.
trait Behave<A, M> {
    fn behave(actor: &mut A, message: M, context: &mut Context<A>);
}

/// It is told one.
struct Told;
/// It is asked.
struct Asked;
/// It begins.
struct Begins;
/// It goes on with an answer.
struct GoesOn;

/// Carries out an operation on an envelope with a message of type `M` for an actor of type `A`; delivers a run of them if it `RUNS`, else
/// one.
///
/// The interrupt may split or cut the batch wherever it comes: each envelope is the batch's current one when its behaviour begins, and behind it
/// the end is looked at afresh.
///
/// # Safety
/// The contract of [`Deliver`](envelope::Deliver): the envelope holds an `M`, and the actor is an `A`.
#[inline(always)]
unsafe fn carry_out<A: Actor, M: Message, B: Behave<A, M>, const RUNS: bool>(
    mut envelope: NonNull<Envelope>,
    most: u64,
    operation: Operation,
    kind: KindOfRun,
) -> Progress {
    let size = envelope::size_of_envelope::<M>();
    if most == 0 {
        if operation.is_measure() {
            // What a watch tells no bound may forget. Known when this is compiled.
            let is_end = TypeId::of::<M>() == TypeId::of::<Ended>();
            return Progress { at: if is_end { size | NO_MESSAGE } else { size }, left: 0 };
        }
        // SAFETY: by contract; the message is moved out, once.
        drop(unsafe { envelope::take_message::<M>(envelope) });
        return Progress { at: size, left: 0 };
    }
    // SAFETY: there is one to deliver.
    let extent = unsafe { operation.extent() };
    let mut left = most;
    loop {
        // SAFETY: by contract.
        let (cell, word) = unsafe { (envelope.as_ref().cell, envelope.as_ref().word) };
        let mut context = Context::new(cell, word);
        // SAFETY: the cell is of kind `A` and alive, and this core alone runs the actor.
        let actor = unsafe { &mut *cell::state::<A>(cell) };
        // SAFETY: by contract; the message is moved out, once: straight to where the behaviour gets it, without a copy between.
        B::behave(actor, unsafe { envelope::take_message(envelope) }, &mut context);
        left -= 1;
        if context.outcome != Outcome::Continue {
            // Known when this is compiled, so that an actor without a hook pays nothing.
            let hook = if A::stopped().is_some() { HAS_HOOK } else { 0 };
            extent.set_left(left);
            return Progress { at: size | hook | context.outcome as usize, left: 0 };
        }
        // SAFETY: within the segment, or one past its end.
        let next = unsafe { envelope.cast::<u8>().add(size) };
        extent.go_to(next);
        let is_done = extent.is_done_at(next.as_ptr());
        // Not `||`: in one branch.
        if is_done | (left == 0) {
            extent.set_left(left);
            return Progress { at: if is_done { 0 } else { next.addr().get() }, left: 0 };
        }
        let next = next.cast();
        // SAFETY: it is in the batch.
        if !RUNS || !unsafe { Envelope::goes_on(next, kind) } {
            return Progress { at: next.addr().get(), left };
        }
        envelope = next;
    }
}

/// What lies in the envelope that begins an actor.
pub(super) struct Beginning;

/// The beginning of the actor in `cell`, which is of kind `A`.
pub(super) fn beginning<A: Actor>(cell: CellRef, word: Word) -> Target<Beginning> {
    // SAFETY: the function is made for this message, and for actors of the cell's kind.
    unsafe { Target::from_parts(cell, word, starting_trampoline::<A>) }
}

/// # Safety
/// As [`trampoline`].
unsafe fn starting_trampoline<A: Actor>(
    envelope: NonNull<Envelope>,
    most: u64,
    operation: Operation,
    kind: KindOfRun,
) -> Progress {
    if most == 0 && operation.is_measure() {
        return Progress { at: envelope::size_of_envelope::<Beginning>() | NO_MESSAGE, left: 0 };
    }
    // SAFETY: by contract.
    unsafe { carry_out::<A, Beginning, Begins, false>(envelope, most, operation, kind) }
}

impl<A: Actor> Behave<A, Beginning> for Begins {
    #[inline(always)]
    fn behave(actor: &mut A, _: Beginning, context: &mut Context<A>) {
        if let Some(hook) = A::started() {
            hook(actor, context);
        }
    }
}

/// What an actor does with the answer to what it has asked.
pub(super) struct Answered<F, R> {
    pub then: F,
    pub result: Result<R, AskError>,
}

/// The actor in `cell`, which is of kind `A`, as the one that does what is in the message.
pub(super) fn continuation<A, F, R>(cell: CellRef, word: Word) -> Target<Answered<F, R>>
where
    A: Actor,
    F: FnOnce(&mut A, Result<R, AskError>, &mut Context<A>) + Send + 'static,
    R: Send + 'static,
{
    // SAFETY: the function is made for this message, and for actors of the cell's kind.
    unsafe { Target::from_parts(cell, word, continuing_trampoline::<A, F, R>) }
}

/// # Safety
/// As [`trampoline`].
unsafe fn continuing_trampoline<A, F, R>(
    envelope: NonNull<Envelope>,
    most: u64,
    operation: Operation,
    kind: KindOfRun,
) -> Progress
where
    A: Actor,
    F: FnOnce(&mut A, Result<R, AskError>, &mut Context<A>) + Send + 'static,
    R: Send + 'static,
{
    // SAFETY: by contract.
    unsafe { carry_out::<A, Answered<F, R>, GoesOn, false>(envelope, most, operation, kind) }
}

impl<A, F, R> Behave<A, Answered<F, R>> for GoesOn
where
    A: Actor,
    F: FnOnce(&mut A, Result<R, AskError>, &mut Context<A>) + Send + 'static,
    R: Send + 'static,
{
    #[inline(always)]
    fn behave(actor: &mut A, answered: Answered<F, R>, context: &mut Context<A>) {
        (answered.then)(actor, answered.result, context);
    }
}

impl<A: Actor> Stored for A {
    unsafe fn stopped(cell: CellRef, word: Word) {
        if let Some(hook) = A::stopped() {
            // SAFETY: by contract the cell is of this kind, and the state is the caller's alone.
            hook(unsafe { &mut *cell::state::<A>(cell) }, &mut Context::new(cell, word));
        }
    }
}
