//! The end of an actor, whatever meets it: its mailbox is stolen, it is killed, it is watched, its storage has a successor.
//!
//! The word, the flag of the mailbox, and the lists of watches are the kernel's; the steps are those of `actor/run/delivery.rs`
//! (`end_slowly`), of `actor/run/worker/gulping.rs`, and of `actor/run/kill.rs`.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::watch::{Asked, Lists, Node, Watched};
use magpie::internals::sync::{Identity, ProcessingFlag, SpinLock, WordCell};
use std::ptr::NonNull;

use crate::harness::{Model, ordering, step};
use crate::nodes::{Nodes, known};
use crate::tool::{Arc, Plain, Task, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "ends::robbed_and_watched",
        preemptions: Some(3),
        body: robbed_and_watched,
        mutants: &[
            ordering("gulp-flag-relaxed"),
            ordering("watch-note-no-fence"),
            ordering("watch-end-no-fence"),
            step("gulp-unasked"),
            step("watch-unasked"),
            step("end-told-early"),
            step("end-unworded"),
        ],
    },
    Model {
        name: "ends::robbed",
        preemptions: Some(3),
        body: robbed,
        mutants: &[
            ordering("gulp-flag-relaxed"),
            ordering("done-relaxed"),
            step("gulp-unasked"),
            step("end-unworded"),
        ],
    },
    Model {
        name: "ends::robbed_and_killed",
        preemptions: Some(3),
        body: robbed_and_killed,
        mutants: &[
            ordering("gulp-flag-relaxed"),
            step("end-unworded"),
            step("end-told-early"),
            step("end-untold"),
        ],
    },
    Model {
        name: "ends::succeeded",
        preemptions: Some(3),
        body: succeeded,
        mutants: &[
            ordering("word-set-relaxed"),
            ordering("word-claim-relaxed"),
            step("word-claim-in-two"),
            step("end-free-early"),
            step("end-looked-late"),
        ],
    },
];

/// The words of the cell: the actor, its end, its storage without it, claimed, its successor.
const FIRST: u64 = 1;
const ENDING: u64 = 2;
const VACANT: u64 = 3;
const STARTING: u64 = 4;
const SECOND: u64 = 5;

/// In the number of what is kept in mind of a kill.
const ASKS: u64 = 1 << 63;

/// A state that was dropped.
const DROPPED: u64 = 99;

/// What waits in the mailbox, in the order in which it is delivered.
const KILL: u64 = 1;
const ENDS: u64 = 2;
const ORDINARY: u64 = 4;

struct Scene {
    word: WordCell,
    /// How many messages the actor has handled, or [`DROPPED`].
    state: Plain,
    mail: SpinLock<Plain>,
    being_processed: ProcessingFlag,
    lists: Lists<1>,
    watched: Watched,
    nodes: Nodes,
    /// Watches that were told.
    told: AtomicU64,
    /// Kills that interrupts look for.
    pending: AtomicU64,
    ended: AtomicU64,
    handled: AtomicU64,
    letters: AtomicU64,
}

fn who() -> Identity {
    Identity::Actor { place: 64, life: FIRST }
}

impl Scene {
    fn new(mail: u64) -> Arc<Self> {
        let number = || AtomicU64::new(0);
        let [told, pending, ended, handled, letters] = [number(), number(), number(), number(), number()];
        Arc::new(Self {
            word: WordCell::new(FIRST),
            state: Plain::new(0),
            mail: SpinLock::new(Plain::new(mail)),
            being_processed: ProcessingFlag::new(),
            lists: Lists::new(),
            watched: Watched::new(),
            nodes: Nodes::default(),
            told,
            pending,
            ended,
            handled,
            letters,
        })
    }

    fn has_not_ended(&self) -> bool {
        matches!(self.word.get(), FIRST | ENDING)
    }

    /// As `tell_of_end`.
    fn tell(&self) {
        if mutant("end-untold") || !self.watched.after_end() {
            return;
        }
        for node in self.lists.take_all(who()) {
            // SAFETY: taken out of its list.
            unsafe { Node::act(node, Asked::Tell(0)) };
        }
    }

