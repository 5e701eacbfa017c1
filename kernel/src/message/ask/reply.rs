//! The asked side: a request, and the handle through which it is answered.

use core::fmt;
use core::mem::ManuallyDrop;

use super::error::AskError;
use super::slot::{SlotRef, State};
use crate::sync::is_kept_for_crashed;

/// A message and the handle of its reply, for a behaviour that answers later: one that keeps the handle, or passes it on.
/// (One that answers at once is written for the message itself, and returns the answer.)
///
/// The behaviour says what is answered to what; an actor cannot be asked what it has no answer to:
///
/// ```
/// use magpie::actor::{Actor, Addr, Answer, Context, Receive, Reply, Request};
/// struct Sage(Vec<Reply<String>>);
/// impl Actor for Sage {}
/// impl Receive<Request<u32, String>> for Sage {
///     type Reply = ();
///
///     fn receive(&mut self, request: Request<u32, String>, _: &mut Context<Self>) {
///         self.0.push(request.reply);
///     }
/// }
/// fn ask(sage: Addr<Sage>) -> Answer<String> { sage.ask(42u32) }
/// ```
///
/// ```compile_fail,E0277
/// use magpie::actor::{Actor, Addr, Answer, Context, Receive};
/// struct Sage;
/// impl Actor for Sage {}
/// impl Receive<u32> for Sage {
///     type Reply = ();
///
///     fn receive(&mut self, _: u32, _: &mut Context<Self>) {}
/// }
/// fn ask(sage: Addr<Sage>) { let _ = sage.ask(42u64); }
/// ```
///
/// ```compile_fail,E0308
/// use magpie::actor::{Actor, Addr, Answer, Context, Receive};
/// struct Sage;
/// impl Actor for Sage {}
/// impl Receive<u32> for Sage {
///     type Reply = ();
///
///     fn receive(&mut self, _: u32, _: &mut Context<Self>) {}
/// }
/// fn ask(sage: Addr<Sage>) -> Answer<String> { sage.ask(42u32) }
/// ```
#[derive(Debug)]
pub struct Request<M, R> {
    /// What is asked.
    pub message: M,
    /// Where the answer goes.
    pub reply: Reply<R>,
}

/// The right to answer once. It may be kept, or passed on in another message; dropped without an answer, it
/// tells the asker so. Should the actor that was asked crash, the asker is told at once, wherever this is. The
/// crash of another that holds this is not: who passes it on, to one that may crash, had better be asked with a
/// time limit.
///
/// ```
/// use magpie::actor::{Reply, Unwanted};
/// /// Answers all who still wait, and says how many did.
/// fn answer(waiting: Vec<Reply<u64>>, result: u64) -> usize {
///     let mut answered = 0;
///     for reply in waiting.into_iter().filter(Reply::is_wanted) {
///         match reply.send(result) {
///             Ok(()) => answered += 1,
///             // The asker has given up since.
///             Err(unwanted) => assert_eq!(unwanted.into_answer(), result),
///         }
///     }
///     answered
/// }
/// /// An error that can be passed on whatever the answer is.
/// fn deliver<R>(reply: Reply<R>, answer: R) -> Result<(), Unwanted<()>> {
///     reply.send(answer).map_err(|unwanted| unwanted.without_answer())
/// }
/// ```
pub struct Reply<R> {
    slot: SlotRef<R>,
}

impl<R> Reply<R> {
    pub(super) fn new(slot: SlotRef<R>) -> Self {
        Self { slot }
    }

    /// Answers.
    ///
    /// # Errors
    /// The answer comes back when nobody waits for it any more.
    pub fn send(self, answer: R) -> Result<(), Unwanted<R>> {
        match self.settle(State::Answered(answer)) {
            Some(State::Answered(answer)) => Err(Unwanted(answer)),
            _ => Ok(()),
        }
    }

    /// Says why there will be no answer.
    pub(crate) fn fail(self, error: AskError) {
        drop(self.settle(State::Failed(error)));
    }

    /// Ends the waiting with `outcome`, which comes back when nobody waits any more.
    fn settle(self, outcome: State<R>) -> Option<State<R>> {
        // Not dropped in the usual way, which would settle the slot as unanswered.
        let this = ManuallyDrop::new(self);
        // SAFETY: read once, and `this` is not dropped.
        let slot = unsafe { core::ptr::read(&raw const this.slot) };
        slot.unlist_and_settle(outcome)
    }

    /// Whether somebody still waits for the answer; it may give up at any moment. A process that has crashed while it waited waits no
    /// longer, unless it has passed the waiting on and whoever has it now has waited since.
    pub fn is_wanted(&self) -> bool {
        match &*self.slot.state.lock() {
            State::Waiting(waiter) => !waiter.as_ref().is_some_and(is_kept_for_crashed),
            State::Answered(_) | State::Failed(_) | State::Closed => false,
        }
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        drop(self.slot.unlist_and_settle(State::Failed(AskError::Unanswered)));
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_wanted() { "Reply(wanted)" } else { "Reply(unwanted)" })
    }
}

/// Nobody waits for the answer any more; it comes back.
///
/// ```
/// use magpie::actor::{Reply, Unwanted};
/// /// Gives the answer to the second if the first has gone.
/// fn answer<R>(first: Reply<R>, second: Reply<R>, answer: R) -> Result<(), Unwanted<()>> {
///     let Err(unwanted) = first.send(answer) else { return Ok(()) };
///     second.send(unwanted.into_answer()).map_err(|unwanted| unwanted.without_answer())
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Unwanted<R>(R);

impl<R> Unwanted<R> {
    /// The answer.
    pub fn into_answer(self) -> R {
        self.0
    }

    /// The same error without the answer, to be kept or passed on whatever that was.
    pub const fn without_answer(&self) -> Unwanted<()> {
        Unwanted(())
    }
}

impl<R> fmt::Debug for Unwanted<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<R> fmt::Display for Unwanted<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody waits for the answer any more")
    }
}

impl<R> core::error::Error for Unwanted<R> {}
