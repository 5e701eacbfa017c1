//! Mail in hand: who takes it, in which order it is handled, and that none is left with nobody.
//!
//! One task of a model is all that runs on the core of worker A: behaviours in its turn, and the worker. Nothing but the
//! mailbox's lock and its flags orders that with the others. Who is refused the lock gives up, as in `guests`.

use magpie::internals::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use magpie::internals::arch::barrier;
use magpie::internals::sync::{GuestFlag, OwnerHint, ProcessingFlag, SpinGuard, SpinLock};

use crate::harness::{Model, Mutant, ordering, step};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "in_hand::taken_or_gulped",
        preemptions: Some(3),
        body: taken_or_gulped,
        mutants: &[
            // shuttle would have to hold up one of the two for twenty steps.
            Mutant { name: "hand-take-unasked", rejected_by: &["loom"] },
            step("gulp-unasked"),
            ordering("gulp-flag-relaxed"),
            ordering("done-relaxed"),
        ],
    },
    Model {
        name: "in_hand::held_or_gulped",
        preemptions: Some(3),
        body: held_or_gulped,
        mutants: &[
            // As above: of three messages the second would have to come while the first is handled.
            Mutant { name: "hold-unasked", rejected_by: &["loom"] },
            Mutant { name: "hold-asked-early", rejected_by: &["loom"] },
            step("gulp-unasked"),
            step("hand-add-unasked"),
            ordering("gulp-flag-relaxed"),
            ordering("done-relaxed"),
            ordering("put-down-no-fence"),
        ],
    },
    Model {
        name: "in_hand::sender_that_comes",
        preemptions: Some(3),
        body: sender_that_comes,
        mutants: &[step("hand-add-unasked")],
    },
    Model {
        name: "in_hand::held_again",
        preemptions: Some(3),
        body: held_again,
        mutants: &[step("hand-add-unasked")],
    },
    Model {
        name: "in_hand::sender_that_leaves",
        preemptions: Some(3),
        body: sender_that_leaves,
        mutants: &[step("hand-back-behind")],
    },
    Model {
        name: "in_hand::rest",
        preemptions: Some(3),
        body: rest,
        mutants: &[
            step("rest-unlooked"),
            ordering("wait-no-fence"),
            ordering("put-down-no-fence"),
            ordering("owner-send-no-fence"),
        ],
    },
    Model {
        name: "in_hand::put_back",
        preemptions: Some(3),
        body: put_back,
        mutants: &[step("hand-back-untold"), ordering("wait-no-fence")],
    },
];

/// The cores that senders run on.
const CORE_A: u64 = 1;
const CORE_B: u64 = 2;
const CLOSED: u64 = 0;

/// A mailbox. Messages are digits, and mail is the number that they make.
struct Mailbox {
    /// The queue.
    inside: SpinLock<Plain>,
    waiting: AtomicU64,
    being_processed: ProcessingFlag,
    guest: GuestFlag,
    owner: OwnerHint,
    owner_is_idle: AtomicBool,
    gate: AtomicU64,
    hand: Plain,
    /// What its actor has handled, in order.
    handled: Plain,
    /// A sender has sent its first message, and goes on on the other core.
    moved: AtomicBool,
}

/// Somebody else had the lock.
struct Refused;

/// Who sees to mail that somebody has made or found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
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
fn join(front: u64, behind: u64) -> u64 {
    front * 10_u64.pow(length(behind) as u32) + behind
}

fn length(mail: u64) -> u64 {
    mail.checked_ilog10().map_or(0, |log| u64::from(log) + 1)
}

impl Mailbox {
    /// With mail in its queue or, if it is in hand on core A, there.
    fn new(mail: u64, in_hand: bool, owner_is_idle: bool) -> Arc<Self> {
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

    fn enter(&self) -> Result<SpinGuard<'_, Plain>, Refused> {
        if cfg!(loom) { self.inside.try_lock().ok_or(Refused) } else { Ok(self.inside.lock()) }
    }

