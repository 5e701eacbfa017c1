//! Rounds: a worker takes the bits by which mailboxes were pointed out to it, drops what somebody else sees to, and falls
//! asleep.
//!
//! A bit that was taken is gone. What the worker drops after that must be with somebody: with the one that has the mailbox in
//! hand, with a bit that was set since, or with the one look that the worker makes after it has announced that it sleeps.
//! Who is refused the lock gives up, as in `guests`.

use magpie::internals::arch::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use magpie::internals::arch::barrier;
use magpie::internals::sync::{OwnerHint, ProcessingFlag, SpinGuard, SpinLock};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "rounds::dropped_while_held",
        preemptions: Some(3),
        body: dropped_while_held,
        mutants: &[
            ordering("put-down-no-fence"),
            ordering("owner-send-no-fence"),
            ordering("round-relaxed"),
            step("round-looks-early"),
        ],
    },
    Model {
        name: "rounds::asleep_after_a_look",
        preemptions: Some(3),
        body: asleep_after_a_look,
        mutants: &[
            ordering("wait-no-fence"),
            ordering("put-down-no-fence"),
            ordering("owner-send-no-fence"),
            step("wait-looks-early"),
            step("wait-looks-at-bits"),
        ],
    },
    Model {
        name: "rounds::robbed",
        preemptions: Some(3),
        body: robbed,
        mutants: &[
            ordering("wait-no-fence"),
            ordering("put-down-no-fence"),
            ordering("owner-send-no-fence"),
            step("wait-looks-at-bits"),
        ],
    },
    Model {
        name: "rounds::given",
        preemptions: Some(3),
        body: given,
        mutants: &[
            ordering("wait-no-fence"),
            ordering("owner-publish-no-fence"),
            ordering("owner-send-no-fence"),
            step("given-unlooked"),
            step("wait-looks-at-bits"),
        ],
    },
];

/// The worker that is looked at; and another, which is a thief.
const OWNER: usize = 0;
const THIEF: usize = 1;

/// What others know of a worker.
struct Worker {
    idle: AtomicBool,
    hints: AtomicU64,
}

/// A mailbox, which is in the one slot of one of two workers.
struct Mailbox {
    /// Held by who changes `waiting`.
    inside: SpinLock<()>,
    waiting: AtomicU64,
    being_processed: ProcessingFlag,
    owner: OwnerHint,
    /// The worker that has it in its slot.
    slot: AtomicUsize,
    workers: [Worker; 2],
    /// How many messages its actors have handled.
    handled: Plain,
}

/// Somebody else had the lock.
struct Refused;

impl Mailbox {
    /// In this worker's slot. The owner's bit is set, whoever did that.
    fn new(worker: usize, waiting: u64, is_held: bool) -> Arc<Self> {
        let awake = |hints| Worker { idle: AtomicBool::new(false), hints: AtomicU64::new(hints) };
        let mailbox = Self {
            inside: SpinLock::new(()),
            waiting: AtomicU64::new(waiting),
            being_processed: ProcessingFlag::new(),
            owner: OwnerHint::new(worker),
            slot: AtomicUsize::new(worker),
            workers: [awake(1), awake(0)],
            handled: Plain::new(0),
        };
        if is_held {
            mailbox.being_processed.take();
        }
        Arc::new(mailbox)
    }

