//! Guests: mail for an idle worker's mailbox, which the host on the sender's core handles.
//!
//! Under loom a lock is tried, never waited for: two that wait would keep loom busy for ever. Who is refused gives up, and
//! the run is not judged, for the one in which it comes after the holder is explored as well. shuttle, which tries few
//! of all schedules, waits.

use magpie::internals::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use magpie::internals::arch::barrier;
use magpie::internals::sync::{GuestFlag, OwnerHint, ProcessingFlag, SpinGuard, SpinLock};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, Task, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "guests::sender_and_host",
        preemptions: None,
        body: sender_and_host,
        mutants: &[
            ordering("guest-clear-no-fence"),
            ordering("owner-send-no-fence"),
            step("guest-clear-late"),
        ],
    },
    Model {
        name: "guests::two_inviters",
        preemptions: Some(3),
        body: two_inviters,
        mutants: &[
            step("guest-claim-by-load"),
            step("guest-clear-late"),
            step("guest-looked-early"),
            ordering("guest-claim-relaxed"),
            ordering("guest-clear-relaxed"),
            ordering("guest-clear-no-fence"),
            ordering("put-down-no-fence"),
            ordering("owner-send-no-fence"),
        ],
    },
    Model {
        name: "guests::owner_and_sender",
        preemptions: Some(3),
        body: owner_and_sender,
        mutants: &[ordering("wait-no-fence"), ordering("owner-send-no-fence"), step("guest-clear-late")],
    },
    Model {
        name: "guests::owner_and_holder",
        preemptions: Some(3),
        body: owner_and_holder,
        mutants: &[ordering("wait-no-fence"), ordering("guest-clear-no-fence"), step("guest-clear-late")],
    },
    Model {
        name: "guests::sent_home",
        preemptions: Some(3),
        body: sent_home,
        mutants: &[ordering("wait-no-fence"), ordering("owner-send-no-fence"), step("home-never-ripe")],
    },
    Model {
        name: "guests::host_owner_thief",
        preemptions: Some(3),
        body: host_owner_thief,
        mutants: &[step("gulp-unasked"), ordering("gulp-flag-relaxed"), ordering("done-relaxed")],
    },
];

/// A mailbox, which begins in a host's list; its owner; and what stands for its actors.
struct Mailbox {
    /// Held by who changes `waiting`.
    inside: SpinLock<()>,
    waiting: AtomicU64,
    being_processed: ProcessingFlag,
    guest: GuestFlag,
    /// Whether it is in a list. Stands for its link: written by who has claimed the flag and by the host, and nothing but
    /// the flag orders them.
    listed: Plain,
    owner: OwnerHint,
    owner_is_idle: AtomicBool,
    /// Whether its mail was seen waiting; what is seen so again has waited for long.
    seen: AtomicBool,
    /// How many messages its actors have handled.
    handled: Plain,
}

/// Somebody else had the lock.
struct Refused;

/// Who sees to mail that somebody has made or found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    /// The one that has the mailbox in hand.
    Holder,
    /// The host that has it in its list.
    Host,
    /// The one who asked, with the mailbox in its own list now.
    Me,
    /// The owner, who is awake.
    Owner,
}

/// What a thread did about the mailbox.
#[derive(Default)]
struct Did {
    /// It has put it into its own list.
    invited: bool,
    /// It has pointed it out to the owner.
    told_owner: bool,
    /// The owner, before it sleeps: has seen that there is mail for it.
    seen: bool,
}

impl Mailbox {
    fn new(waiting: u64, is_held: bool, owner_is_idle: bool) -> Arc<Self> {
        let mailbox = Self {
            inside: SpinLock::new(()),
            waiting: AtomicU64::new(waiting),
            being_processed: ProcessingFlag::new(),
            guest: GuestFlag::new(),
            listed: Plain::new(1),
            owner: OwnerHint::new(0),
            owner_is_idle: AtomicBool::new(owner_is_idle),
            seen: AtomicBool::new(false),
            handled: Plain::new(0),
        };
        assert!(mailbox.guest.claim(), "a new flag is clear");
        if is_held {
            mailbox.being_processed.take();
        }
        Arc::new(mailbox)
    }

    /// As `ExecutorState::notify`, with no more for the local worker to do than this.
    fn notify(&self) -> To {
        self.owner.after_work();
        if self.being_processed.is_left_to_holder() {
            return To::Holder;
        }
        if !self.owner_is_idle.load(Ordering::Relaxed) {
            return To::Owner;
        }
        if !self.guest.claim() {
            return To::Host;
        }
        assert_eq!(self.listed.get(), 0, "it is put into a second list");
        self.listed.set(1);
        To::Me
    }

