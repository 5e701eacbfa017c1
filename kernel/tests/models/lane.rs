//! A lane that is interrupted while it is delivered: the turn is to end, what waits is to leave, its behaviour is suspended, or somebody urgent on that core
//! sends; and behaviours send to mailboxes in the lane, when there is room where it lies, when it goes on elsewhere, and when there is none. Every message is handled once,
//! those of each mailbox in order, and no mailbox is given away while a behaviour of its own runs.
//!
//! How far the lane has come is the kernel's; the rest is that of `actor/run/worker/lane`, `actor/mail/hand/lane.rs` and
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
            step("lane-done-taken-for-batch"),
            step("lane-kept-unlinked"),
            step("lane-forgets-elsewhere"),
        ],
    },
    Model {
        name: "lane::cut",
        preemptions: Some(3),
        body: || explore(&SEVERAL, &[CUT, GO]),
        mutants: &[
            step("lane-keeps-end"),
            step("lane-leaves-early"),
            step("lane-own-listed"),
            step("lane-cut-gates-stay"),
            step("lane-cut-not-mended"),
            step("lane-gates-stay"),
        ],
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
        mutants: &[step("extent-end-by-equality")],
    },
    Model {
        name: "lane::sent_to_while_it_is_sorted",
        preemptions: Some(3),
        body: || explore(&SEVERAL, &[CUT, SEND, SEND]),
        mutants: &[step("lane-rests-unsorted"), step("lane-opens-early")],
    },
    Model {
        name: "lane::sent_to_while_it_is_given_away",
        preemptions: Some(3),
        body: || explore(&SEVERAL, &[SPLIT, SEND, SEND]),
        mutants: &[step("lane-rests-unsorted"), step("lane-opens-early")],
    },
    Model {
        name: "lane::let_go_half_way",
        preemptions: Some(3),
        body: || explore(&SEVERAL, &[HALF, SEND]),
        mutants: &[step("lane-left-unsorted"), step("lane-rests-unsorted")],
    },
    Model {
        name: "lane::full",
        preemptions: Some(3),
        body: || explore(&CROWD, &[SEND, CUT]),
        mutants: &[step("lane-elsewhere-unbounded")],
    },
    Model {
        name: "lane::full_for_itself",
        preemptions: Some(3),
        body: || explore(&ITSELF, &[GO, SEND]),
        mutants: &[step("lane-leaves-itself")],
    },
    Model {
        name: "lane::full_at_a_cut",
        preemptions: Some(3),
        body: || explore(&LAST, &[CUT, SEND]),
        mutants: &[step("lane-leaves-at-cut")],
    },
    Model {
        name: "lane::first_while_it_is_sorted",
        preemptions: Some(3),
        body: || explore(&NONE_FOR_ONE, &[CUT, SEND]),
        mutants: &[step("lane-queue-unlisted")],
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
/// Somebody urgent sends the next message.
const SEND: u64 = 4;
/// What waits is to leave, but something urgent comes before all of it was sorted.
const HALF: u64 = 5;

const MAILBOXES: usize = 2;

/// What is sent.
struct Script {
    /// The mailbox of each message.
    to: &'static [usize],
    /// So many are in the lane when it begins; each that is handled sends so many, until all are sent.
    first: usize,
    each: usize,
    /// There is room for so many where the lane lies, and elsewhere.
    places: usize,
    /// So many may wait in it.
    most: usize,
}

/// A lone message goes to the other mailbox: where there is room, where the lane goes on elsewhere, and to its own.
const CHAIN: Script = Script { to: &[0, 1, 0, 1, 1], first: 1, each: 1, places: 2, most: 2 };

/// Three wait.
const SEVERAL: Script = Script { to: &[0, 1, 1, 0, 0, 1, 0, 1], first: 3, each: 1, places: 4, most: 4 };

/// They become more, until there is no room.
const CROWD: Script = Script { to: &[0, 1, 1, 0, 0, 1], first: 1, each: 2, places: 2, most: 2 };

/// A lone message leads to one for the same mailbox, and there is room for no other.
const ITSELF: Script = Script { to: &[0, 0, 1], first: 1, each: 1, places: 1, most: 1 };

/// Somebody urgent sends to the mailbox whose message is the last in a full lane.
const LAST: Script = Script { to: &[0, 1, 1], first: 2, each: 0, places: 2, most: 2 };

/// Somebody urgent sends to a mailbox that has none in the lane.
const NONE_FOR_ONE: Script = Script { to: &[0, 0, 1], first: 2, each: 0, places: 2, most: 2 };

struct Scene {
    batch: Extent,
    interrupt: AtomicU64,
}

/// Where what is sent to a mailbox goes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Gate {
    /// Into the lane.
    #[default]
    Lane,
    /// Behind what it has in hand.
    Own,
    /// Into its queue.
    Closed,
}

#[derive(Default)]
struct Mailbox {
    gate: Gate,
    is_of_lane: bool,
    /// What it has in hand elsewhere.
    own: VecDeque<usize>,
    /// What has come into its queue.
    queue: VecDeque<usize>,
    /// It was given away, with all that it has.
    is_away: bool,
}

