//! Mailboxes: gulp against steal against send, and the hints that say whose a mailbox is.

use magpie::internals::arch::atomic::{AtomicU64, AtomicUsize, Ordering};
use magpie::internals::sync::{OwnerHint, ProcessingFlag, SpinLock};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "gulp::two_workers_and_a_sender",
        preemptions: Some(3),
        body: two_workers_and_a_sender,
        mutants: &[ordering("gulp-flag-relaxed"), ordering("done-relaxed"), step("gulp-unasked")],
    },
    Model {
        name: "gulp::mail_for_one_in_hand",
        preemptions: None,
        body: mail_for_one_in_hand,
        mutants: &[ordering("put-down-no-fence"), ordering("owner-send-no-fence")],
    },
    Model {
        name: "owner::sender_and_thief",
        preemptions: None,
        body: sender_and_thief,
        mutants: &[ordering("owner-publish-no-fence"), ordering("owner-send-no-fence")],
    },
    Model {
        name: "owner::two_thieves",
        preemptions: None,
        body: two_thieves,
        mutants: &[step("owner-unverified"), ordering("owner-publish-store")],
    },
];

/// A mailbox with mail for one actor, whose state is handled outside the lock.
struct Mailbox {
    waiting: SpinLock<Plain>,
    being_processed: ProcessingFlag,
    actor: Plain,
}

impl Mailbox {
    fn send(&self) {
        if let Some(waiting) = self.waiting.try_lock() {
            waiting.set(waiting.get() + 1);
        }
    }

    /// Gulps and handles, as a worker that has the mailbox in its range does; how many batches.
    fn gulp(&self) -> u64 {
        // A try, for two that wait would keep loom busy for ever.
        let Some(waiting) = self.waiting.try_lock() else { return 0 };
        if !self.being_processed.is_free() || waiting.get() == 0 {
            return 0;
        }
        self.being_processed.take();
        waiting.set(0);
        drop(waiting);
        self.actor.set(self.actor.get() + 1);
        self.being_processed.put_down();
        1
    }
}

/// The robbed worker had read the slot before the thief took the mailbox: both gulp.
fn two_workers_and_a_sender() {
    let mailbox = Arc::new(Mailbox {
        waiting: SpinLock::new(Plain::new(1)),
        being_processed: ProcessingFlag::new(),
        actor: Plain::new(0),
    });
    let robbed = task(Mailbox::gulp);
    let thief = task(|mailbox: &Mailbox| {
        mailbox.send();
        mailbox.gulp()
    });
    let batches: u64 = run(&mailbox, [robbed, thief]).iter().sum();
    assert_eq!(mailbox.actor.get(), batches, "two workers were in one actor");
}

/// A mailbox that one worker has in hand, and another has in its range.
struct ProcessedByOne {
    waiting: AtomicU64,
    being_processed: ProcessingFlag,
    owner: OwnerHint,
}

impl ProcessedByOne {
    fn new() -> Arc<Self> {
        let being_processed = ProcessingFlag::new();
        being_processed.take();
        Arc::new(Self { waiting: AtomicU64::new(0), being_processed, owner: OwnerHint::new(1) })
    }

    /// As `ExecutorState::notify`, by the one who counted the first message, or who put the mailbox down and saw mail.
    fn notify(&self) -> bool {
        self.owner.after_work();
        !self.being_processed.is_left_to_holder()
    }

    /// The holder has handled its batch. Whether it has told the owner of mail.
    fn put_down(&self) -> bool {
        self.being_processed.put_down();
        self.waiting.load(Ordering::Relaxed) > 0 && self.notify()
    }
}

/// Mail comes while the mailbox is put down: its owner is told, by the sender or by the holder.
fn mail_for_one_in_hand() {
    let mailbox = ProcessedByOne::new();
    let sender = task(|mailbox: &ProcessedByOne| {
        mailbox.waiting.store(1, Ordering::Relaxed);
        mailbox.notify()
    });
    let holder = task(ProcessedByOne::put_down);
    let [sender, holder] = run(&mailbox, [sender, holder]);
    assert!(sender || holder, "nobody told the owner");
}

/// A mailbox in one of three slots, each of them a worker's whole range.
struct Moved {
    slot: AtomicUsize,
    owner: OwnerHint,
    waiting: AtomicU64,
}

impl Moved {
    fn new() -> Arc<Self> {
        Arc::new(Self { slot: AtomicUsize::new(0), owner: OwnerHint::new(0), waiting: AtomicU64::new(0) })
    }

    /// Moves it, if it is where the thief saw it, and makes that known; whether mail was found afterwards.
    fn steal(&self, from: usize, to: usize) -> bool {
        if self.slot.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        let at = || self.slot.load(Ordering::Acquire);
        self.owner.publish(to, |slot| slot, |slot| at() == slot, || Some(at()));
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// The sender wakes the thief, or the thief sees the mail.
fn sender_and_thief() {
    let moved = Moved::new();
    let sender = task(|moved: &Moved| {
        moved.waiting.store(1, Ordering::Relaxed);
        moved.owner.after_work() == 1
    });
    let thief = task(|moved: &Moved| moved.steal(0, 1));
    let [woken, seen] = run(&moved, [sender, thief]);
    assert!(woken || seen, "the mail was seen by nobody who has the mailbox");
}

/// The number left in the end is that of the worker that has it.
fn two_thieves() {
    let moved = Moved::new();
    let first = task(|moved: &Moved| moved.steal(0, 1));
    let second = task(|moved: &Moved| moved.steal(1, 2));
    run(&moved, [first, second]);
    assert_eq!(moved.owner.get(), moved.slot.load(Ordering::Relaxed), "the hint is wrong for ever");
}