    fn enter(&self) -> Result<SpinGuard<'_, ()>, Refused> {
        if cfg!(loom) { self.inside.try_lock().ok_or(Refused) } else { Ok(self.inside.lock()) }
    }

    /// A message comes.
    fn send(&self) -> Result<To, Refused> {
        let _held = self.enter()?;
        let before = self.waiting.load(Ordering::Relaxed);
        self.waiting.store(before + 1, Ordering::Relaxed);
        // Who finds it non-empty leaves it to the one who made it so.
        Ok(if before == 0 { self.notify() } else { To::Holder })
    }

    /// As `Worker::gulp` and what follows: takes what waits and handles it. Who sees to what has come since, if
    /// the caller has found some.
    fn gulp(&self) -> Result<Option<To>, Refused> {
        let held = self.enter()?;
        let messages = self.waiting.load(Ordering::Relaxed);
        if !self.being_processed.is_free() || messages == 0 {
            return Ok(None);
        }
        self.being_processed.take();
        self.waiting.store(0, Ordering::Relaxed);
        drop(held);
        self.handled.set(self.handled.get() + messages);
        Ok(self.put_down())
    }

    /// The holder has handled its batch.
    fn put_down(&self) -> Option<To> {
        self.being_processed.put_down();
        (self.waiting.load(Ordering::Relaxed) > 0).then(|| self.notify())
    }

    /// As `may_be_gulped` in `worker/turn.rs`.
    fn may_be_gulped(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0 && !self.being_processed.hint()
    }

    /// As `Worker::next_guest`, the look and the gulp: the host takes it out of its list and sees to it, unless somebody has it
    /// in hand.
    fn host(&self) -> Result<Option<To>, Refused> {
        assert_eq!(self.listed.get(), 1, "it is not in the list");
        self.listed.set(0);
        if mutant("guest-clear-late") {
            let after = self.gulp();
            self.guest.clear();
            return after;
        }
        let early = mutant("guest-looked-early").then(|| self.may_be_gulped());
        self.guest.clear();
        if early.unwrap_or_else(|| self.may_be_gulped()) { self.gulp() } else { Ok(None) }
    }

    /// Plays the host whenever the mailbox has come into its own list, until it has not.
    fn host_while_invited(&self, mut after: Option<To>) -> Result<(), Refused> {
        while after == Some(To::Me) {
            after = self.host()?;
        }
        Ok(())
    }

    /// As `Mailbox::is_ripe`: whether the owner counts it before it sleeps.
    fn is_ripe(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
            && !self.being_processed.hint()
            && (!self.guest.is_set() || self.may_leave() && !mutant("home-never-ripe"))
    }

    /// Whether its mail was seen before; notes that it was seen now. A clock stands still here: whoever finds the note
    /// comes long after it.
    fn may_leave(&self) -> bool {
        let before = self.seen.load(Ordering::Relaxed);
        if !before {
            self.seen.store(true, Ordering::Relaxed);
        }
        before
    }

    /// As `Worker::wait`: the owner announces that it sleeps, and looks. Whether it stays awake.
    fn owner_waits(&self) -> bool {
        self.owner_is_idle.store(true, Ordering::Relaxed);
        if !mutant("wait-no-fence") {
            barrier::full();
        }
        self.is_ripe()
    }

    /// As `Worker::wake_if_idle`.
    fn wake_owner(&self) -> bool {
        self.owner_is_idle.load(Ordering::Relaxed) && self.owner_is_idle.swap(false, Ordering::AcqRel)
    }
}

impl Did {
    fn told(to: Option<To>) -> Self {
        Self { invited: to == Some(To::Me), told_owner: to == Some(To::Owner), seen: false }
    }
}

/// The results, if nobody was refused.
fn judged<T, const N: usize>(results: [Result<T, Refused>; N]) -> Option<[T; N]> {
    let all: Vec<T> = results.into_iter().collect::<Result<_, _>>().ok()?;
    all.try_into().ok()
}

/// The flag alone, with no lock that would order the two: the sender puts the thing into its list, or the host sees
/// the work.
fn sender_and_host() {
    let mailbox = Mailbox::new(0, false, true);
    let sender = task(|mailbox: &Mailbox| {
        mailbox.waiting.store(1, Ordering::Relaxed);
        mailbox.notify() == To::Me
    });
    let host = task(|mailbox: &Mailbox| {
        mailbox.listed.set(0);
        let early = mailbox.waiting.load(Ordering::Relaxed) > 0;
        mailbox.guest.clear();
        if mutant("guest-clear-late") { early } else { mailbox.waiting.load(Ordering::Relaxed) > 0 }
    });
    let [invited, seen] = run(&mailbox, [sender, host]);
    assert!(invited || seen, "the mail is with nobody");
}

