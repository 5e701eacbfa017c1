//! Senders that wait for room in a bounded mailbox: whoever empties it tells one, here, and leaves the others to a loop, which stops while it
//! is full (`actor/mail/waiting_senders.rs`, `sync/waiters.rs`). Nobody waits for ever, though those who were told may never come.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::RaisedFlag;

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Mutex, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "waiting_senders::one_comes",
        preemptions: Some(3),
        body: one_comes,
        mutants: &[step("room-not-looked-for"), step("room-told-of-before")],
    },
    Model {
        name: "waiting_senders::the_first_are_killed",
        preemptions: Some(3),
        body: the_first_are_killed,
        mutants: &[
            step("room-looked-for-early"),
            step("room-told-of-once"),
            ordering("raised-clear-by-store"),
        ],
    },
    Model {
        name: "waiting_senders::it_is_closed",
        preemptions: Some(3),
        body: it_is_closed,
        mutants: &[step("room-close-not-looked-for"), step("room-told-of-once")],
    },
];

const SENDERS: usize = 4;

/// Those who wait, oldest first, with their tickets.
#[derive(Default)]
struct Waiting {
    all: Vec<(u64, usize)>,
    last: u64,
    /// Up to this ticket they may be told.
    until: u64,
}

/// A mailbox with room for one message.
struct Mailbox {
    /// Written under its lock, in which lies whether it is open.
    waiting: AtomicU64,
    lock: Mutex<bool>,
    senders: Mutex<Waiting>,
    flag: RaisedFlag,
    /// How often a loop is to look.
    listed: AtomicU64,
    told: [AtomicU64; SENDERS],
    sent: [AtomicU64; SENDERS],
}

impl Mailbox {
    /// Full, or empty.
    fn new(is_full: bool) -> Arc<Self> {
        Arc::new(Self {
            waiting: AtomicU64::new(is_full.into()),
            lock: Mutex::new(true),
            senders: Mutex::new(Waiting::default()),
            flag: RaisedFlag::new(),
            listed: AtomicU64::new(0),
            told: core::array::from_fn(|_| AtomicU64::new(0)),
            sent: core::array::from_fn(|_| AtomicU64::new(0)),
        })
    }

    fn is_full(&self) -> bool {
        // Relaxed: as `Mailbox::waiting`.
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn is_open(&self) -> bool {
        *self.lock.lock().unwrap()
    }

    /// Whether it has sent, or has come in vain because the mailbox is closed.
    fn send(&self) -> bool {
        let is_open = self.lock.lock().unwrap();
        let has_room = !self.is_full();
        if has_room && *is_open {
            self.waiting.store(1, Ordering::Relaxed);
        }
        has_room || !*is_open
    }

    /// It is closed, and nobody empties it in a way that tells of room.
    fn close(&self) {
        *self.lock.lock().unwrap() = false;
        self.leave_to_loop(self.tell_one(true));
    }

    /// A turn of a sender, as `SendWait::poll`: it has sent, or waits.
    fn sender(&self, who: usize) {
        loop {
            if self.send() {
                return self.sent[who].store(1, Ordering::Relaxed);
            }
            let mut senders = self.senders.lock().unwrap();
            // Under the lock in which it begins to wait.
            if self.is_full() || mutant("room-not-looked-for") {
                senders.last += 1;
                let ticket = senders.last;
                return senders.all.push((ticket, who));
            }
        }
    }

    /// Tells one. Whether there are others.
    fn tell_one(&self, begins: bool) -> bool {
        let mut senders = self.senders.lock().unwrap();
        if begins {
            senders.until = senders.last;
        }
        let may_be_told =
            |senders: &Waiting| senders.all.first().is_some_and(|first| first.0 <= senders.until);
        if may_be_told(&senders) {
            let (_, who) = senders.all.remove(0);
            self.told[who].store(1, Ordering::Relaxed);
        }
        may_be_told(&senders)
    }

    /// As `WaitingSenders::leave_others_to_loop`.
    fn leave_to_loop(&self, are_others: bool) {
        if are_others && self.flag.set() {
            self.listed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A worker takes what is in it.
    fn gulp(&self) {
        let inside = self.lock.lock().unwrap();
        if !self.is_full() || !*inside {
            return;
        }
        if mutant("room-told-of-before") {
            self.leave_to_loop(self.tell_one(true));
        }
        self.waiting.store(0, Ordering::Relaxed);
        drop(inside);
        if !mutant("room-told-of-before") {
            self.leave_to_loop(self.tell_one(true));
        }
    }

    /// The loop looks once, if it is to: as `Raised::carry_out` and `WaitingSenders::tell_more`. Whether it was to.
    fn look(&self) -> bool {
        if self.listed.load(Ordering::Relaxed) == 0 {
            return false;
        }
        self.listed.fetch_sub(1, Ordering::Relaxed);
        let was_full = mutant("room-looked-for-early") && self.is_full();
        self.flag.clear();
        let is_closed = !mutant("room-close-not-looked-for") && !self.is_open();
        if is_closed || (!was_full && !self.is_full()) {
            let are_others = self.tell_one(false);
            self.leave_to_loop(are_others && !mutant("room-told-of-once"));
        }
        true
    }

    /// All go on until nobody can, but those who were killed. Then `who` has sent, who alone was not.
    fn judge(&self, who: usize) {
        let mut goes_on = true;
        while goes_on {
            goes_on = self.look();
            if self.told[who].swap(0, Ordering::Relaxed) != 0 {
                self.sender(who);
                goes_on = true;
            }
            if self.is_full() && self.is_open() {
                self.gulp();
                goes_on = true;
            }
        }
        assert_eq!(self.sent[who].load(Ordering::Relaxed), 1, "it waits for ever");
    }
}

/// One comes to a full mailbox while a worker empties it.
fn one_comes() {
    let mailbox = Mailbox::new(true);
    run(&mailbox, [task(|mailbox: &Mailbox| mailbox.sender(0)), task(|mailbox: &Mailbox| mailbox.gulp())]);
    mailbox.judge(0);
}

/// Four wait, of whom all but the last are killed, and the first was told. The loop looks while somebody else fills the mailbox, who has never
/// waited, and a worker empties it.
fn the_first_are_killed() {
    let mailbox = Mailbox::new(true);
    for who in 0..SENDERS {
        mailbox.sender(who);
    }
    mailbox.gulp();
    let worker = task(|mailbox: &Mailbox| {
        if mailbox.send() {
            mailbox.gulp();
        }
    });
    run(&mailbox, [worker, task(|mailbox: &Mailbox| _ = mailbox.look())]);
    mailbox.judge(SENDERS - 1);
}

/// Four wait, of whom all but the last are killed. A worker has told the first, and the loop looks while somebody else fills the mailbox, and it is
/// closed.
fn it_is_closed() {
    let mailbox = Mailbox::new(true);
    for who in 0..SENDERS {
        mailbox.sender(who);
    }
    mailbox.gulp();
    let closes = task(|mailbox: &Mailbox| {
        mailbox.send();
        mailbox.close();
    });
    run(&mailbox, [closes, task(|mailbox: &Mailbox| _ = mailbox.look())]);
    mailbox.judge(SENDERS - 1);
}