    fn enter(&self) -> Result<SpinGuard<'_, ()>, Refused> {
        if cfg!(loom) { self.inside.try_lock().ok_or(Refused) } else { Ok(self.inside.lock()) }
    }

    /// As `Worker::hint`.
    fn hint(&self, worker: usize) {
        self.workers[worker].hints.fetch_or(1, Ordering::Release);
    }

    /// As `Worker::wake_if_idle`.
    fn wake_if_idle(&self, worker: usize) {
        let idle = &self.workers[worker].idle;
        if idle.load(Ordering::Relaxed) {
            idle.swap(false, Ordering::AcqRel);
        }
    }

    /// As `ExecutorState::notify`, by somebody whose core will not handle it.
    fn notify(&self) {
        let owner = self.owner.after_work();
        if self.being_processed.is_left_to_holder() {
            return;
        }
        let is_idle = self.workers[owner].idle.load(Ordering::Relaxed);
        self.hint(owner);
        if is_idle {
            self.wake_if_idle(owner);
        }
    }

    /// A message comes.
    fn send(&self) -> Result<(), Refused> {
        let _held = self.enter()?;
        let before = self.waiting.load(Ordering::Relaxed);
        self.waiting.store(before + 1, Ordering::Relaxed);
        if before == 0 {
            self.notify();
        }
        Ok(())
    }

    /// The holder has handled its batch.
    fn put_down(&self) {
        self.being_processed.put_down();
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.notify();
        }
    }

    /// As `Worker::gulp` and what follows.
    fn gulp(&self) -> Result<(), Refused> {
        let held = self.enter()?;
        let messages = self.waiting.load(Ordering::Relaxed);
        if !self.being_processed.is_free() || messages == 0 {
            return Ok(());
        }
        self.being_processed.take();
        self.waiting.store(0, Ordering::Relaxed);
        drop(held);
        self.handled.set(self.handled.get() + messages);
        self.put_down();
        Ok(())
    }

    /// As `may_be_gulped` in `worker/turn.rs`, of what is in the worker's slot.
    fn may_be_gulped(&self, worker: usize) -> bool {
        self.slot.load(Ordering::Acquire) == worker
            && self.waiting.load(Ordering::Relaxed) > 0
            && !self.being_processed.hint()
    }

    /// As `Worker::next_round` and `Worker::next_in_round`, and the gulp: takes the bit, and looks. It is not looked at again
    /// for the sake of that bit.
    fn round(&self, worker: usize) -> Result<(), Refused> {
        let hints = &self.workers[worker].hints;
        if hints.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let early = mutant("round-looks-early").then(|| self.may_be_gulped(worker));
        // Acquire: pairs with the release in `hint`. Without it the flag may seem to be set still.
        hints.swap(0, if mutant("round-relaxed") { Ordering::Relaxed } else { Ordering::Acquire });
        if early.unwrap_or_else(|| self.may_be_gulped(worker)) { self.gulp() } else { Ok(()) }
    }

    /// As `Worker::wait`: announces that the worker sleeps, and looks once. It sleeps, or points out what it has found.
    fn wait(&self, worker: usize) {
        let Worker { idle, hints } = &self.workers[worker];
        let look = || {
            if mutant("wait-looks-at-bits") {
                hints.load(Ordering::Relaxed) != 0
            } else {
                self.may_be_gulped(worker)
            }
        };
        let early = mutant("wait-looks-early").then(look);
        idle.store(true, Ordering::Relaxed);
        if !mutant("wait-no-fence") {
            barrier::full();
        }
        if early.unwrap_or_else(look) {
            hints.fetch_or(1, Ordering::Relaxed);
            idle.store(false, Ordering::Relaxed);
        }
    }

    /// As `try_steal`: moves it from one worker's slot into another's, and makes that known.
    fn steal(&self, from: usize, to: usize) {
        if self.slot.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        let at = || self.slot.load(Ordering::Acquire);
        let owner = self.owner.publish(to, |slot| slot, |slot| at() == slot, || Some(at()));
        let has_mail = self.waiting.load(Ordering::Relaxed) > 0 && !mutant("given-unlooked");
        if let Some(owner) = owner.filter(|_| has_mail) {
            self.hint(owner);
            if owner != THIEF {
                self.wake_if_idle(owner);
            }
        }
    }

    /// A task: the holder has handled its batch.
    fn end_batch(&self) -> Result<(), Refused> {
        self.put_down();
        Ok(())
    }

    /// A task: the owner goes round once, and falls asleep.
    fn look_and_sleep(&self) -> Result<(), Refused> {
        self.round(OWNER)?;
        self.wait(OWNER);
        Ok(())
    }

    /// Afterwards: all messages are there; those that wait, and nobody has in hand, wait for a worker that is awake, because that
    /// looks at its slot once more before it sleeps.
    fn judge(&self, messages: u64) {
        let left = self.waiting.load(Ordering::Relaxed);
        assert_eq!(self.handled.get() + left, messages, "a message was lost, or handled twice");
        let worker = &self.workers[self.slot.load(Ordering::Relaxed)];
        assert!(left == 0 || !worker.idle.load(Ordering::Relaxed), "the mail is with nobody");
    }
}

/// A holder puts it down, a sender sends, and the owner takes the bit and drops it if it seems to be in hand. What is left
/// then is pointed out anew: that the owner would look at it before it sleeps does not count here.
fn dropped_while_held() {
    let mailbox = Mailbox::new(OWNER, 0, true);
    let sender = task(Mailbox::send);
    let holder = task(Mailbox::end_batch);
    let owner = task(|mailbox: &Mailbox| mailbox.round(OWNER));
    if run(&mailbox, [sender, holder, owner]).iter().any(Result::is_err) {
        return;
    }
    mailbox.judge(1);
    let left = mailbox.waiting.load(Ordering::Relaxed);
    let is_hinted = mailbox.workers[OWNER].hints.load(Ordering::Relaxed) != 0;
    assert!(left == 0 || is_hinted, "the mail is with nobody");
}

/// The same with an owner that falls asleep then.
fn asleep_after_a_look() {
    let mailbox = Mailbox::new(OWNER, 0, true);
    let sender = task(Mailbox::send);
    let holder = task(Mailbox::end_batch);
    let owner = task(Mailbox::look_and_sleep);
    if run(&mailbox, [sender, holder, owner]).iter().all(Result::is_ok) {
        mailbox.judge(1);
    }
}

/// A thief takes the mailbox, for which the owner takes its bit, and perhaps gulps. A message more comes, and both fall asleep.
fn robbed() {
    let mailbox = Mailbox::new(OWNER, 1, false);
    let sender = task(Mailbox::send);
    let owner = task(Mailbox::look_and_sleep);
    let thief = task(|mailbox: &Mailbox| {
        mailbox.steal(OWNER, THIEF);
        mailbox.wait(THIEF);
        Ok(())
    });
    if run(&mailbox, [sender, owner, thief]).iter().all(Result::is_ok) {
        mailbox.judge(2);
    }
}

/// The mailbox that a thief gives in exchange gets mail, while the owner takes the bit of that slot and falls asleep.
fn given() {
    let mailbox = Mailbox::new(THIEF, 0, false);
    let sender = task(Mailbox::send);
    let owner = task(Mailbox::look_and_sleep);
    let thief = task(|mailbox: &Mailbox| {
        mailbox.steal(THIEF, OWNER);
        Ok(())
    });
    if run(&mailbox, [sender, owner, thief]).iter().all(Result::is_ok) {
        mailbox.judge(1);
    }
}
