//! The mailbox of these models: what senders, workers and thieves do to it, as in `actor/mail` and `actor/run/worker`, and what must
//! hold of its mail afterwards.

use magpie::internals::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use magpie::internals::arch::barrier;
use magpie::internals::sync::{GuestFlag, OwnerHint, ProcessingFlag, SpinGuard, SpinLock};

use crate::tool::{Arc, Plain, mutant};

/// The cores that senders run on.
pub(super) const CORE_A: u64 = 1;
pub(super) const CORE_B: u64 = 2;
pub(super) const CLOSED: u64 = 0;

/// A mailbox. Messages are digits, and mail is the number that they make.
pub(super) struct Mailbox {
    /// The queue.
    inside: SpinLock<Plain>,
    pub(super) waiting: AtomicU64,
    being_processed: ProcessingFlag,
    pub(super) guest: GuestFlag,
    owner: OwnerHint,
    owner_is_idle: AtomicBool,
    pub(super) gate: AtomicU64,
    pub(super) hand: Plain,
    /// What its actor has handled, in order.
    pub(super) handled: Plain,
    /// A sender has sent its first message, and goes on on the other core.
    pub(super) moved: AtomicBool,
}

/// Somebody else had the lock.
pub(super) struct Refused;

/// Who sees to mail that somebody has made or found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    /// The one that has the mailbox in hand, or whoever was told of the mail before this.
    Holder,
    /// The worker on the sender's core, who has it in hand.
    Hand,
    /// The host that has the mailbox in its list.
    Host,
    /// The one who asked, with the mailbox in its own list now.
    Me,
    /// The owner, who is awake.
    Owner,
}

/// What is in front of the one digit or the mail behind it.
pub(super) fn join(front: u64, behind: u64) -> u64 {
    front * 10_u64.pow(length(behind) as u32) + behind
}

pub(super) fn length(mail: u64) -> u64 {
    mail.checked_ilog10().map_or(0, |log| u64::from(log) + 1)
}

impl Mailbox {
    /// With mail in its queue or, if it is in hand on core A, there.
    pub(super) fn new(mail: u64, in_hand: bool, owner_is_idle: bool) -> Arc<Self> {
        let (queue, hand) = if in_hand { (0, mail) } else { (mail, 0) };
        let mailbox = Self {
            inside: SpinLock::new(Plain::new(queue)),
            waiting: AtomicU64::new(length(queue)),
            being_processed: ProcessingFlag::new(),
            guest: GuestFlag::new(),
            owner: OwnerHint::new(0),
            owner_is_idle: AtomicBool::new(owner_is_idle),
            gate: AtomicU64::new(if in_hand { CORE_A } else { CLOSED }),
            hand: Plain::new(hand),
            handled: Plain::new(0),
            moved: AtomicBool::new(false),
        };
        if in_hand {
            mailbox.being_processed.take();
        }
        Arc::new(mailbox)
    }

