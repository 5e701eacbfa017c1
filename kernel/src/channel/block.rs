//! Blocks: what a mailbox and its addresses share, behind one lock.
//!
//! Any number of senders on any core and one receiver: a lock that disables preemption suffices, because what is done
//! while it is held takes constant time. A sender takes an empty node, moves its message in and links it; the receiver
//! links all that has come to the end of its own lists. Memory for nodes is allocated, and messages are dropped, and
//! wakers cloned and dropped, outside the lock. Patterns, which are the user's code, run outside it, too.
//!
//! **Memory** is bounded: a node is allocated only when none is free and fewer messages wait than the bound,
//! so there are never more nodes than that, and in steady state a send allocates nothing.
//!
//! **Waking**: the receiver finds nothing and leaves its waker in one hold of the lock; a sender links its
//! message and takes the waker in one hold. Of two holds one is first: either the receiver finds the message,
//! or the sender finds the waker. The same holds for the drop of the last address, which first counts down,
//! then takes the lock for the waker, while the receiver reads the count in its hold.

use core::mem::size_of;
use core::ptr::NonNull;
use core::task::Waker;

use super::by_owner::{self, Acts, ByOwner, OwnerLink, Remains, process_in};
use super::node::{List, Room};
use super::owner::Owner;
use crate::arch::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::message::ask::{Asked, pending};
use crate::message::{SendError, Shared};
use crate::sched::{self, ProcessRef};
use crate::sync::{Identity, PreemptGuard, SpinGuard, SpinLock, is_kept_for, keep_waker};

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

    pub(super) fn pop(&mut self) -> Option<Room<M>> {
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
    /// Who received last.
    owner: Option<Owner>,
    /// So many nodes are here, or with the receiver, that came with their messages: beyond the bound.
    extra: usize,
    /// The mailbox is gone.
    closed: bool,
}

/// The first field is what is listed by owner.
#[repr(C)]
pub(super) struct Block<M> {
    link: OwnerLink,
    inside: SpinLock<Inside<M>>,
    /// No other block, before or after, has the same.
    number: u64,
    /// How many messages may wait.
    most: usize,
    addresses: AtomicUsize,
    /// Whether anybody has asked through it.
    was_asked: AtomicBool,
}

/// The number of the next block.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// What is left of a mailbox that has closed; to be dropped outside the lock.
pub(super) struct Left<M> {
    lists: Lists<M>,
    _free: List<M>,
    _waker: Option<Waker>,
    owner: Option<Owner>,
}

impl<M> Left<M> {
    /// Who received last.
    pub(super) fn owner(&mut self) -> &mut Option<Owner> {
        &mut self.owner
    }

