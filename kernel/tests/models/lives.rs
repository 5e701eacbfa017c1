//! Actors that end, are held aside, and have successors; and the end of all work.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::detachment::{self, Found};
use magpie::internals::sync::{Looked, Quiescence, SpinLock, WordCell};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "word::two_successors",
        preemptions: None,
        body: two_successors,
        mutants: &[ordering("word-set-relaxed"), ordering("word-claim-relaxed"), step("word-claim-in-two")],
    },
    Model {
        name: "word::old_address",
        preemptions: Some(3),
        body: old_address,
        mutants: &[ordering("word-get-relaxed")],
    },
    Model {
        name: "detachment::mail_and_return",
        preemptions: Some(3),
        body: mail_and_return,
        mutants: &[ordering("word-set-relaxed"), ordering("word-get-relaxed"), step("reattach-unasked")],
    },
    Model {
        name: "detachment::look_again",
        preemptions: Some(3),
        body: look_again,
        mutants: &[step("detached-unasked")],
    },
    Model {
        name: "quiescence::work_that_is_taken",
        preemptions: None,
        body: work_that_is_taken,
        mutants: &[step("epoch-late")],
    },
    Model {
        name: "quiescence::one_who_enters",
        preemptions: None,
        body: one_who_enters,
        mutants: &[step("entry-unnoted"), step("entry-noted-early")],
    },
    Model {
        name: "quiescence::two_who_look",
        preemptions: Some(3),
        body: two_who_look,
        mutants: &[step("verdict-unasked")],
    },
];

/// An actor's cell: its word, and its state.
struct Cell {
    word: WordCell,
    state: Plain,
}

const FINISHED: u64 = 4;
const STARTING: u64 = 5;

/// The state of a finished actor is taken by one, who sees it as its last behaviour left it.
fn two_successors() {
    let cell = Arc::new(Cell { word: WordCell::new(1), state: Plain::new(0) });
    let ends = task(|cell: &Cell| {
        cell.state.set(7);
        cell.word.set(FINISHED);
        0
    });
    let takes = || {
        task(|cell: &Cell| {
            if cell.word.peek() != FINISHED || !cell.word.claim(FINISHED, STARTING) {
                return 0;
            }
            assert_eq!(cell.state.get(), 7, "the state is not as it was left");
            cell.state.set(8);
            1
        })
    };
    let [_, first, second] = run(&cell, [ends, takes(), takes()]);
    assert!(first + second <= 1, "two have taken one state");
}

/// The word of an actor's second generation; the first is 1.
const SECOND: u64 = 2;

/// A message for the first actor in a cell never reaches the second one; a message for the second sees its state.
fn old_address() {
    let cell = Arc::new(Cell { word: WordCell::new(1), state: Plain::new(1) });
    let ends_and_begets = task(|cell: &Cell| {
        // The worker ends the actor: nobody else touches the state while the word says nothing is there.
        cell.word.set(0);
        cell.state.set(SECOND);
        cell.word.set(SECOND);
        SECOND
    });
    // Another worker, to whose mailbox the second actor belongs, meets a message for either.
    let delivers = task(|cell: &Cell| match cell.word.get() {
        SECOND => cell.state.get(),
        _ => SECOND,
    });
    let [_, seen] = run(&cell, [ends_and_begets, delivers]);
    assert_eq!(seen, SECOND, "a message has reached another generation's state");
}

const ATTACHED: u64 = 1;
const DETACHED: u64 = 2;

/// An actor held aside by the activation of a suspended behaviour. Its state is the number of the message that comes
/// next; its side queue holds the first of those that wait, and how many.
struct Actor {
    cell: Cell,
    side: SpinLock<(Plain, Plain)>,
}

impl Actor {
    /// Message 0 is in hand.
    fn suspended() -> Arc<Self> {
        let cell = Cell { word: WordCell::new(DETACHED), state: Plain::new(0) };
        Arc::new(Self { cell, side: SpinLock::new((Plain::new(0), Plain::new(0))) })
    }

    fn handle(&self, message: u64) {
        assert_eq!(self.cell.state.get(), message, "a message has overtaken another");
        self.cell.state.set(message + 1);
    }

    /// As the worker's delivery loop: at once if it is attached, else to the side queue.
    fn deliver(&self, message: u64) {
        if self.cell.word.get() == ATTACHED {
            return self.handle(message);
        }
        let side = self.side.lock();
        match detachment::look(
            &self.cell.word,
            |word| word == ATTACHED,
            |word| word == DETACHED || word == ATTACHED,
        ) {
            Found::Detached => {
                if side.1.get() == 0 {
                    side.0.set(message);
                }
                side.1.set(side.1.get() + 1);
            }
            Found::Attached => {
                drop(side);
                self.handle(message);
            }
            Found::Other => unreachable!("it does not end"),
        }
    }

