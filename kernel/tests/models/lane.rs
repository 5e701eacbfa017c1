//! A lane that is interrupted while it is delivered: the turn is to end, what waits is to leave, or its behaviour is suspended; and behaviours send to
//! mailboxes in the lane, when there is room, and when there is none. Every message is handled once, those of each mailbox in order, and no mailbox
//! is given away while a behaviour of its own runs.
//!
//! How far the lane has come is the kernel's; the rest is that of `actor/run/worker/lane.rs`, `actor/mail/hand/lane.rs` and
//! `actor/run/detach.rs`. What a batch of one mailbox does is in `batch`.
//!
//! One task is the activation on the worker's core, and the interrupt's handler there: whether an interrupt has come it asks between its
//! steps, wherever preemption is enabled. The other says what the interrupts are for.

use std::collections::VecDeque;
use std::ptr::NonNull;

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::Extent;

use crate::harness::{Model, step};
use crate::tool::{Arc, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "lane::alone",
        preemptions: Some(3),
        body: || explore(&CHAIN, &[GO, GO]),
        mutants: &[
            step("lane-keeps-end"),
            step("lane-leaves-itself"),
            step("lane-gates-stay"),
            step("lane-done-taken-for-batch"),
            step("lane-kept-unlinked"),
        ],
    },
    Model {
        name: "lane::cut",
        preemptions: Some(3),
        body: || explore(&SEVERAL, &[CUT, GO]),
        mutants: &[step("lane-keeps-end"), step("lane-leaves-early"), step("lane-own-listed")],
    },
    Model {
        name: "lane::let_go_and_split",
        preemptions: Some(3),
        body: || explore(&SEVERAL, &[GO, SPLIT]),
        mutants: &[step("lane-keeps-end"), step("lane-own-listed"), step("lane-split-unsettled")],
    },
    Model {
        name: "lane::split",
        preemptions: Some(3),
        body: || explore(&CHAIN, &[SPLIT, CUT]),
        mutants: &[step("lane-keeps-end"), step("extent-end-by-equality")],
    },
];

/// What an interrupt is for.
const NOTHING: u64 = 0;
/// The turn is to end.
const CUT: u64 = 1;
/// What waits is to leave.
const GO: u64 = 2;
/// The behaviour is suspended.
const SPLIT: u64 = 3;

const MAILBOXES: usize = 2;

/// What is sent.
struct Script {
    /// The mailbox of each message.
    to: &'static [usize],
    /// So many are in the lane when it begins; each that is handled sends one, until all are sent.
    first: usize,
    /// There is room for so many.
    places: usize,
}

/// A lone message goes to the other mailbox: where there is room, where there is none, and where there is again; and to its own where there is none.
const CHAIN: Script = Script { to: &[0, 1, 0, 1, 1], first: 1, places: 2 };

/// Three wait.
const SEVERAL: Script = Script { to: &[0, 1, 1, 0, 0, 1], first: 3, places: 4 };

struct Scene {
    batch: Extent,
    interrupt: AtomicU64,
}

#[derive(Default)]
struct Mailbox {
    /// What is sent to it goes into the lane.
    in_lane: bool,
    /// What it has in hand elsewhere.
    own: VecDeque<usize>,
    /// It was given away, with all that it has.
    is_away: bool,
}

struct Core<'a> {
    scene: &'a Scene,
    script: &'static Script,
    /// The lane's segment: which message is at each place.
    letters: Vec<usize>,
    is_lane: bool,
    /// Whose batch it is otherwise; what its mailbox has in hand follows it.
    batch_of: Option<usize>,
    mailboxes: [Mailbox; MAILBOXES],
    /// In the order in which they wait for their turn.
    list: VecDeque<usize>,
    is_armed: bool,
    is_split: bool,
    sent: usize,
    handled: Vec<usize>,
    /// The message whose behaviour runs.
    at_work: Option<usize>,
}