    /// Whether no message is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }
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
            extra: 0,
            closed: false,
        };
        Self {
            link: OwnerLink::new(const { &Acts { close: close_after_crash::<M>, waiting: waiting_in::<M> } }),
            inside: SpinLock::new(inside),
            // Relaxed: it counts, and orders nothing.
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            most,
            addresses: AtomicUsize::new(0),
            was_asked: AtomicBool::new(false),
        }
    }

    /// Under what those are listed who have asked its owner.
    pub(super) fn asked(this: &Shared<Self>) -> Asked {
        Asked::new(this.pointer().addr().get(), this.number)
    }

    /// Somebody is about to ask.
    pub(super) fn note_asked(&self) {
        // Relaxed, here and where it is read: the request is sent under the lock after this, and who closes has had the lock after that.
        if !self.was_asked.load(Ordering::Relaxed) {
            self.was_asked.store(true, Ordering::Relaxed);
        }
    }

    /// The mailbox is dropped, with `owner` and its identity as who received last. As long as anybody waits for an answer that is still
    /// to come from that one, it is known; otherwise it stays the caller's. Somebody has an address.
    pub(super) fn stay_listed(
        this: &Shared<Self>,
        by_owner: &mut ByOwner,
        identity: Option<Identity>,
        owner: &mut Option<Owner>,
    ) {
        if this.was_asked.load(Ordering::Relaxed) && pending::is_awaited(Self::asked(this)) {
            // SAFETY: the block stays where it is, and lives until the last address takes it out.
            unsafe { by_owner.put(Self::link(this), identity) };
            this.lock().owner = owner.take();
        }
    }

    /// What is listed of it.
    pub(super) fn link(this: &Shared<Self>) -> NonNull<OwnerLink> {
        this.pointer().cast()
    }

    pub(super) fn lock(&self) -> SpinGuard<'_, Inside<M>> {
        self.inside.lock()
    }

    /// Says who receives, and lists it under that one. The mailbox exists.
    pub(super) fn set_owner(this: &Shared<Self>, identity: Option<Identity>, owner: Option<Owner>) {
        let previous = by_owner::change(|by_owner| {
            // SAFETY: the block stays where it is, and lives until its mailbox is dropped, which takes it out.
            unsafe { by_owner.put(Self::link(this), identity) };
            core::mem::replace(&mut this.lock().owner, owner)
        });
        // After the lock: it may free a process.
        drop(previous);
    }

    /// One more address.
    pub(super) fn count_address(&self) {
        // Relaxed: made by the receiver itself, or from an address that exists.
        self.addresses.fetch_add(1, Ordering::Relaxed);
    }

    /// One address less; after the last the receiver is woken.
    pub(super) fn uncount_address(this: &Shared<Self>) {
        // Release: see `has_addresses`; the lock that follows orders it for a receiver that waits.
        // Whoever is killed between counting and waking would have the receiver wait for ever.
        let whole = PreemptGuard::new();
        if this.addresses.fetch_sub(1, Ordering::Release) == 1 {
            let (waker, owner, left) = by_owner::change(|by_owner| {
                // Nobody is left to be told should the owner crash. Kept, it would keep this for as long as it lives.
                by_owner.take_out(Self::link(this));
                let mut inside = this.lock();
                let left = inside.closed.then(|| inside.close());
                (inside.waker.take(), inside.owner.take(), left)
            });
            if let Some(waker) = waker {
                waker.wake();
            }
            drop(whole);
            drop((owner, left));
        }
    }

    /// One address less, unless it is the last. Whether it is not.
    pub(super) fn uncount_unless_last(&self) -> bool {
        // Release: as in `uncount_address`.
        let one_less = |count: usize| (count > 1).then(|| count - 1);
        self.addresses.fetch_update(Ordering::Release, Ordering::Relaxed, one_less).is_ok()
    }

    /// Whether anybody can still send. Read under the lock when the receiver wants to wait.
    pub(super) fn has_addresses(&self) -> bool {
        // Acquire: pairs with the release above: who sees none left has everything that was sent.
        self.addresses.load(Ordering::Acquire) != 0
    }

    /// Sends a message.
    pub(super) fn send(&self, message: M, urgency: Urgency) -> Result<(), SendError<M>> {
        self.send_and(message, urgency, true)
    }

    /// As [`Self::send`], for a core's loop: drops nothing of the application's.
    pub(super) fn send_dropping_nothing(&self, message: M) -> Result<(), SendError<M>> {
        self.send_and(message, Urgency::Ordinary, false)
    }

    /// `may_close`: whether the mailbox of who has crashed is closed, and what is in it dropped.
    fn send_and(&self, message: M, urgency: Urgency, may_close: bool) -> Result<(), SendError<M>> {
        sched::charge(1);
        let mut spare: Option<Room<M>> = None;
        loop {
            let mut inside = self.lock();
            if inside.closed {
                // After a crash of the owner nobody has dropped what waited.
                let left = may_close.then(|| inside.close());
                drop(inside);
                drop(left);
                return Err(SendError::Ended(message));
            }
            if inside.waiting >= self.most {
                return Err(SendError::Full(message));
            }
            let Some(mut node) = inside.free.pop().or_else(|| spare.take()) else {
                drop(inside);
                spare = Room::new();
                if spare.is_none() {
                    return Err(SendError::OutOfMemory(message));
                }
                continue;
            };
            node.message = Some(message);
            Self::put(inside, node, urgency);
            return Ok(());
        }
    }

    /// Puts a node with its message behind those that have come, and wakes the receiver.
    fn put(mut inside: SpinGuard<'_, Inside<M>>, node: Room<M>, urgency: Urgency) {
        match urgency {
            Urgency::Ordinary => inside.come.ordinary.push(node),
            Urgency::Urgent => inside.come.urgent.push(node),
        }
        inside.waiting += 1;
        inside.high_water = inside.high_water.max(inside.waiting);
        let waker = inside.waker.take();
        // Whoever is killed before the waking would have the receiver wait for ever.
        let _here = inside.unlock();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Sends a message in a node that comes with it, as an urgent one, whatever the bound says. Who has closed gets nothing.
    pub(super) fn send_in(&self, mut node: Room<M>, message: M) {
        node.message = Some(message);
        let mut inside = self.lock();
        if inside.closed {
            drop(inside);
            drop(node);
            return;
        }
        inside.extra += 1;
        Self::put(inside, node, Urgency::Urgent);
    }

    /// How many messages wait, and the most that ever did.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let inside = self.lock();
        (inside.waiting, inside.high_water)
    }

    /// For the receiver, who found nothing: leaves `waker`, unless something has come or nothing ever will. Wakers are the
    /// application's, so they are cloned and dropped outside the lock.
    pub(super) fn wait(&self, waker: &Waker) -> Outlook {
        let mut own = None;
        loop {
            let mut inside = self.lock();
            if !inside.come.is_empty() {
                return Outlook::Come;
            }
            if !self.has_addresses() {
                return Outlook::Over;
            }
            if inside.has_waker(waker) {
                return Outlook::Waits;
            }
            let Some(new) = own.take() else {
                drop(inside);
                own = keep_waker(waker);
                if own.is_none() {
                    return Outlook::OutOfMemory;
                }
                continue;
            };
            let previous = inside.waker.replace(new);
            drop(inside);
            drop(previous);
            return Outlook::Waits;
        }
    }
}

