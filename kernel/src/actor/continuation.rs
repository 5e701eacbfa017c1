//! An actor asks another, and does not wait: what it does with the answer comes to it as a message.
//!
//! A process awaits the answer and sends what is to be done with it to the mailbox of the asking actor. So nothing of the
//! application's runs where the answer is given, nor on the way of a crash; and what cannot be done any more, because the
//! actor has ended, is dropped in that process.

use core::time::Duration;

use super::address::Addr;
use super::ask::Answers;
use super::behaviour::{Actor, Context};
use super::recipient::Recipient;
use super::target::{self, Answered};
use crate::message::ask::{self, AskError, Request};
use crate::message::{Message, SendError};
use crate::{sched, time};

/// Without memory for an envelope it is tried again after so long.
const PAUSE: Duration = Duration::from_millis(1);

impl<A: Actor> Context<A> {
    /// Asks another actor, at once and without waiting. What is to be done with the answer is done later, as a behaviour of
    /// this actor: it takes its turn among the messages in the mailbox, and sees the state as it is then. It is told, too, why
    /// there is no answer. If this actor has ended by then it is dropped.
    ///
    /// An ask takes an allocation, and a process that awaits the answer. Where a bound makes the mailbox refuse messages
    /// that process waits for room; a bound that forgets messages may forget this one.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message, when there is no memory for such a process, or there are as many as may
    /// be: nothing was asked. Whatever else goes wrong, `then` is told.
    ///
    /// ```
    /// use magpie::actor::{Actor, Addr, Context, Receive};
    /// struct Clock;
    /// struct Diary { clock: Addr<Clock>, entries: Vec<(u64, String)> }
    /// impl Actor for Clock {}
    /// impl Actor for Diary {}
    /// struct Now;
    /// impl Receive<Now> for Clock {
    ///     type Reply = u64;
    ///
    ///     fn receive(&mut self, _: Now, _: &mut Context<Self>) -> u64 { 12 }
    /// }
    /// impl Receive<String> for Diary {
    ///     type Reply = ();
    ///
    ///     fn receive(&mut self, entry: String, context: &mut Context<Self>) {
    ///         let asked = context.ask(self.clock, Now, |diary, time, _context| {
    ///             diary.entries.push((time.unwrap_or(0), entry));
    ///         });
    ///         if asked.is_err() {
    ///             context.end();
    ///         }
    ///     }
    /// }
    /// ```
    pub fn ask<B, M, K, F>(&self, other: Addr<B>, message: M, then: F) -> Result<(), SendError<M>>
    where
        B: Actor + Answers<M, K>,
        M: Message,
        F: FnOnce(&mut A, Result<<B as Answers<M, K>>::Reply, AskError>, &mut Self) + Send + 'static,
    {
        let Some((answer, reply)) = ask::prepare(other.asked()) else {
            return Err(SendError::OutOfMemory(message));
        };
        let own = Recipient::new(target::continuation(self.cell, self.word));
        // First, so that there is somebody to tell whatever becomes of the request.
        let waiting = sched::spawn(async move {
            let result = answer.await;
            deliver(own, Answered { then, result }).await;
        });
        if waiting.is_err() {
            return Err(SendError::OutOfMemory(message));
        }
        if let Err(error) = B::asked(&other).send(Request { message, reply }) {
            let why = error.without_message().into();
            error.into_message().reply.fail(why);
        }
        Ok(())
    }
}

/// Sends what must not be lost, unless its actor has ended.
async fn deliver<M: Message>(to: Recipient<M>, mut message: M) {
    while let Err(SendError::OutOfMemory(back)) = to.send_wait(message).await {
        message = back;
        time::sleep(PAUSE).await;
    }
}
