//! A send that waits for room, where another would come back because the mailbox is full.
//!
//! It tries; when the mailbox is full it takes a seat among those who wait for room there, and tries again when a worker has
//! taken what was in it. It looks for room once more in the hold of the lock in which it leaves its waker, and the worker
//! tells those who wait after it has made room: whichever comes first, the sender finds out. A mailbox that closes tells them once, and
//! makes no room: so the sender that has left its waker looks whether it is open, too.
//!
//! The message stays in the future until it is sent, so one that is dropped early has sent nothing.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::address::Addr;
use super::behaviour::Receive;
use super::mail::{Mailbox, directory};
use super::recipient::Recipient;
use crate::message::{Message, SendError};
use crate::sched;
use crate::sync::Seat;

/// The future of a message that waits for room. Dropped early, it has sent nothing.
#[must_use = "nothing is sent before this is awaited"]
pub struct SendWait<M> {
    to: Recipient<M>,
    /// None once it was sent, or has come back.
    message: Option<M>,
    /// Where it waits for room, once there was none.
    seat: Option<Seat<'static>>,
}

impl<M> Unpin for SendWait<M> {}

impl<M: Message> SendWait<M> {
    fn mailbox(&self) -> &'static Mailbox {
        directory::get(self.to.mailbox())
    }
}

impl<M: Message> Future for SendWait<M> {
    type Output = Result<(), SendError<M>>;

    /// # Panics
    /// When polled again after it was sent, or has come back.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            if sched::is_exhausted() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let Some(message) = this.message.take() else {
                panic!("a message that was sent was awaited again; await it once");
            };
            match this.to.send(message) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(SendError::Full(message)) => this.message = Some(message),
                Err(error) => return Poll::Ready(Err(error)),
            }
            let mailbox = this.mailbox();
            // A seat that was told has had its turn: somebody else was faster.
            let bound = mailbox.bound();
            let aside = || if bound.is_of_one() { this.to.messages_aside() } else { 0 };
            let has_room = || bound.exceeded_by(mailbox.waiting().saturating_add(aside())).is_none();
            let seat = this.seat.get_or_insert_with(|| mailbox.waiting_senders.seat());
            let is_pending = seat.poll(context.waker(), |told| told || has_room()).is_pending();
            // Who closed the mailbox may have told those who waited before this one did, and nobody is told again. What was done before that
            // is seen from here on: that it is closed, or that it was, by the actor's end, if it was opened again since.
            if is_pending && mailbox.is_open() && this.to.is_alive() {
                return Poll::Pending;
            }
            this.seat = None;
        }
    }
}

impl<M: Message> Recipient<M> {
    /// Sends a message, and waits for room where [`send`](Self::send) would give it back because the mailbox is full. Nothing
    /// is sent before this is awaited. Of those who wait, whoever is first when there is room sends first.
    ///
    /// # Errors
    /// As [`Addr::send`], but never [`SendError::Full`].
    ///
    /// ```
    /// use magpie::actor::{Recipient, SendError};
    /// async fn count_to(to: Recipient<u64>, last: u64) -> Result<(), SendError<u64>> {
    ///     for number in 1..=last {
    ///         to.send_wait(number).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn send_wait(&self, message: M) -> SendWait<M> {
        SendWait { to: *self, message: Some(message), seat: None }
    }
}

impl<A> Addr<A> {
    /// Sends a message, and waits for room: see [`Recipient::send_wait`].
    ///
    /// # Errors
    /// As [`Addr::send`], but never [`SendError::Full`].
    pub fn send_wait<M: Message>(&self, message: M) -> SendWait<M>
    where
        A: Receive<M>,
    {
        self.recipient().send_wait(message)
    }
}