impl Core<'_> {
    fn of(&self, message: usize) -> usize {
        self.script.to[message]
    }

    fn place(&self, at: usize) -> NonNull<u8> {
        NonNull::from(&self.letters[at]).cast()
    }

    fn at(&self, place: *mut u8) -> usize {
        (place.addr() - self.letters.as_ptr().addr()) / size_of::<usize>()
    }

    fn current(&self) -> Option<usize> {
        self.scene.batch.current().map(|place| self.at(place.as_ptr()))
    }

    fn has_more(&self) -> bool {
        self.current().is_some_and(|at| at + 1 < self.at(self.scene.batch.end()))
    }

    fn interrupt(&mut self) {
        if self.is_split {
            return;
        }
        match self.scene.interrupt.swap(NOTHING, Ordering::Relaxed) {
            CUT => {
                // As `Worker::end_turn`.
                self.settle();
                if self.is_armed && self.batch_of.is_some() {
                    let places = self.letters.as_ptr().addr();
                    self.scene.batch.cut(|envelope| {
                        envelope.map_addr(|address| {
                            debug_assert!(address.get() >= places);
                            address.saturating_add(size_of::<usize>())
                        })
                    });
                }
            }
            GO => {
                self.settle();
                self.give_all();
            }
            SPLIT if self.is_armed => self.detach(),
            _ => {}
        }
    }

    /// As `Worker::settle`.
    fn settle(&mut self) {
        if !self.is_lane {
            return;
        }
        for mailbox in &mut self.mailboxes {
            mailbox.in_lane &= mutant("lane-gates-stay");
        }
        self.is_lane = false;
        let Some(at) = self.current() else {
            if mutant("lane-done-taken-for-batch") {
                let last = self.at(self.scene.batch.position()).saturating_sub(1);
                self.batch_of = Some(self.of(self.letters[last]));
                self.scene.batch.go_to(self.place(last));
            }
            return;
        };
        let own = self.of(self.letters[at]);
        let end = self.at(self.scene.batch.end());
        for next in at + 1..end {
            let message = self.letters[next];
            let mailbox = self.of(message);
            if mailbox != own || mutant("lane-own-listed") {
                self.wake(mailbox);
            }
            self.mailboxes[mailbox].own.push_back(message);
        }
        self.batch_of = Some(own);
        self.scene.batch.end_at(self.place(at + 1));
    }

    /// As `Hand::wake`.
    fn wake(&mut self, mailbox: usize) {
        if !self.list.contains(&mailbox) {
            self.list.push_back(mailbox);
        }
    }

    /// As `worker::lane::leave_lane`.
    fn leave(&mut self, mailbox: usize) {
        let is_apart = match self.current() {
            Some(at) => {
                (!self.has_more() || mutant("lane-leaves-early"))
                    && (self.of(self.letters[at]) != mailbox || mutant("lane-leaves-itself"))
            }
            None => true,
        };
        if is_apart {
            self.mailboxes[mailbox].in_lane = false;
        } else {
            self.settle();
        }
    }

    /// What is listed goes to another core, which handles all of it, and so does what rests.
    fn give_all(&mut self) {
        for mailbox in core::mem::take(&mut self.list) {
            self.give(mailbox);
        }
        for mailbox in 0..MAILBOXES {
            if self.batch_of != Some(mailbox) {
                self.give(mailbox);
            }
        }
    }

    fn give(&mut self, mailbox: usize) {
        let is_at_work = self.at_work.is_some_and(|message| self.of(message) == mailbox) && !self.is_split;
        assert!(!is_at_work, "a mailbox is given away while its behaviour runs");
        let Mailbox { own, is_away, .. } = &mut self.mailboxes[mailbox];
        *is_away = true;
        self.handled.extend(own.drain(..));
    }

    /// As `detach::detach`, and what follows it in the worker's turns.
    fn detach(&mut self) {
        if !mutant("lane-split-unsettled") {
            self.settle();
        }
        let Some(envelope) = self.scene.batch.current_of_whole() else { return };
        self.scene.batch.mend();
        self.scene.batch.split(envelope);
        self.is_split = true;
        // What was suspended comes first: the actor is held until it is over.
        let message = self.letters[self.at(envelope.as_ptr())];
        if !self.handled.contains(&message) {
            self.handled.push(message);
        }
        self.batch_of = None;
        self.give_all();
    }

    /// A behaviour.
    fn handle(&mut self, at: usize) {
        let message = self.letters[at];
        assert!(!self.mailboxes[self.of(message)].is_away || self.is_split, "two cores run one mailbox");
        self.at_work = Some(message);
        self.interrupt();
        if !self.is_split {
            self.handled.push(message);
            if self.sent < self.script.to.len() {
                self.send();
            }
        }
        self.interrupt();
        self.at_work = None;
    }

    /// As `send::write_at_once` and what follows it, with preemption disabled.
    fn send(&mut self) {
        let message = self.sent;
        self.sent += 1;
        let mailbox = self.of(message);
        if self.mailboxes[mailbox].in_lane {
            let end = self.at(self.scene.batch.end());
            if end < self.script.places {
                self.letters[end] = message;
                let end_cell = self.scene.batch.end_cell();
                return end_cell.store(self.place(end + 1).as_ptr(), Ordering::Relaxed);
            }
            self.leave(mailbox);
        }
        if self.mailboxes[mailbox].is_away {
            // By the queue, behind what the other core has handled.
            return self.handled.push(message);
        }
        if self.batch_of != Some(mailbox) {
            self.wake(mailbox);
        }
        self.mailboxes[mailbox].own.push_back(message);
    }

    /// As `delivery::deliver`.
    fn deliver(&mut self) {
        let mut position = self.scene.batch.position();
        self.interrupt();
        while !self.scene.batch.is_done_at(position) {
            self.handle(self.at(position));
            self.interrupt();
            let next = self.place(self.at(position) + 1);
            self.scene.batch.go_to(next);
            position = next.as_ptr();
            self.interrupt();
        }
    }

    /// As `Worker::refill`.
    fn refill(&mut self) -> bool {
        let [mailbox] = *self.list.make_contiguous() else { return false };
        let own = core::mem::take(&mut self.mailboxes[mailbox].own);
        self.mailboxes[mailbox].in_lane = true;
        self.list.clear();
        for (at, &message) in own.iter().enumerate() {
            self.letters[at] = message;
        }
        self.scene.batch.set(self.place(0), self.place(own.len()));
        true
    }

    /// As `Worker::run_lane`, and `Worker::run_batches` with what is left then.
    fn work(&mut self) {
        loop {
            self.is_armed = true;
            self.deliver();
            // From here on preemption is disabled.
            self.is_armed = false;
            if self.is_lane && self.current().is_none() && self.refill() {
                self.interrupt();
                continue;
            }
            self.settle();
            if self.scene.batch.was_changed() && !self.scene.batch.mend() {
                return;
            }
            break;
        }
        while let Some(at) = self.current() {
            self.handled.push(self.letters[at]);
            self.scene.batch.go_to(self.place(at + 1));
        }
        if let Some(mailbox) = self.batch_of.take()
            && !mutant("lane-kept-unlinked")
        {
            self.give(mailbox);
        }
        for mailbox in core::mem::take(&mut self.list) {
            self.give(mailbox);
        }
    }
}