    pub(super) fn enter(&self) -> Result<SpinGuard<'_, Plain>, Refused> {
        if cfg!(loom) { self.inside.try_lock().ok_or(Refused) } else { Ok(self.inside.lock()) }
    }

    /// As `ExecutorState::notify`.
    pub(super) fn notify(&self) -> To {
        self.owner.after_work();
        if self.being_processed.is_left_to_holder() {
            To::Holder
        } else if !self.owner_is_idle.load(Ordering::Relaxed) {
            To::Owner
        } else if self.guest.claim() {
            To::Me
        } else {
            To::Host
        }
    }

    /// As `write_at_once` and `count`, by a behaviour on `core`.
    pub(super) fn send(&self, core: u64, message: u64) -> Result<To, Refused> {
        let none_waits = self.waiting.load(Ordering::Relaxed) == 0 || mutant("hand-add-unasked");
        if none_waits && self.gate.load(Ordering::Relaxed) == core {
            self.hand.set(join(self.hand.get(), message));
            return Ok(To::Hand);
        }
        let queue = self.enter()?;
        queue.set(join(queue.get(), message));
        let before = self.waiting.load(Ordering::Relaxed);
        if before == 0 && self.take_in_hand(core, &queue) {
            return Ok(To::Hand);
        }
        self.waiting.store(before + 1, Ordering::Relaxed);
        Ok(if before == 0 { self.notify() } else { To::Holder })
    }

    /// As `Direct::begin`, by the loop of core A, whose worker waits: the message becomes its batch, or goes the usual way.
    pub(super) fn send_directly(&self, message: u64) -> Result<To, Refused> {
        let early = mutant("direct-asked-early").then(|| self.being_processed.is_free());
        let queue = self.enter()?;
        let before = self.waiting.load(Ordering::Relaxed);
        let is_free = early.unwrap_or_else(|| self.being_processed.is_free());
        if (before == 0 || mutant("direct-before-others")) && is_free {
            self.being_processed.take();
            drop(queue);
            self.hand.set(message);
            self.gate.store(CORE_A, Ordering::Relaxed);
            return Ok(To::Hand);
        }
        queue.set(join(queue.get(), message));
        self.waiting.store(before + 1, Ordering::Relaxed);
        Ok(if before == 0 { self.notify() } else { To::Holder })
    }

    /// A sender's first message, from core B, from where it goes to core A.
    pub(super) fn send_and_move(&self) -> Result<Option<To>, Refused> {
        let to = self.send(CORE_B, 1)?;
        // Release: as a process that is put into a queue.
        self.moved.store(true, Ordering::Release);
        Ok(Some(to))
    }

    /// Behaviours of the mailbox's own executor run on core A only.
    pub(super) fn take_in_hand(&self, core: u64, queue: &Plain) -> bool {
        if core != CORE_A || !(self.being_processed.is_free() || mutant("hand-take-unasked")) {
            return false;
        }
        self.being_processed.take();
        self.hand.set(queue.get());
        queue.set(0);
        self.gate.store(core, Ordering::Relaxed);
        true
    }

    /// As `Mailbox::hold_waiting`, by worker A at the beginning of a round. Whether it has it in hand now.
    pub(super) fn hold_waiting(&self) -> Result<bool, Refused> {
        let early = mutant("hold-asked-early").then(|| self.being_processed.is_free());
        let queue = self.enter()?;
        let is_free = early.unwrap_or_else(|| self.being_processed.is_free());
        if !(is_free || mutant("hold-unasked")) || self.waiting.load(Ordering::Relaxed) == 0 {
            return Ok(false);
        }
        self.being_processed.take();
        self.hand.set(queue.get());
        queue.set(0);
        self.waiting.store(0, Ordering::Relaxed);
        self.gate.store(CORE_A, Ordering::Relaxed);
        Ok(true)
    }

    pub(super) fn handle(&self, mail: u64) {
        self.handled.set(join(self.handled.get(), mail));
    }

    /// Worker A delivers what it has in hand, which rests then.
    pub(super) fn deliver(&self) {
        let mail = self.hand.get();
        self.hand.set(0);
        self.handle(mail);
    }

    /// As `Worker::gulp_again`.
    pub(super) fn gulp_again(&self) -> Result<(), Refused> {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.gate.store(CLOSED, Ordering::Relaxed);
            let queue = self.enter()?;
            let mail = queue.get();
            queue.set(0);
            self.waiting.store(0, Ordering::Relaxed);
            drop(queue);
            self.gate.store(CORE_A, Ordering::Relaxed);
            self.handle(mail);
        }
        Ok(())
    }

    /// As `Worker::list_again`, after a batch; the mail is for the next one.
    pub(super) fn hold_again(&self) -> Result<(), Refused> {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.gate.store(CLOSED, Ordering::Relaxed);
            let queue = self.enter()?;
            let mail = queue.get();
            queue.set(0);
            self.waiting.store(0, Ordering::Relaxed);
            self.hand.set(mail);
            self.gate.store(CORE_A, Ordering::Relaxed);
        }
        Ok(())
    }

    /// As `Worker::put_resting_down`.
    pub(super) fn end_rest(&self) -> Option<To> {
        self.gate.store(CLOSED, Ordering::Relaxed);
        self.being_processed.put_down();
        let has_mail = self.waiting.load(Ordering::Relaxed) > 0 && !mutant("rest-unlooked");
        has_mail.then(|| self.notify())
    }

    /// As `Mailbox::put_back`, and what follows.
    pub(super) fn put_back(&self) -> Result<Option<To>, Refused> {
        let queue = self.enter()?;
        self.gate.store(CLOSED, Ordering::Relaxed);
        let (mail, queued) = (self.hand.get(), queue.get());
        self.hand.set(0);
        queue.set(if mutant("hand-back-behind") { join(queued, mail) } else { join(mail, queued) });
        self.waiting.store(self.waiting.load(Ordering::Relaxed) + length(mail), Ordering::Relaxed);
        self.being_processed.put_down();
        drop(queue);
        Ok((!mutant("hand-back-untold")).then(|| self.notify()))
    }

    /// As `Worker::gulp` and what follows, by another worker.
    pub(super) fn gulp(&self) -> Result<Option<To>, Refused> {
        let queue = self.enter()?;
        let mail = queue.get();
        if !self.being_processed.is_free() || mail == 0 {
            return Ok(None);
        }
        self.being_processed.take();
        queue.set(0);
        self.waiting.store(0, Ordering::Relaxed);
        drop(queue);
        self.handle(mail);
        self.being_processed.put_down();
        Ok((self.waiting.load(Ordering::Relaxed) > 0).then(|| self.notify()))
    }

    /// As `Worker::wait`: the owner announces that it sleeps, and looks. Whether it stays awake.
    pub(super) fn owner_waits(&self) -> bool {
        self.owner_is_idle.store(true, Ordering::Relaxed);
        if !mutant("wait-no-fence") {
            barrier::full();
        }
        self.waiting.load(Ordering::Relaxed) > 0 && !self.being_processed.hint() && !self.guest.is_set()
    }

    /// All that was sent, in the order in which it was and will be handled; and whether some of it waits. Afterwards.
    pub(super) fn all(&self) -> (u64, bool) {
        let queue = self.inside.lock().get();
        assert_eq!(length(queue), self.waiting.load(Ordering::Relaxed), "the count is wrong");
        (join(join(self.handled.get(), self.hand.get()), queue), queue != 0)
    }
}