    /// As `end_slowly`.
    fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        if mutant("end-told-early") {
            self.tell();
        }
        if mutant("end-free-early") {
            self.word.set(VACANT);
        } else if !mutant("end-unworded") {
            self.word.set(ENDING);
        }
        assert_ne!(self.state.get(), DROPPED, "the state is dropped twice");
        self.state.set(DROPPED);
        if !mutant("end-free-early") && !mutant("end-unworded") {
            self.word.set(VACANT);
        }
        if !mutant("end-told-early") {
            self.tell();
        }
    }

    /// As `deliver_checking`.
    fn deliver(&self, message: u64) {
        if self.word.get() != FIRST {
            self.letters.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if message == KILL {
            return self.end();
        }
        let before = self.state.get();
        assert_ne!(before, DROPPED, "a behaviour has what was dropped");
        self.state.set(before + 1);
        self.handled.fetch_add(1, Ordering::Relaxed);
        if message == ENDS {
            self.end();
        }
    }

    /// A worker takes what is in the mailbox, if it may, and delivers it.
    fn gulp(&self) {
        // A try, for two that wait would keep loom busy for ever.
        let Some(mail) = self.mail.try_lock() else { return };
        let all = mail.get();
        if all == 0 || !self.being_processed.is_free() {
            return;
        }
        self.being_processed.take();
        mail.set(0);
        drop(mail);
        for message in [KILL, ENDS, ORDINARY] {
            if all & message != 0 {
                self.deliver(message);
            }
        }
        self.being_processed.put_down();
    }

    fn watch(&self, number: u64) {
        let node = self.nodes.make(who(), number, act, self, 0);
        // SAFETY: made here; what comes back is out of its list.
        unsafe {
            if let Some(late) = self.lists.watch(who(), node, &self.watched, || self.has_not_ended()) {
                let asked = if number & ASKS != 0 { Asked::Free } else { Asked::Tell(0) };
                Node::act(late, asked);
            }
        }
    }

    /// As `kill`.
    fn kill(&self) {
        if self.has_not_ended() {
            self.pending.fetch_add(1, Ordering::Relaxed);
            self.watch(ASKS);
            if let Some(mail) = self.mail.try_lock() {
                mail.set(mail.get() | KILL);
            }
        }
    }

    /// When all is over, what is left is delivered, and it ends if it has not.
    fn judge(&self, messages: u64) {
        if let Some(mail) = self.mail.try_lock() {
            mail.set(mail.get() | ENDS);
        }
        self.gulp();
        assert_eq!(self.ended.load(Ordering::Relaxed), 1, "it has ended so often");
        assert_eq!(self.lists.take_all(who()).count(), 0, "a watch waits for an end that has been");
        assert_eq!(self.nodes.left(), 0, "a watch was lost");
        assert_eq!(self.pending.load(Ordering::Relaxed), 0, "interrupts look for a kill for ever");
        let (handled, letters) = (self.handled.load(Ordering::Relaxed), self.letters.load(Ordering::Relaxed));
        assert!(handled + letters >= messages, "a message was lost: {handled} handled, {letters} dropped");
    }
}

/// What a watch does, and what is kept in mind of a kill.
unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: made by a scene, which outlives its threads.
    let (scene, number) = unsafe { (known::<Scene>(node).0, node.as_ref().number()) };
    if asked == Asked::IsPointless {
        return number & ASKS != 0 && !scene.has_not_ended();
    }
    scene.nodes.give_up(node);
    if number & ASKS != 0 {
        assert_ne!(scene.pending.fetch_sub(1, Ordering::Relaxed), 0, "fewer kills than none");
    } else {
        scene.told.fetch_add(1, Ordering::Relaxed);
    }
    true
}

fn worker() -> Task<Scene, ()> {
    task(Scene::gulp)
}

/// Both the worker that was robbed and the thief look at the mailbox, while somebody sends what ends the actor.
fn robbed() {
    let scene = Scene::new(ORDINARY);
    let sends = task(|scene: &Scene| {
        if let Some(mail) = scene.mail.try_lock() {
            mail.set(mail.get() | ENDS);
        }
    });
    run(&scene, [worker(), worker(), sends]);
    scene.judge(1);
}

/// The same while it ends, and somebody begins to watch it.
fn robbed_and_watched() {
    let scene = Scene::new(ENDS);
    let watches = task(|scene: &Scene| {
        scene.watch(1);
        if let Some(mail) = scene.mail.try_lock() {
            mail.set(mail.get() | ORDINARY);
        }
    });
    run(&scene, [worker(), worker(), watches]);
    scene.judge(1);
    assert_eq!(scene.told.load(Ordering::Relaxed), 1, "a watch has told so often");
}

/// The same while it is killed.
fn robbed_and_killed() {
    let scene = Scene::new(ENDS);
    run(&scene, [worker(), worker(), task(Scene::kill)]);
    scene.judge(1);
}

/// Its storage is claimed for a successor as soon as it is free: that has it for itself.
fn succeeded() {
    let scene = Scene::new(ENDS);
    let successor = || {
        task(|scene: &Scene| {
            let is_free =
                mutant("end-looked-late") && scene.word.peek() != FIRST || scene.word.peek() == VACANT;
            if !is_free || !(mutant("end-looked-late") || scene.word.claim(VACANT, STARTING)) {
                return;
            }
            assert_eq!(scene.state.get(), DROPPED, "it is not free yet");
            scene.state.set(0);
            scene.word.set(SECOND);
        })
    };
    run(&scene, [worker(), successor(), successor()]);
    scene.judge(1);
}