/// The owner has crashed: nothing is accepted any more. What runs the application's code when it is dropped is left to
/// those who have an address.
///
/// # Safety
/// `link` is the first field of a `Block<M>`, which is alive.
unsafe fn close_after_crash<M>(link: NonNull<OwnerLink>) -> Remains {
    // SAFETY: by contract.
    let block = unsafe { link.cast::<Block<M>>().as_ref() };
    let mut inside = block.lock();
    inside.closed = true;
    let waker = process_in(&mut inside.waker);
    let asked = Asked::new(link.addr().get(), block.number);
    Remains { _owner: inside.owner.take(), _waker: waker, asked, bytes: size_of::<Block<M>>() }
}

/// How many messages wait.
///
/// # Safety
/// As [`close_after_crash`].
unsafe fn waiting_in<M>(link: NonNull<OwnerLink>) -> usize {
    // SAFETY: by contract.
    let inside = unsafe { link.cast::<Block<M>>().as_ref() }.lock();
    if inside.closed { 0 } else { inside.waiting }
}

/// What a receiver that found nothing can expect.
pub(super) enum Outlook {
    /// Something has come since.
    Come,
    /// Nothing will come: no address is left.
    Over,
    /// The next to come wakes it.
    Waits,
    /// There is no memory to wait with such a waker: it must look again.
    OutOfMemory,
}

impl<M> Inside<M> {
    /// The receiver has emptied a node. Comes back if it is not used again: to be dropped outside the lock.
    #[must_use]
    pub(super) fn give_back(&mut self, node: Room<M>) -> Option<Room<M>> {
        debug_assert!(node.message.is_none(), "a node came back with a message in it");
        self.waiting -= 1;
        if self.extra > 0 {
            self.extra -= 1;
            return Some(node);
        }
        self.free.push(node);
        None
    }

    /// Whether nothing is accepted any more.
    pub(super) fn has_closed(&self) -> bool {
        self.closed
    }

    /// Whether `waker` is left here already, by the receiver, who found nothing.
    pub(super) fn has_waker(&self, waker: &Waker) -> bool {
        self.waker.as_ref().is_some_and(|known| is_kept_for(known, waker))
    }

    /// Whether who received last is a process of priority `Max` or `High`. Of an actor it is not known.
    pub(super) fn is_urgent(&self) -> bool {
        matches!(&self.owner, Some(Owner::Process(process)) if process.priority().is_urgent())
    }

    /// The process that received last, if it was one.
    pub(super) fn owner_process(&self) -> Option<ProcessRef> {
        match &self.owner {
            Some(Owner::Process(process)) => Some(process.clone()),
            _ => None,
        }
    }

    /// Its number.
    pub(super) fn owner_place(&self) -> Option<usize> {
        match &self.owner {
            Some(Owner::Process(process)) => Some(process.id()),
            _ => None,
        }
    }

    /// Closes for good.
    pub(super) fn close(&mut self) -> Left<M> {
        self.closed = true;
        Left {
            lists: core::mem::replace(&mut self.come, Lists::new()),
            _free: core::mem::replace(&mut self.free, List::new()),
            _waker: self.waker.take(),
            owner: self.owner.take(),
        }
    }
}
