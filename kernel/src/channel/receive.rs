//! Receiving, and its futures.
//!
//! Nothing of theirs is linked: they leave a waker in the block, which has an allocation of its own (see `sched::spawn::task`).
//! Each charges the process for what it does and, when its turn is used up, lets others run first.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use super::block::{Inside, Outlook};
use super::mailbox::ProcessMailbox;
use super::node::Cursor;
use crate::message::Message;
use crate::sched;
use crate::time::{self, Timeout};

impl<M: Message> ProcessMailbox<M> {
    /// Waits for a message: the oldest urgent one, or else the oldest. `None` when no message is left, and no
    /// address to send one to.
    ///
    /// A future that is dropped early has received nothing.
    pub fn receive(&mut self) -> Receive<'_, M> {
        Receive { mailbox: self }
    }

    /// Waits for the first message that `matches`; looks at urgent ones first, and at each message once. The
    /// others stay, in order. `None` when none that waits matches, and there is no address to send one to.
    pub fn receive_matching<P: FnMut(&M) -> bool>(&mut self, matches: P) -> ReceiveMatching<'_, M, P> {
        ReceiveMatching { mailbox: self, matches, urgent: Cursor::new(), ordinary: Cursor::new() }
    }

    /// As [`Self::receive`], for no longer than `limit`.
    pub fn receive_within(&mut self, limit: Duration) -> Timeout<Receive<'_, M>> {
        time::timeout(limit, self.receive())
    }
}

/// The future of [`ProcessMailbox::receive`].
#[must_use = "a message comes to who awaits it"]
pub struct Receive<'a, M> {
    mailbox: &'a mut ProcessMailbox<M>,
}

/// Whether the process has to let others run, which then is arranged.
fn must_yield(context: &Context<'_>) -> bool {
    let exhausted = sched::is_exhausted();
    if exhausted {
        context.waker().wake_by_ref();
    }
    exhausted
}

impl<M: Message> Future for Receive<'_, M> {
    type Output = Option<M>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<M>> {
        if must_yield(context) {
            return Poll::Pending;
        }
        sched::charge(1);
        let mailbox = &mut *self.mailbox;
        // One look, under one lock, as a rule.
        let waits = |inside: &Inside<M>, has_addresses| has_addresses && inside.has_waker(context.waker());
        match mailbox.receive_or(waits) {
            Ok(message) => return Poll::Ready(Some(message)),
            Err(true) => return Poll::Pending,
            Err(false) => {}
        }
        match mailbox.block.wait(context.waker()) {
            Outlook::Come | Outlook::OutOfMemory => {
                // It has come since the look above: the next turn finds it. Or there is no memory to wait.
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Outlook::Over => Poll::Ready(None),
            Outlook::Waits => Poll::Pending,
        }
    }
}

/// The future of [`ProcessMailbox::receive_matching`].
#[must_use = "a message comes to who awaits it"]
pub struct ReceiveMatching<'a, M, P> {
    mailbox: &'a mut ProcessMailbox<M>,
    matches: P,
    /// How far the urgent messages were looked through, and the ordinary ones.
    urgent: Cursor<M>,
    ordinary: Cursor<M>,
}

impl<M, P> Unpin for ReceiveMatching<'_, M, P> {}

impl<M: Message, P: FnMut(&M) -> bool> ReceiveMatching<'_, M, P> {
    /// Takes the first message behind the cursors that matches.
    fn find(&mut self) -> Option<M> {
        let Self { mailbox, matches, urgent, ordinary } = self;
        let mut looked = 0;
        let mut matches = |message: &M| {
            looked += 1;
            matches(message)
        };
        // SAFETY: while this future borrows the mailbox nobody else takes anything from its lists.
        let found = unsafe {
            let urgent = mailbox.kept.urgent.find(urgent, &mut matches);
            urgent.or_else(|| mailbox.kept.ordinary.find(ordinary, &mut matches))
        };
        sched::charge(looked);
        let mut node = found?;
        let message = node.message.take();
        // Dropped after the lock.
        drop(mailbox.block.lock().give_back(node));
        message
    }
}

impl<M: Message, P: FnMut(&M) -> bool> Future for ReceiveMatching<'_, M, P> {
    type Output = Option<M>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<M>> {
        if must_yield(context) {
            return Poll::Pending;
        }
        sched::charge(1);
        let this = &mut *self;
        this.mailbox.note_owner();
        loop {
            // Taken over before the look: an urgent message may have come that goes before what is here.
            let block = this.mailbox.block.clone();
            let mut inside = block.lock();
            this.mailbox.kept.append(&mut inside.come);
            drop(inside);
            if let Some(message) = this.find() {
                return Poll::Ready(Some(message));
            }
            match block.wait(context.waker()) {
                Outlook::Come => {}
                Outlook::Over => return Poll::Ready(None),
                Outlook::Waits => return Poll::Pending,
                Outlook::OutOfMemory => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }
}
