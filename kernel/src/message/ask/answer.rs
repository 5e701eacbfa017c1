//! The asker's side: the future of an answer.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::error::AskError;
use super::pending::Asked;
use super::reply::{Reply, Request};
use super::slot::{self, SlotRef, State};
use crate::message::SendError;
use crate::sync::{is_kept_for, keep_waker};

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

/// Asks: sends a request for `message`, by `send`, and returns the future of its answer; or gives the message back.
pub(crate) fn ask<M, R>(
    asked: Asked,
    message: M,
    send: impl FnOnce(Request<M, R>) -> Result<(), SendError<Request<M, R>>>,
) -> Result<Answer<R>, SendError<M>> {
    let Some((answer, reply)) = prepare(asked) else { return Err(SendError::OutOfMemory(message)) };
    match send(Request { message, reply }) {
        Ok(()) => Ok(answer),
        Err(error) => Err(error.map(|request| request.message)),
    }
}

/// Both ends of an ask that is listed, and not sent yet; `None` without memory.
pub(crate) fn prepare<R>(asked: Asked) -> Option<(Answer<R>, Reply<R>)> {
    let (asker, listed) = slot::create(asked)?;
    listed.list();
    Some((Answer(Inner::Asked(asker)), Reply::new(listed)))
}

impl<R> Answer<R> {
    /// That of a request which was never sent.
    pub(crate) const fn failed(error: AskError) -> Self {
        Self(Inner::Failed(error))
    }
}
