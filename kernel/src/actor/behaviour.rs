//! What an actor is to its author: state, and a behaviour for each type of message.

use core::ptr::NonNull;

use super::storage::{CellHeader, Outcome, Word};
use crate::message::Message;

/// State with behaviours. Its behaviours are its implementations of [`Receive`].
///
/// The state moves between cores with its mailbox, so it must be able to:
///
/// ```compile_fail,E0277
/// use magpie::actor::Actor;
/// struct Homebody(std::rc::Rc<u32>);
/// impl Actor for Homebody {}
/// ```
pub trait Actor: Send + 'static {}

/// The behaviour of an actor for messages of type `M`.
///
/// A message for which an actor has no behaviour cannot be sent to it, in whatever way; with the behaviour, it
/// can:
///
/// ```
/// use magpie::actor::{Actor, Addr, Context, Outcome, Receive};
/// struct Keen;
/// impl Actor for Keen {}
/// impl Receive<u32> for Keen {
///     fn receive(&mut self, _: u32, _: &mut Context<Self>) -> Outcome { Outcome::Continue }
/// }
/// fn tell(keen: Addr<Keen>) { let _ = keen.send(1u32); }
/// fn know(keen: Addr<Keen>) -> magpie::actor::Recipient<u32> { keen.recipient() }
/// ```
///
/// ```compile_fail,E0277
/// use magpie::actor::{Actor, Addr};
/// struct Deaf;
/// impl Actor for Deaf {}
/// fn tell(deaf: Addr<Deaf>) { let _ = deaf.send(1u32); }
/// ```
///
/// ```compile_fail,E0277
/// use magpie::actor::{Actor, Addr};
/// struct Deaf;
/// impl Actor for Deaf {}
/// fn know(deaf: Addr<Deaf>) -> magpie::actor::Recipient<u32> { deaf.recipient() }
/// ```
pub trait Receive<M: Message>: Actor + Sized {
    /// Handles one message, to completion. The actor handles one message at a time.
    fn receive(&mut self, message: M, context: &mut Context<Self>) -> Outcome;
}

/// What a behaviour knows about itself. It stays with the behaviour:
///
/// ```compile_fail,E0277
/// fn can_change_cores<T: Send>() {}
/// fn does<A>() { can_change_cores::<magpie::actor::Context<A>>() }
/// ```
///
/// ```compile_fail,E0277
/// fn can_be_shared<T: Sync>() {}
/// fn is<A>() { can_be_shared::<magpie::actor::Context<A>>() }
/// ```
pub struct Context<A> {
    pub(super) cell: NonNull<CellHeader>,
    pub(super) word: Word,
    // As in `Addr`, which is made of it.
    actor: core::marker::PhantomData<fn(A) -> A>,
}

impl<A: Actor> Context<A> {
    #[inline(always)]
    pub(super) fn new(cell: NonNull<CellHeader>, word: Word) -> Self {
        Self { cell, word, actor: core::marker::PhantomData }
    }
}
