//! Asking a process. What an ask is stands in `message/ask`.
//!
//! A process that can be asked has a mailbox for [`Request`]s, and answers each through its handle. It is known to those who
//! wait as long as somebody has an address of its mailbox (see [`by_owner`](super::by_owner)); so an answer borrows the
//! address.

use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use super::address::ProcessAddr;
use crate::message::ask::{self, AskError, Request};
use crate::message::{Message, SendError};
use crate::time;

/// The future of an answer from a process. Dropping it gives the answer up; the request is handled all the same.
///
/// Whoever waits has an address of the mailbox meanwhile:
///
/// ```compile_fail,E0515
/// use magpie::channel::{Answer, ProcessAddr, Request};
/// fn ask(clerk: ProcessAddr<Request<u32, String>>) -> Answer<'static, String> { clerk.ask(7) }
/// ```
#[must_use = "an answer comes to who awaits it"]
pub struct Answer<'a, R> {
    answer: ask::Answer<R>,
    address: PhantomData<&'a ()>,
}

impl<R> Future for Answer<'_, R> {
    type Output = Result<R, AskError>;

    /// # Panics
    /// When polled again after the answer.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(context)
    }
}

impl<M: Message, R: Send + 'static> ProcessAddr<Request<M, R>> {
    /// Asks: sends `message` with a handle for the reply, at once, and returns the future of the answer. One allocation,
    /// beside what a send takes.
    ///
    /// Whoever drops the request, or the mailbox that it waits in, tells the asker so; as does the crash of the process that
    /// has received from the mailbox last.
    ///
    /// ```
    /// use magpie::channel::{AskError, ProcessAddr, Request};
    /// async fn total(clerk: ProcessAddr<Request<u32, u64>>) -> Result<u64, AskError> {
    ///     Ok(clerk.ask(1).await? + clerk.ask(2).await?)
    /// }
    /// ```
    pub fn ask(&self, message: M) -> Answer<'_, R> {
        let failed = |error: SendError<M>| Answer {
            answer: ask::Answer::failed(error.without_message().into()),
            address: PhantomData,
        };
        self.try_ask(message).unwrap_or_else(failed)
    }

    /// As [`Self::ask`]; a message that cannot be sent comes back.
    ///
    /// # Errors
    /// As [`ProcessAddr::send`].
    pub fn try_ask(&self, message: M) -> Result<Answer<'_, R>, SendError<M>> {
        let answer = ask::ask(self.asked(), message, |request| self.send(request).map(drop))?;
        Ok(Answer { answer, address: PhantomData })
    }

    /// As [`Self::ask`], but waits no longer than `limit`.
    ///
    /// # Errors
    /// Those of the answer, and [`AskError::TimedOut`] after the limit.
    pub fn ask_within(
        &self,
        limit: Duration,
        message: M,
    ) -> impl Future<Output = Result<R, AskError>> + Send + use<'_, M, R> {
        let answer = time::timeout(limit, self.ask(message));
        async move { answer.await.unwrap_or(Err(AskError::TimedOut)) }
    }
}