    /// As `ExecutorState::notify`.
    fn notify(&self) -> To {
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
    fn send(&self, core: u64, message: u64) -> Result<To, Refused> {
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

    /// A sender's first message, from core B, from where it goes to core A.
    fn send_and_move(&self) -> Result<Option<To>, Refused> {
        let to = self.send(CORE_B, 1)?;
        // Release: as a process that is put into a queue.
        self.moved.store(true, Ordering::Release);
        Ok(Some(to))
    }

    /// Behaviours of the mailbox's own executor run on core A only.
    fn take_in_hand(&self, core: u64, queue: &Plain) -> bool {
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
    fn hold_waiting(&self) -> Result<bool, Refused> {
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

    fn handle(&self, mail: u64) {
        self.handled.set(join(self.handled.get(), mail));
    }

    /// Worker A delivers what it has in hand, which rests then.
    fn deliver(&self) {
        let mail = self.hand.get();
        self.hand.set(0);
        self.handle(mail);
    }

    /// As `Worker::gulp_again`.
    fn gulp_again(&self) -> Result<(), Refused> {
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
    fn hold_again(&self) -> Result<(), Refused> {
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
    fn end_rest(&self) -> Option<To> {
        self.gate.store(CLOSED, Ordering::Relaxed);
        self.being_processed.put_down();
        let has_mail = self.waiting.load(Ordering::Relaxed) > 0 && !mutant("rest-unlooked");
        has_mail.then(|| self.notify())
    }

    /// As `Mailbox::put_back`, and what follows.
    fn put_back(&self) -> Result<Option<To>, Refused> {
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
    fn gulp(&self) -> Result<Option<To>, Refused> {
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
    fn owner_waits(&self) -> bool {
        self.owner_is_idle.store(true, Ordering::Relaxed);
        if !mutant("wait-no-fence") {
            barrier::full();
        }
        self.waiting.load(Ordering::Relaxed) > 0 && !self.being_processed.hint() && !self.guest.is_set()
    }

    /// All that was sent, in the order in which it was and will be handled; and whether some of it waits. Afterwards.
    fn all(&self) -> (u64, bool) {
        let queue = self.inside.lock().get();
        assert_eq!(length(queue), self.waiting.load(Ordering::Relaxed), "the count is wrong");
        (join(join(self.handled.get(), self.hand.get()), queue), queue != 0)
    }
}

/// Whether the messages are these, each once, and `first` comes before `second`.
fn judge(mail: u64, messages: u64, first: u64, second: u64) {
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
fn judged<T, const N: usize>(results: [Result<T, Refused>; N]) -> Option<[T; N]> {
    let all: Vec<T> = results.into_iter().collect::<Result<_, _>>().ok()?;
    all.try_into().ok()
}

/// Behind the 9 that was in hand comes the 1 and, if its sender went on to the other core, the 2; and somebody sees to what is left.
fn judge_both<const N: usize>(mailbox: &Mailbox, results: [Result<Option<To>, Refused>; N]) {
    let Some(told) = judged(results) else { return };
    let (all, is_left) = mailbox.all();
    let has_both = length(all) == 3;
    judge(all, if has_both { 912 } else { 91 }, if has_both { 1 } else { 9 }, if has_both { 2 } else { 1 });
    assert!(!is_left || told.contains(&Some(To::Owner)), "the mail is with nobody");
}

/// A behaviour on core A sends two messages, and its worker handles what it has in hand by then; another worker gulps. One
/// of the two at a time is in the actor.
fn taken_or_gulped() {
    let mailbox = Mailbox::new(1, false, false);
    let sender = task(|mailbox: &Mailbox| {
        let sent = [mailbox.send(CORE_A, 2)?, mailbox.send(CORE_A, 3)?];
        if !sent.contains(&To::Hand) {
            return Ok(sent.contains(&To::Owner));
        }
        mailbox.deliver();
        let told = mailbox.end_rest() == Some(To::Owner);
        Ok(told || sent.contains(&To::Owner))
    });
    let owner = task(|mailbox: &Mailbox| Ok(mailbox.gulp()? == Some(To::Owner)));
    let Some([sender, owner]) = judged(run(&mailbox, [sender, owner])) else { return };
    let (all, is_left) = mailbox.all();
    judge(all, 123, 2, 3);
    assert_eq!(all / 100, 1, "out of order: {all}");
    // The first message of all was told of before.
    let began = mailbox.handled.get() == 0;
    assert!(!is_left || began || sender || owner, "the mail is with nobody");
}

/// Worker A begins a round and takes what waits in hand, behaviours on its core send behind it, and it is handled. Another
/// worker gulps. One of those senders has put its first message into the queue from another core meanwhile.
fn held_or_gulped() {
    let mailbox = Mailbox::new(4, false, false);
    let before = task(|mailbox: &Mailbox| Ok(mailbox.send_and_move()? == Some(To::Owner)));
    let round = task(|mailbox: &Mailbox| {
        let mut is_held = mailbox.hold_waiting()?;
        let mut told = false;
        let mut add = |message| {
            let to = mailbox.send(CORE_A, message)?;
            is_held |= to == To::Hand;
            told |= to == To::Owner;
            Ok(())
        };
        add(5)?;
        // Acquire: as a core that takes the process from there.
        if mailbox.moved.load(Ordering::Acquire) {
            add(2)?;
        }
        if is_held {
            mailbox.deliver();
            told |= mailbox.end_rest() == Some(To::Owner);
        }
        Ok(told)
    });
    let other = task(|mailbox: &Mailbox| Ok(mailbox.gulp()? == Some(To::Owner)));
    let Some(told) = judged(run(&mailbox, [before, round, other])) else { return };
    let (all, is_left) = mailbox.all();
    let has_both = length(all) == 4;
    judge(all, if has_both { 4512 } else { 451 }, 4, 5);
    if has_both {
        judge(all, 4512, 1, 2);
    }
    assert!(!is_left || told.contains(&true), "the mail is with nobody");
}

/// A sender puts a message into the queue from core B, comes to core A, where the mailbox is in hand, and sends another.
fn sender_that_comes() {
    let mailbox = Mailbox::new(9, true, false);
    let before = task(Mailbox::send_and_move);
    let after = task(|mailbox: &Mailbox| {
        // Acquire: as a core that takes the process from there.
        if mailbox.moved.load(Ordering::Acquire) {
            mailbox.send(CORE_A, 2)?;
        }
        mailbox.deliver();
        mailbox.gulp_again()?;
        Ok(mailbox.end_rest())
    });
    judge_both(&mailbox, run(&mailbox, [before, after]));
}

/// As before, and the mailbox is taken in hand again behind its batch, without being put down. The sender comes before that
/// or after it.
fn held_again() {
    let mailbox = Mailbox::new(9, true, false);
    let before = task(Mailbox::send_and_move);
    let after = task(|mailbox: &Mailbox| {
        // Acquire, here and below: as above.
        let came_early = mailbox.moved.load(Ordering::Acquire);
        if came_early {
            mailbox.send(CORE_A, 2)?;
        }
        mailbox.deliver();
        mailbox.hold_again()?;
        if !came_early && mailbox.moved.load(Ordering::Acquire) {
            mailbox.send(CORE_A, 2)?;
        }
        mailbox.deliver();
        Ok(mailbox.end_rest())
    });
    judge_both(&mailbox, run(&mailbox, [before, after]));
}

/// A sender adds to what is in hand on core A, goes on to core B, and sends another from there. What was in hand is put back
/// meanwhile, and another worker gulps.
fn sender_that_leaves() {
    let mailbox = Mailbox::new(9, true, false);
    let before = task(|mailbox: &Mailbox| {
        mailbox.send(CORE_A, 1)?;
        // Release and acquire: as above.
        mailbox.moved.store(true, Ordering::Release);
        mailbox.put_back()
    });
    let after = task(|mailbox: &Mailbox| {
        if mailbox.moved.load(Ordering::Acquire) {
            return mailbox.send(CORE_B, 2).map(Some);
        }
        Ok(None)
    });
    let owner = task(Mailbox::gulp);
    judge_both(&mailbox, run(&mailbox, [before, after, owner]));
}

/// What a thread did about the mail: it has it in its own list, or has seen it before it would sleep.
type SeesTo = Result<bool, Refused>;

/// The mailbox rests in hand. Mail comes from elsewhere, the turn ends, the owner falls asleep.
fn rest() {
    let mailbox = Mailbox::new(0, true, false);
    let sender = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.send(CORE_B, 1)? == To::Me) });
    let holder = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.end_rest() == Some(To::Me)) });
    let owner = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.owner_waits()) });
    let Some(sees_to) = judged(run(&mailbox, [sender, holder, owner])) else { return };
    assert!(sees_to.contains(&true), "the mail is with nobody");
}

/// Mail in hand is put back while more comes from elsewhere, and the owner falls asleep.
fn put_back() {
    let mailbox = Mailbox::new(12, true, false);
    let sender = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.send(CORE_B, 3)? == To::Me) });
    let holder = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.put_back()? == Some(To::Me)) });
    let owner = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.owner_waits()) });
    let Some(sees_to) = judged(run(&mailbox, [sender, holder, owner])) else { return };
    assert_eq!(mailbox.all().0, 123, "a message was lost, or is out of order");
    assert!(sees_to.contains(&true), "the mail is with nobody");
}