/// Whether the messages are these, each once, and `first` comes before `second`.
pub(super) fn judge(mail: u64, messages: u64, first: u64, second: u64) {
    let digits = |mail: u64| (0..length(mail)).map(move |place| mail / 10_u64.pow(place as u32) % 10);
    let sorted = |mail| {
        let mut all: Vec<_> = digits(mail).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(sorted(mail), sorted(messages), "a message was lost, or handled twice");
    // The last digit is the first here.
    let place = |message| digits(mail).position(|digit| digit == message);
    assert!(place(first) > place(second), "out of order: {mail}");
}

/// The results, if nobody was refused.
pub(super) fn judged<T, const N: usize>(results: [Result<T, Refused>; N]) -> Option<[T; N]> {
    let all: Vec<T> = results.into_iter().collect::<Result<_, _>>().ok()?;
    all.try_into().ok()
}

/// Behind the 9 that was in hand comes the 1 and, if its sender went on to the other core, the 2; and somebody sees to what is left.
pub(super) fn judge_both<const N: usize>(mailbox: &Mailbox, results: [Result<Option<To>, Refused>; N]) {
    let Some(told) = judged(results) else { return };
    let (all, is_left) = mailbox.all();
    let has_both = length(all) == 3;
    judge(all, if has_both { 912 } else { 91 }, if has_both { 1 } else { 9 }, if has_both { 2 } else { 1 });
    assert!(!is_left || told.contains(&Some(To::Owner)), "the mail is with nobody");
}