struct Core<'a> {
    scene: &'a Scene,
    script: &'static Script,
    /// The lane's segments, one behind the other: which message is at each place.
    letters: Vec<usize>,
    /// Where the segment begins that it lies in.
    begin: usize,
    /// It goes on in the other one: where it ends there.
    elsewhere: Option<usize>,
    is_lane: bool,
    /// It was closed, and so much of it is unsorted.
    unsorted: Option<VecDeque<usize>>,
    /// Whose batch it is otherwise; what its mailbox has in hand follows it.
    batch_of: Option<usize>,
    mailboxes: [Mailbox; MAILBOXES],
    /// In the order in which they wait for their turn.
    list: VecDeque<usize>,
    is_armed: bool,
    is_split: bool,
    /// What is in hand is being put down, or owed.
    gives: bool,
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

    /// Where the other segment begins.
    fn other(&self) -> usize {
        self.script.places + 1 - self.begin
    }

    /// Where it ends where it lies, were it not cut.
    fn end(&self) -> usize {
        self.at(self.scene.batch.end_of_whole())
    }

    fn has_more(&self) -> bool {
        self.elsewhere.is_some()
            || self.scene.batch.current_of_whole().is_some_and(|at| self.at(at.as_ptr()) + 1 < self.end())
    }

    fn interrupt(&mut self) {
        match self.scene.interrupt.swap(NOTHING, Ordering::Relaxed) {
            SEND if self.sent < self.script.to.len() => self.send(),
            _ if self.is_split => {}
            // As `Worker::end_turn`.
            CUT if self.is_armed => self.cut(),
            GO if !self.gives => self.give_all(),
            HALF if !self.gives => {
                self.close();
                self.sort_one();
            }
            SPLIT if self.is_armed => self.detach(),
            _ => {}
        }
    }

    fn cut(&mut self) {
        let cut = self
            .scene
            .batch
            .cut(|envelope| envelope.map_addr(|address| address.saturating_add(size_of::<usize>())));
        if cut && self.is_lane && mutant("lane-cut-gates-stay") {
            // What is appended goes where the cut end is.
            self.scene.batch.mend();
            if let Some(at) = self.current() {
                self.scene.batch.end_at(self.place(at + 1));
            }
        }
    }

    /// As `Worker::settle`.
    fn close(&mut self) {
        if !self.is_lane {
            return;
        }
        if !mutant("lane-cut-not-mended") {
            self.scene.batch.mend();
        }
        for mailbox in &mut self.mailboxes {
            if mailbox.gate == Gate::Lane && !mutant("lane-gates-stay") {
                mailbox.gate = if mutant("lane-rests-unsorted") { Gate::Own } else { Gate::Closed };
            }
        }
        self.is_lane = false;
        let mut unsorted = VecDeque::new();
        let elsewhere = self.elsewhere.take().filter(|_| !mutant("lane-forgets-elsewhere"));
        let elsewhere: Vec<usize> = elsewhere.map_or(vec![], |end| self.letters[self.other()..end].to_vec());
        if let Some(at) = self.current() {
            unsorted.extend(&self.letters[at + 1..self.end()]);
            let own = self.of(self.letters[at]);
            assert!(self.mailboxes[own].is_of_lane, "a mailbox has left the lane, and has mail there");
            self.batch_of = Some(own);
            self.scene.batch.end_at(self.place(at + 1));
        } else if mutant("lane-done-taken-for-batch") {
            let last = self.at(self.scene.batch.position()).saturating_sub(1);
            self.batch_of = Some(self.of(self.letters[last]));
            self.scene.batch.go_to(self.place(last));
        }
        unsorted.extend(elsewhere);
        self.unsorted = Some(unsorted);
        if mutant("lane-opens-early") {
            self.open_again();
        }
    }

    /// As `Worker::sort_one`.
    fn sort_one(&mut self) -> bool {
        let Some(unsorted) = &mut self.unsorted else { return false };
        let Some(message) = unsorted.pop_front() else {
            self.unsorted = None;
            self.open_again();
            return true;
        };
        let mailbox = self.of(message);
        if self.batch_of != Some(mailbox) || mutant("lane-own-listed") {
            self.wake(mailbox);
        }
        self.mailboxes[mailbox].own.push_back(message);
        true
    }

    fn open_again(&mut self) {
        for mailbox in 0..MAILBOXES {
            let it = &mut self.mailboxes[mailbox];
            if !core::mem::take(&mut it.is_of_lane) {
                continue;
            }
            it.gate = Gate::Own;
            let waits = !it.queue.is_empty();
            if waits && self.batch_of != Some(mailbox) && !mutant("lane-queue-unlisted") {
                self.wake(mailbox);
            }
        }
    }

    /// In steps, in between which preemption is enabled.
    fn sort_all(&mut self) {
        self.gives = true;
        while self.sort_one() {
            self.interrupt();
        }
        self.gives = false;
    }

    /// As `Hand::wake`.
    fn wake(&mut self, mailbox: usize) {
        if !self.list.contains(&mailbox) {
            self.list.push_back(mailbox);
        }
    }

    /// As `worker::lane::leave_lane`.
    fn leave(&mut self, mailbox: usize) {
        let batch = &self.scene.batch;
        let current = if mutant("lane-leaves-at-cut") { batch.current() } else { batch.current_of_whole() };
        let is_current = current.is_some_and(|at| self.of(self.letters[self.at(at.as_ptr())]) == mailbox);
        let has_more = self.has_more() && !mutant("lane-leaves-early");
        if (!is_current || mutant("lane-leaves-itself")) && !has_more {
            self.mailboxes[mailbox].gate = Gate::Own;
            self.mailboxes[mailbox].is_of_lane = false;
        } else {
            self.close();
        }
    }

    /// What is listed goes to another core, which handles all of it, and so does what rests.
    fn give_all(&mut self) {
        self.close();
        self.sort_all();
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
        let Mailbox { own, queue, is_away, .. } = &mut self.mailboxes[mailbox];
        *is_away = true;
        self.handled.extend(own.drain(..).chain(queue.drain(..)));
    }

    /// As `detach::detach`, and what follows it in the worker's turns.
    fn detach(&mut self) {
        if !mutant("lane-split-unsettled") {
            self.close();
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
            for _ in 0..self.script.each {
                if self.sent < self.script.to.len() {
                    self.send();
                }
            }
        }
        self.interrupt();
        self.at_work = None;
    }

    /// Room in the lane for one more.
    fn reserve(&mut self) -> Option<usize> {
        if let Some(end) = self.elsewhere {
            return self.reserve_elsewhere(end);
        }
        let end = self.end();
        if end - self.begin < self.script.places {
            let end_cell = if self.scene.batch.was_changed() {
                self.scene.batch.whole_end_cell()
            } else {
                self.scene.batch.end_cell()
            };
            end_cell.store(self.place(end + 1).as_ptr(), Ordering::Relaxed);
            return Some(end);
        }
        self.reserve_elsewhere(self.other())
    }

    fn reserve_elsewhere(&mut self, end: usize) -> Option<usize> {
        let waiting = self.end() - self.at(self.scene.batch.position()) + (end - self.other());
        let most = if mutant("lane-elsewhere-unbounded") { usize::MAX } else { self.script.most };
        if self.scene.batch.was_changed() || waiting >= most {
            return None;
        }
        assert!(end - self.other() < self.script.places, "the lane has more than there is room for");
        self.elsewhere = Some(end + 1);
        Some(end)
    }

    /// As `send::write_at_once` and what follows it, with preemption disabled.
    fn send(&mut self) {
        let message = self.sent;
        self.sent += 1;
        let mailbox = self.of(message);
        if self.mailboxes[mailbox].is_away {
            // By the queue, behind what the other core has handled.
            return self.handled.push(message);
        }
        if !self.mailboxes[mailbox].queue.is_empty() {
            return self.mailboxes[mailbox].queue.push_back(message);
        }
        if self.mailboxes[mailbox].gate == Gate::Lane {
            if let Some(place) = self.reserve() {
                self.letters[place] = message;
                return;
            }
            self.leave(mailbox);
        }
        if self.mailboxes[mailbox].gate == Gate::Closed {
            return self.mailboxes[mailbox].queue.push_back(message);
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

    /// As `Worker::turn_over`, and `Worker::refill` where a single one is listed.
    fn goes_on(&mut self) -> bool {
        if let Some(end) = self.elsewhere.take() {
            self.begin = self.other();
            self.scene.batch.set(self.place(self.begin), self.place(end));
            return true;
        }
        let [mailbox] = *self.list.make_contiguous() else { return false };
        let it = &mut self.mailboxes[mailbox];
        if !it.queue.is_empty() || it.own.len() > self.script.places {
            return false;
        }
        (it.gate, it.is_of_lane) = (Gate::Lane, true);
        let own = core::mem::take(&mut it.own);
        self.list.clear();
        for (at, &message) in own.iter().enumerate() {
            self.letters[self.begin + at] = message;
        }
        self.scene.batch.set(self.place(self.begin), self.place(self.begin + own.len()));
        true
    }

    /// As `Worker::run_lane`, and `Worker::run_batches` with what is left then.
    fn work(&mut self) {
        loop {
            self.is_armed = true;
            self.deliver();
            // From here on preemption is disabled.
            self.is_armed = false;
            let is_whole = !self.scene.batch.was_changed();
            if is_whole && self.is_lane && self.current().is_none() && self.goes_on() {
                self.interrupt();
                continue;
            }
            if self.scene.batch.is_split() {
                return;
            }
            self.close();
            if !mutant("lane-left-unsorted") {
                self.sort_all();
            }
            break;
        }
        self.scene.batch.mend();
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
            letters: vec![0; 2 * (script.places + 1)],
            begin: 0,
            elsewhere: None,
            is_lane: true,
            unsorted: None,
            batch_of: None,
            mailboxes: core::array::from_fn(|_| Mailbox { is_of_lane: true, ..Mailbox::default() }),
            list: VecDeque::new(),
            is_armed: false,
            is_split: false,
            gives: false,
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
