//! Killing an actor: what is kept in mind of a kill is given up once, interrupts look for it no longer than needed, and no successor in the
//! same cell is ended for it.
//!
//! The word of the cell, the lists and the look whether somebody is watched are the kernel's; the steps are those of
//! `actor/run/kill.rs` and of the three who end an actor: a worker, a crash, an executor that stops.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::watch::{Asked, Lists, Node, Watched};
use magpie::internals::sync::{Identity, WordCell};
use std::ptr::NonNull;

use crate::harness::{Model, ordering, step};
use crate::nodes::{Nodes, known};
use crate::tool::{Arc, Task, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "kill::own_end",
        preemptions: Some(3),
        body: own_end,
        mutants: &[
            ordering("watch-note-no-fence"),
            ordering("watch-end-no-fence"),
            step("watch-unasked"),
            step("watch-asked-early"),
            step("watch-noted-early"),
            step("watch-late-told-anyway"),
            step("kill-counted-late"),
            step("kill-told-early"),
            step("kill-by-cell"),
            step("asked-by-cell"),
        ],
    },
    Model {
        name: "kill::two_kills",
        preemptions: Some(2),
        body: two_kills,
        mutants: &[step("kill-by-cell"), step("watch-unasked")],
    },
    Model {
        name: "kill::endless",
        preemptions: Some(3),
        body: endless,
        mutants: &[step("kill-uncounted"), step("kill-not-kept"), step("kill-told-early")],
    },
    Model {
        name: "kill::garbage",
        preemptions: Some(3),
        body: garbage,
        mutants: &[step("kill-pointless-early")],
    },
    Model {
        name: "kill::executor_stops",
        preemptions: Some(3),
        body: executor_stops,
        mutants: &[step("stop-claims-as-ending"), ordering("watch-note-no-fence")],
    },
];

/// The words of the cell: the actor, its end, nobody, its successor.
const FIRST: u64 = 1;
const ENDING: u64 = 2;
const FREE: u64 = 3;
const SECOND: u64 = 4;
/// Claimed.
const STARTING: u64 = 5;

/// In the number of what is kept in mind of a kill.
const ASKS: u64 = 1 << 63;

struct Scene {
    word: WordCell,
    lists: Lists<1>,
    watched: Watched,
    nodes: Nodes,
    numbers: AtomicU64,
    /// Kills that interrupts look for.
    pending: AtomicU64,
    /// Messages that end the first actor.
    mail: AtomicU64,
    /// How often an actor was ended from outside.
    ended: AtomicU64,
}

fn who(life: u64) -> Identity {
    Identity::Actor { place: 64, life }
}

impl Scene {
    fn new() -> Arc<Self> {
        let numbers = || AtomicU64::new(0);
        let word = WordCell::new(FIRST);
        let (lists, watched, nodes) = (Lists::new(), Watched::new(), Nodes::default());
        let [pending, mail, ended] = [numbers(), numbers(), numbers()];
        Arc::new(Self { word, lists, watched, nodes, numbers: numbers(), pending, mail, ended })
    }

    fn has_not_ended(&self) -> bool {
        matches!(self.word.get(), FIRST | ENDING)
    }

    /// As `asked_to_end`.
    fn is_asked(&self, life: u64) -> bool {
        let life = if mutant("asked-by-cell") { FIRST } else { life };
        self.lists.find(who(life), |node| (node.number() & ASKS != 0).then_some(())).is_some()
    }

    fn keep(&self) {
        // Relaxed: it counts.
        let number = ASKS | self.numbers.fetch_add(1, Ordering::Relaxed);
        let node = self.nodes.make(who(FIRST), number, act, self, 0);
        // SAFETY: made here; what comes back is out of its list.
        unsafe {
            if let Some(late) = self.lists.watch(who(FIRST), node, &self.watched, || self.has_not_ended()) {
                Node::act(late, Asked::Free);
            }
        }
    }

    /// Keeps in mind what is none of the first actor's, and never pointless.
    fn watch_other(&self, number: u64) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        let node = self.nodes.make(who(SECOND), number, act, self, 1);
        // SAFETY: made here.
        unsafe { self.lists.insert(who(SECOND), node) };
    }

    /// As `kill`.
    fn kill(&self) {
        if !self.has_not_ended() || self.is_asked(FIRST) {
            return;
        }
        // Relaxed, here and below, as in `sched/run/kill.rs`.
        let count = || {
            self.pending.fetch_add(1, Ordering::Relaxed);
        };
        let (is_late, is_left_out) = (mutant("kill-counted-late"), mutant("kill-uncounted"));
        if !is_late && !is_left_out {
            count();
        }
        if !mutant("kill-not-kept") {
            self.keep();
        }
        if is_late {
            count();
        }
        self.mail.fetch_add(1, Ordering::AcqRel);
    }

    fn tell_of_end(&self) {
        if self.watched.after_end() {
            for node in self.lists.take_all(who(FIRST)) {
                // SAFETY: taken out of its list.
                unsafe { Node::act(node, Asked::Tell(0)) };
            }
        }
    }

    /// As `end_actor` and `end_crashed`.
    fn end(&self) {
        self.word.set(ENDING);
        if mutant("kill-told-early") {
            self.tell_of_end();
            self.word.set(FREE);
        } else {
            self.word.set(FREE);
            self.tell_of_end();
        }
    }

    /// A worker delivers the messages that end the actor.
    fn deliver(&self) {
        for _ in 0..self.mail.swap(0, Ordering::AcqRel) {
            let word = self.word.get();
            if word == FIRST || (word == SECOND && mutant("kill-by-cell")) {
                self.ended.fetch_add(1, Ordering::Relaxed);
                self.end();
            }
        }
    }

    /// An interrupt finds a behaviour of this actor at work that has had its time: as `Piece::is_to_end`.
    fn interrupt(&self, life: u64) -> bool {
        self.pending.load(Ordering::Relaxed) != 0 && self.is_asked(life)
    }

    /// When all is over.
    fn judge(&self) {
        assert_eq!(self.lists.take_all(who(FIRST)).count(), 0, "what was kept in mind outlives the actor");
        assert_eq!(self.nodes.left(), 0, "what was kept in mind was lost");
        assert_eq!(self.pending.load(Ordering::Relaxed), 0, "interrupts look for a kill for ever");
    }
}

