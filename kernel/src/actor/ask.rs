//! Asking actors: what an actor answers to what, as far as the compiler knows, and how it is asked. What an ask is stands in
//! `message/ask`.
//!
//! There are two ways to answer: by the behaviour's return value, and by a handle that is kept. An ask is written the same
//! for both; which it is the compiler infers, as the second parameter of [`Answers`].

use core::marker::PhantomData;
use core::time::Duration;

use crate::actor::address::Addr;
use crate::actor::behaviour::{Actor, Receive};
use crate::actor::recipient::Recipient;
use crate::actor::target::asking_target;
use crate::message::ask::{Answer, AskError, Asked, Request, ask};
use crate::message::{Message, SendError};
use crate::time;

/// An actor that answers messages of type `M`. Implemented by the kernel alone: whoever writes [`Receive<M>`](Receive), or
/// [`Receive<Request<M, R>>`](Request) to answer later, has it. Of the two an actor should have one for the same `M`, and of
/// the second one for one `R`: else the compiler cannot know which is meant, and an ask is an error.
///
/// ```compile_fail,E0283
/// use magpie::actor::{Actor, Addr, Context, Receive, Request};
/// struct Torn;
/// impl Actor for Torn {}
/// impl Receive<u32> for Torn {
///     type Reply = ();
///
///     fn receive(&mut self, _: u32, _: &mut Context<Self>) {}
/// }
/// impl Receive<Request<u32, ()>> for Torn {
///     type Reply = ();
///
///     fn receive(&mut self, _: Request<u32, ()>, _: &mut Context<Self>) {}
/// }
/// fn ask(torn: Addr<Torn>) { let _ = torn.ask(1u32); }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no answer to messages of type `{M}`",
    label = "no behaviour answers `{M}`",
    note = "write `impl Receive<{M}> for {Self}`, whose `Reply` is the answer",
    note = "or, to answer later, `impl Receive<Request<{M}, R>> for {Self}`"
)]
pub trait Answers<M: Message, Kind>: sealed::Asked<M, Kind, Answer = Self::Reply> + Sized + 'static {
    /// What whoever asks gets.
    type Reply: Send + 'static;
}

/// It answers with what its behaviour returns.
pub struct Direct(());

/// It answers through a handle, with an `R`.
pub struct Kept<R>(PhantomData<fn(R)>);

impl<A: Receive<M>, M: Message> Answers<M, Direct> for A {
    type Reply = A::Reply;
}

impl<A: Receive<Request<M, R>>, M: Message, R: Send + 'static> Answers<M, Kept<R>> for A {
    type Reply = R;
}

pub(super) mod sealed {
    use super::{Addr, Message, Recipient, Request};

    /// Where a request goes.
    pub trait Asked<M: Message, Kind> {
        type Answer: Send + 'static;

        fn asked(address: &Addr<Self>) -> Recipient<Request<M, Self::Answer>>
        where
            Self: Sized;
    }
}

impl<A: Receive<M>, M: Message> sealed::Asked<M, Direct> for A {
    type Answer = A::Reply;

    fn asked(address: &Addr<A>) -> Recipient<Request<M, A::Reply>> {
        Recipient::new(asking_target::<A, M>(address.cell(), address.word()))
    }
}

impl<A: Receive<Request<M, R>>, M: Message, R: Send + 'static> sealed::Asked<M, Kept<R>> for A {
    type Answer = R;

    fn asked(address: &Addr<A>) -> Recipient<Request<M, R>> {
        address.recipient()
    }
}

impl<A: Actor> Addr<A> {
    /// Under what those are listed who have asked it.
    pub(super) fn asked(&self) -> Asked {
        Asked::new(self.cell().pointer().addr().get(), self.word().bits())
    }

    /// Asks: sends `message` with a handle for the reply, at once, and returns the future of the answer. What that is the
    /// behaviour says: see [`Answers`]. One allocation.
    ///
    /// ```
    /// use magpie::actor::{Actor, Addr, AskError, Context, Receive};
    /// struct Counter { sum: u64 }
    /// impl Actor for Counter {}
    /// struct Read;
    /// impl Receive<Read> for Counter {
    ///     type Reply = u64;
    ///
    ///     fn receive(&mut self, _: Read, _: &mut Context<Self>) -> u64 { self.sum }
    /// }
    /// async fn twice(counter: Addr<Counter>) -> Result<u64, AskError> {
    ///     Ok(2 * counter.ask(Read).await?)
    /// }
    /// ```
    pub fn ask<M: Message, K>(&self, message: M) -> Answer<<A as Answers<M, K>>::Reply>
    where
        A: Answers<M, K>,
    {
        self.try_ask(message).unwrap_or_else(|error| Answer::failed(error.into()))
    }

    /// As [`Addr::ask`]; a message that cannot be sent comes back.
    ///
    /// # Errors
    /// As [`Addr::send`].
    pub fn try_ask<M: Message, K>(
        &self,
        message: M,
    ) -> Result<Answer<<A as Answers<M, K>>::Reply>, SendError<M>>
    where
        A: Answers<M, K>,
    {
        ask(self.asked(), message, |request| A::asked(self).send(request).map(drop))
    }

    /// As [`Addr::ask`], but waits no longer than `limit`.
    ///
    /// # Errors
    /// Those of the answer, and [`AskError::TimedOut`] after the limit.
    pub fn ask_within<M: Message, K>(
        &self,
        limit: Duration,
        message: M,
    ) -> impl Future<Output = Result<<A as Answers<M, K>>::Reply, AskError>> + Send + use<A, M, K>
    where
        A: Answers<M, K>,
    {
        let answer = time::timeout(limit, self.ask(message));
        async move { answer.await.unwrap_or(Err(AskError::TimedOut)) }
    }
}