    /// As the activation, whose behaviour has ended: the side queue, then back. Whether it came back.
    fn come_back(&self) -> bool {
        self.handle(0);
        for _ in 0..3 {
            // A try, for two that wait would keep loom busy for ever.
            let Some(side) = self.side.try_lock() else { continue };
            let waiting = side.1.get();
            if detachment::reattach(&self.cell.word, ATTACHED, waiting == 0) {
                return true;
            }
            let first = side.0.get();
            side.1.set(0);
            drop(side);
            (first..first + waiting).for_each(|message| self.handle(message));
        }
        false
    }

    /// What has been handled and what waits, together.
    fn accounted(&self) -> u64 {
        self.cell.state.get() + self.side.lock().1.get()
    }
}

/// Messages 1 and 2 meet the actor while it comes back: each is handled once, in order, by one at a time.
fn mail_and_return() {
    let actor = Actor::suspended();
    let worker = task(|actor: &Actor| {
        actor.deliver(1);
        actor.deliver(2);
        true
    });
    let activation = task(Actor::come_back);
    run(&actor, [worker, activation]);
    assert_eq!(actor.accounted(), 3, "a message was lost");
}

/// Once the actor has come back, nothing is left in its side queue.
fn look_again() {
    let actor = Actor::suspended();
    let worker = task(|actor: &Actor| {
        actor.deliver(1);
        true
    });
    let activation = task(Actor::come_back);
    let [_, is_back] = run(&actor, [worker, activation]);
    let waiting = actor.side.lock().1.get();
    assert!(!is_back || waiting == 0, "a message waits for ever in the side queue");
}

/// Two cores that have announced that they are idle, and a queue.
struct Cores {
    started: AtomicU64,
    idle: AtomicU64,
    queue: AtomicU64,
    quiescence: Quiescence,
}

impl Cores {
    fn idle(work: u64) -> Arc<Self> {
        Self::started(3, work)
    }

    fn started(cores: u64, work: u64) -> Arc<Self> {
        Arc::new(Self {
            started: AtomicU64::new(cores),
            idle: AtomicU64::new(cores),
            queue: AtomicU64::new(work),
            quiescence: Quiescence::new(),
        })
    }

    fn leave(&self, core: u64) {
        self.idle.fetch_and(!core, Ordering::AcqRel);
        self.quiescence.note_activity();
    }

    fn look(&self, core: u64) -> bool {
        let everyone = || {
            let started = self.started.load(Ordering::Relaxed);
            self.idle.load(Ordering::Acquire) & started == started
        };
        let work = || self.queue.load(Ordering::Acquire) != 0;
        self.quiescence.look(everyone, work, || self.leave(core)) == Looked::Left(true)
    }
}

/// loom is blind to the orderings here, for it carries out exchanges in the order in which it runs them; the litmus test
/// `quiescence` is about those.
///
/// One core was woken for the work in the queue and takes it; the other must not find that nothing is left.
fn work_that_is_taken() {
    let cores = Cores::idle(1);
    let takes = task(|cores: &Cores| {
        cores.leave(2);
        // As from an inbox: nothing in it orders the taking after the leaving.
        cores.queue.swap(0, Ordering::Relaxed) == 0
    });
    let looks = task(|cores: &Cores| cores.look(1));
    let [_, over] = run(&cores, [takes, looks]);
    assert!(!over, "the work was in a core's hands");
}

/// The boot core comes last, for work in its queue; the one that is there already must not find that nothing is left.
fn one_who_enters() {
    let cores = Cores::started(1, 1);
    let enters = task(|cores: &Cores| {
        cores.quiescence.enter(|| {
            cores.started.fetch_or(2, Ordering::AcqRel);
        });
        cores.queue.swap(0, Ordering::Relaxed) == 0
    });
    let looks = task(|cores: &Cores| cores.look(1));
    let [_, over] = run(&cores, [enters, looks]);
    assert!(!over, "the work was in the hands of the core that has just come");
}

/// Of two who find at the same time that nothing is left, one says so at most.
fn two_who_look() {
    let cores = Cores::idle(0);
    let [first, second] =
        run(&cores, [task(|cores: &Cores| cores.look(1)), task(|cores: &Cores| cores.look(2))]);
    assert!(!(first && second), "both have said so");
}
