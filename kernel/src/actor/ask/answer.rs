//! The asker's side: the future of an answer.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use super::answers::Answers;
use super::error::AskError;
use super::reply::{Reply, Request};
use super::slot::{self, SlotRef, State};
use crate::actor::address::Addr;
use crate::actor::behaviour::Actor;
use crate::actor::run::pending_asks::Asked;
use crate::message::{Message, SendError};
use crate::sync::{is_kept_for, keep_waker};
use crate::time;

/// The future of an answer. Dropping it gives the answer up; the request is handled all the same.
#[must_use = "an answer comes to who awaits it"]
pub struct Answer<R>(Inner<R>);

enum Inner<R> {
    Asked(SlotRef<R>),
    /// It was never sent.
    Failed(AskError),
}

impl<R> Future for Answer<R> {
    type Output = Result<R, AskError>;

    /// # Panics
    /// When polled again after the answer.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let slot = match &self.0 {
            Inner::Asked(slot) => slot,
            Inner::Failed(error) => return Poll::Ready(Err(*error)),
        };
        let mut waker: Option<Waker> = None;
        let settled = loop {
            let mut state = slot.state.lock();
            let State::Waiting(known) = &mut *state else {
                break core::mem::replace(&mut *state, State::Closed);
            };
            if known.as_ref().is_some_and(|known| is_kept_for(known, context.waker())) {
                return Poll::Pending;
            }
            // Wakers are cloned and dropped outside the lock: they may be the application's own, and dropping one may
            // free a process.
            if let Some(new) = waker.take() {
                let previous = known.replace(new);
                drop(state);
                drop(previous);
                return Poll::Pending;
            }
            drop(state);
            waker = keep_waker(context.waker());
            if waker.is_none() {
                // Without memory it is asked again at once.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        };
        match settled {
            State::Answered(answer) => Poll::Ready(Ok(answer)),
            State::Failed(error) => Poll::Ready(Err(error)),
            State::Waiting(_) | State::Closed => panic!("an answer was awaited twice; await it once"),
        }
    }
}

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        if let Inner::Asked(slot) = &self.0 {
            let state = core::mem::replace(&mut *slot.state.lock(), State::Closed);
            // After the lock: an answer that nobody took may be anything.
            drop(state);
        }
    }
}

impl<A: Actor> Addr<A> {
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
        self.try_ask(message).unwrap_or_else(|error| Answer(Inner::Failed(error.into())))
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
        let Some((asker, asked)) = slot::create(Asked::of(self.cell(), self.word())) else {
            return Err(SendError::OutOfMemory(message));
        };
        asked.list();
        match A::asked(self).send(Request { message, reply: Reply::new(asked) }) {
            Ok(_) => Ok(Answer(Inner::Asked(asker))),
            Err(error) => Err(error.map(|request| request.message)),
        }
    }

    /// As [`Addr::ask`], but waits no longer than `limit`.
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