fn explore(script: &'static Script, reasons: &'static [u64]) {
    let scene = Arc::new(Scene { batch: Extent::new(), interrupt: AtomicU64::new(NOTHING) });
    let worker = task(move |scene: &Scene| {
        let mut core = Core {
            scene,
            script,
            letters: vec![0; script.places + 1],
            is_lane: true,
            batch_of: None,
            mailboxes: core::array::from_fn(|_| Mailbox { in_lane: true, ..Mailbox::default() }),
            list: VecDeque::new(),
            is_armed: false,
            is_split: false,
            sent: script.first,
            handled: Vec::new(),
            at_work: None,
        };
        for message in 0..script.first {
            core.letters[message] = message;
        }
        scene.batch.set(core.place(0), core.place(script.first));
        core.work();
        for mailbox in 0..MAILBOXES {
            let of_mailbox = |&message: &usize| script.to[message] == mailbox;
            let handled: Vec<usize> = core.handled.iter().copied().filter(of_mailbox).collect();
            let all: Vec<usize> = (0..core.sent).filter(of_mailbox).collect();
            assert_eq!(handled, all, "lost, out of order, or handled twice");
        }
    });
    let interrupts = task(move |scene: &Scene| {
        for &reason in reasons {
            scene.interrupt.store(reason, Ordering::Relaxed);
        }
    });
    run(&scene, [worker, interrupts]);
}