/// The host clears the flag and gulps, while a sender counts a message under the lock and a holder puts the mailbox down
/// without it. Whoever invites is a host then. In the end all mail was handled.
fn two_inviters() {
    let mailbox = Mailbox::new(0, true, true);
    let host = task(|mailbox: &Mailbox| mailbox.host().and_then(|after| mailbox.host_while_invited(after)));
    let sender = task(|mailbox: &Mailbox| mailbox.send().and_then(|to| mailbox.host_while_invited(Some(to))));
    let holder = task(|mailbox: &Mailbox| mailbox.host_while_invited(mailbox.put_down()));
    let Some(_) = judged(run(&mailbox, [host, sender, holder])) else { return };
    assert_eq!(mailbox.handled.get(), 1, "the mail is with nobody");
    assert_eq!(mailbox.listed.get(), 0, "it is in a list that nobody has");
}

/// Runs `other` against the host and an owner that goes to sleep. Mail that is left is in a list, or the owner sees it.
fn against_host_and_owner(mailbox: &Arc<Mailbox>, other: Task<Mailbox, Result<Did, Refused>>) {
    let host = task(|mailbox: &Mailbox| mailbox.host().map(Did::told));
    let owner = task(|mailbox: &Mailbox| Ok(Did { seen: mailbox.owner_waits(), ..Did::default() }));
    let Some(all) = judged(run(mailbox, [other, host, owner])) else { return };
    let is_left = mailbox.waiting.load(Ordering::Relaxed) > 0;
    let is_in_hand = all.iter().any(|did| did.invited || did.seen);
    assert!(!is_left || is_in_hand, "the mail is with nobody");
    assert!(all.iter().filter(|did| did.invited).count() <= 1, "it is in two lists");
}

/// The sender finds the owner awake and leaves the mail to it; the owner leaves what is a guest to the host.
fn owner_and_sender() {
    let mailbox = Mailbox::new(0, false, false);
    against_host_and_owner(&mailbox, task(|mailbox: &Mailbox| mailbox.send().map(|to| Did::told(Some(to)))));
}

/// The same with a holder that puts it down without the lock, and has found mail.
fn owner_and_holder() {
    let mailbox = Mailbox::new(1, true, false);
    against_host_and_owner(&mailbox, task(|mailbox: &Mailbox| Ok(Did::told(mailbox.put_down()))));
}

/// The host finds that a guest has waited for long, and wakes the owner; or the owner counts it before it sleeps. Another
/// core looks as well.
fn sent_home() {
    let mailbox = Mailbox::new(1, false, false);
    // As `look_for_surplus`, twice, and `send_home`.
    let host = task(|mailbox: &Mailbox| {
        if !(mailbox.may_leave() || mailbox.may_leave()) {
            return false;
        }
        mailbox.owner.after_work();
        mailbox.wake_owner()
    });
    let owner = task(Mailbox::owner_waits);
    let other = task(Mailbox::may_leave);
    let [woken, ripe, _] = run(&mailbox, [host, owner, other]);
    assert!(woken || ripe, "the owner sleeps, and its mail has waited for long");
}

/// The host, the owner, and a thief that had the slot from the owner and found a message more: one of them at a time is
/// in an actor, and each message is handled once. What is left the owner is told, or it is in a list.
fn host_owner_thief() {
    let mailbox = Mailbox::new(1, false, false);
    let host = task(|mailbox: &Mailbox| mailbox.host().map(Did::told));
    let owner = task(|mailbox: &Mailbox| mailbox.gulp().map(Did::told));
    let thief = task(|mailbox: &Mailbox| {
        let told = Did::told(Some(mailbox.send()?));
        let after = Did::told(mailbox.gulp()?);
        Ok(Did { told_owner: told.told_owner || after.told_owner, ..after })
    });
    let Some(all) = judged(run(&mailbox, [host, owner, thief])) else { return };
    let left = mailbox.waiting.load(Ordering::Relaxed);
    assert_eq!(mailbox.handled.get() + left, 2, "two were in one actor, or a message was handled twice");
    assert!(left == 0 || all.iter().any(|did| did.told_owner), "nobody told the owner");
}