/// As `act` in `actor/run/kill.rs`.
unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: made by a scene, which outlives its threads.
    let (scene, is_others) = unsafe { known::<Scene>(node) };
    if asked == Asked::IsPointless {
        return is_others == 0 && (mutant("kill-pointless-early") || !scene.has_not_ended());
    }
    scene.nodes.give_up(node);
    assert_ne!(scene.pending.fetch_sub(1, Ordering::Relaxed), 0, "fewer kills than none");
    true
}

fn kills() -> Task<Scene, bool> {
    task(|scene: &Scene| {
        scene.kill();
        false
    })
}

/// The actor ends by itself, or crashes, while it is killed, and has a successor in its cell.
fn own_end() {
    let scene = Scene::new();
    let worker = task(|scene: &Scene| {
        scene.end();
        scene.word.set(SECOND);
        scene.deliver();
        scene.interrupt(SECOND)
    });
    let [is_ended, _] = run(&scene, [worker, kills()]);
    scene.deliver();
    assert!(!is_ended && scene.word.get() == SECOND, "a successor was ended");
    scene.judge();
}

/// Two kill it at once, and its worker delivers: it is ended once.
fn two_kills() {
    let scene = Scene::new();
    let worker = task(|scene: &Scene| {
        scene.deliver();
        let has_ended = scene.word.get() == FREE;
        if has_ended {
            scene.word.set(SECOND);
        }
        has_ended
    });
    let [_, _, _] = run(&scene, [kills(), kills(), worker]);
    scene.deliver();
    assert_eq!(scene.ended.load(Ordering::Relaxed), 1, "ended so often");
    assert_ne!(scene.word.get(), FIRST, "it was not ended");
    scene.judge();
}

/// It is killed while its behaviour goes on and on: the interrupts that come are told, as long as it has not ended, and no longer.
fn endless() {
    let scene = Scene::new();
    let core = task(|scene: &Scene| {
        let is_to_end = scene.interrupt(FIRST);
        if is_to_end {
            scene.end();
        }
        is_to_end
    });
    let [mut has_ended, _] = run(&scene, [core, kills()]);
    if !has_ended {
        has_ended = scene.interrupt(FIRST);
        scene.end();
    }
    assert!(has_ended, "the interrupts are not told");
    // What is left is a dead letter.
    scene.deliver();
    assert_eq!(scene.ended.load(Ordering::Relaxed), 0, "it has ended, and is ended again");
    scene.judge();
}

/// It was killed, and ends, while somebody else watches one whose watches lie in the same list, and looks for garbage there.
fn garbage() {
    let scene = Scene::new();
    scene.kill();
    // From now on the next one looks at both.
    scene.watch_other(1);
    let ends = task(|scene: &Scene| {
        scene.deliver();
        true
    });
    let watches = task(|scene: &Scene| {
        scene.watch_other(2);
        // Whoever looks now must find it, or it has ended.
        scene.is_asked(FIRST) || scene.word.get() != FIRST
    });
    let [_, is_found] = run(&scene, [ends, watches]);
    assert!(is_found, "the kill was forgotten");
    for node in scene.lists.take_all(who(SECOND)) {
        // SAFETY: taken out of its list.
        unsafe { Node::act(node, Asked::Free) };
    }
    scene.judge();
}

/// It is killed while its executor stops, and the actor with it: as `shutdown::drop_state`.
fn executor_stops() {
    let scene = Scene::new();
    let stops = task(|scene: &Scene| {
        let claimed = if mutant("stop-claims-as-ending") { ENDING } else { STARTING };
        if !scene.word.claim(FIRST, claimed) {
            return false;
        }
        // Before its state is dropped, because the process may end there.
        scene.tell_of_end();
        scene.word.set(FREE);
        true
    });
    run(&scene, [stops, kills()]);
    scene.deliver();
    assert_eq!(scene.ended.load(Ordering::Relaxed), 0, "it is ended twice");
    scene.judge();
}
