//! Blocks: what a mailbox and its addresses share, behind one lock.
//!
//! Any number of senders on any core and one receiver: a lock that disables preemption suffices, for what is
//! done while it is held takes constant time. A sender takes an empty node, moves its message in and links it;
//! the receiver links all that has come to the end of its own lists. Memory for nodes is allocated, and
//! messages and wakers are dropped, outside the lock. Patterns, which are the user's code, run outside it, too.
//!
//! **Memory** is bounded: a node is allocated only when none is free and fewer messages wait than the bound,
//! so there are never more nodes than that, and in steady state a send allocates nothing.
//!
//! **Waking**: the receiver finds nothing and leaves its waker in one hold of the lock; a sender links its
//! message and takes the waker in one hold. Of two holds one is first: either the receiver finds the message,
//! or the sender finds the waker. The same holds for the drop of the last address, which first counts down,
//! then takes the lock for the waker, while the receiver reads the count in its hold.

use alloc::boxed::Box;
use core::task::Waker;

use super::node::{List, Node};
use crate::actor::SendError;
use crate::arch::atomic::{AtomicUsize, Ordering};
use crate::sched::{self, ProcessRef};
use crate::sync::{SpinGuard, SpinLock};

/// Whether a message overtakes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    Ordinary,
    Urgent,
}

/// Messages of both kinds.
pub(super) struct Lists<M> {
    pub urgent: List<M>,
    pub ordinary: List<M>,
}

impl<M> Lists<M> {
    pub(super) const fn new() -> Self {
        Self { urgent: List::new(), ordinary: List::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.ordinary.is_empty()
    }

    pub(super) fn append(&mut self, other: &mut Self) {
        self.urgent.append(&mut other.urgent);
        self.ordinary.append(&mut other.ordinary);
    }

    pub(super) fn pop(&mut self) -> Option<Box<Node<M>>> {
        self.urgent.pop().or_else(|| self.ordinary.pop())
    }
}

/// What the lock guards.
pub(super) struct Inside<M> {
    /// What has come since the receiver last looked.
    pub come: Lists<M>,
    /// Nodes without a message.
    free: List<M>,
    /// Messages here and in the receiver's own lists.
    waiting: usize,
    /// The most that ever were.
    high_water: usize,
    /// The receiver's, while it waits.
    waker: Option<Waker>,
    /// The process that received last.
    owner: Option<ProcessRef>,
    /// The mailbox is gone.
    closed: bool,
}

pub(super) struct Block<M> {
    inside: SpinLock<Inside<M>>,
    /// How many messages may wait.
    most: usize,
    addresses: AtomicUsize,
}

/// What is left of a mailbox that has closed; to be dropped outside the lock.
pub(super) struct Left<M> {
    _lists: Lists<M>,
    _free: List<M>,
    _waker: Option<Waker>,
    _owner: Option<ProcessRef>,
}

impl<M> Block<M> {
    /// Without addresses yet.
    pub(super) fn new(most: usize) -> Self {
        let inside = Inside {
            come: Lists::new(),
            free: List::new(),
            waiting: 0,
            high_water: 0,
            waker: None,
            owner: None,
            closed: false,
        };
        Self { inside: SpinLock::new(inside), most, addresses: AtomicUsize::new(0) }
    }

    pub(super) fn lock(&self) -> SpinGuard<'_, Inside<M>> {
        self.inside.lock()
    }

    /// One more address.
    pub(super) fn count_address(&self) {
        // Relaxed: made by the receiver itself, or from an address that exists.
        self.addresses.fetch_add(1, Ordering::Relaxed);
    }

    /// One address less; after the last the receiver is woken.
    pub(super) fn uncount_address(&self) {
        // Release: see `has_addresses`; the lock that follows orders it for a receiver that waits.
        if self.addresses.fetch_sub(1, Ordering::Release) == 1 {
            let mut inside = self.lock();
            // Nobody is left to ask whether the owner has crashed. Kept, it would keep this for ever should it
            // crash later, for the owner's memory keeps the mailbox.
            let (waker, owner) = (inside.waker.take(), inside.owner.take());
            let left = owner.as_ref().is_some_and(|owner| owner.has_crashed()).then(|| inside.close());
            drop(inside);
            if let Some(waker) = waker {
                waker.wake();
            }
            drop((owner, left));
        }
    }

    /// Whether anybody can still send. Read under the lock when the receiver wants to wait.
    pub(super) fn has_addresses(&self) -> bool {
        // Acquire: pairs with the release above: who sees none left has everything that was sent.
        self.addresses.load(Ordering::Acquire) != 0
    }

    /// Sends a message.
    pub(super) fn send(&self, message: M, urgency: Urgency) -> Result<(), SendError<M>> {
        sched::charge(1);
        let mut spare: Option<Box<Node<M>>> = None;
        loop {
            let mut inside = self.lock();
            if inside.owner.as_ref().is_some_and(|owner| owner.has_crashed()) {
                // Nothing that it owned was dropped, so its mailbox could not say that it is gone.
                let left = inside.close();
                drop(inside);
                drop(left);
                return Err(SendError::Ended(message));
            }
            if inside.closed {
                return Err(SendError::Ended(message));
            }
            if inside.waiting >= self.most {
                return Err(SendError::Full(message));
            }
            let Some(mut node) = inside.free.pop().or_else(|| spare.take()) else {
                drop(inside);
                spare = Node::new();
                if spare.is_none() {
                    return Err(SendError::OutOfMemory(message));
                }
                continue;
            };
            node.message = Some(message);
            match urgency {
                Urgency::Ordinary => inside.come.ordinary.push(node),
                Urgency::Urgent => inside.come.urgent.push(node),
            }
            inside.waiting += 1;
            inside.high_water = inside.high_water.max(inside.waiting);
            let waker = inside.waker.take();
            drop(inside);
            if let Some(waker) = waker {
                waker.wake();
            }
            return Ok(());
        }
    }

    /// How many messages wait, and the most that ever did.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let inside = self.lock();
        (inside.waiting, inside.high_water)
    }
}

impl<M> Inside<M> {
    /// The receiver has emptied a node.
    pub(super) fn give_back(&mut self, node: Box<Node<M>>) {
        debug_assert!(node.message.is_none(), "a node came back with a message in it");
        self.free.push(node);
        self.waiting -= 1;
    }

    /// Leaves a waker. The one that it replaces is to be dropped outside the lock.
    pub(super) fn wait(&mut self, waker: &Waker) -> Option<Waker> {
        if self.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            return None;
        }
        self.waker.replace(waker.clone())
    }

    /// Says which process receives. The one that it replaces is to be dropped outside the lock.
    pub(super) fn set_owner(&mut self, owner: Option<ProcessRef>) -> Option<ProcessRef> {
        core::mem::replace(&mut self.owner, owner)
    }

    /// Closes for good.
    pub(super) fn close(&mut self) -> Left<M> {
        self.closed = true;
        Left {
            _lists: core::mem::replace(&mut self.come, Lists::new()),
            _free: core::mem::replace(&mut self.free, List::new()),
            _waker: self.waker.take(),
            _owner: self.owner.take(),
        }
    }
}
