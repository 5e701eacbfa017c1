//! Links: two processes that end together, while they are linked, end, are killed, and give the link up.
//!
//! The lists of watches, the look whether somebody is watched and the word of a process are the kernel's; the steps are those of
//! `watch/link.rs`, `sched/run/link.rs` and `ProcessRef::kill`.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::watch::{Asked, Lists, Node, Watched};
use magpie::internals::sync::{Identity, RunState, WordCell};
use std::ptr::NonNull;

use crate::harness::{Model, Mutant, ordering, step};
use crate::nodes::{Nodes, known};
use crate::tool::{Arc, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "links::one_ends",
        preemptions: Some(3),
        body: one_ends,
        mutants: &[
            ordering("watch-note-no-fence"),
            ordering("watch-end-no-fence"),
            step("watch-unasked"),
            step("watch-asked-early"),
            step("watch-noted-early"),
            step("watch-late-told-anyway"),
            step("link-one-way"),
            step("link-late-spares"),
        ],
    },
    Model {
        name: "links::both_end",
        preemptions: Some(2),
        body: both_end,
        mutants: &[
            step("watch-unasked"),
            step("watch-late-told-anyway"),
            Mutant { name: "watch-end-no-fence", rejected_by: &["loom"] },
        ],
    },
    Model {
        name: "links::killed_for_it",
        preemptions: Some(3),
        body: killed_for_it,
        mutants: &[step("link-not-woken"), step("kill-in-two"), step("begin-spares"), step("end-unasked")],
    },
    Model {
        name: "links::cancelled",
        preemptions: Some(3),
        body: cancelled,
        mutants: &[step("link-cancel-unasked")],
    },
    Model {
        name: "links::linked_twice",
        preemptions: Some(2),
        body: linked_twice,
        mutants: &[step("watch-unasked")],
    },
];

/// How one ends, in the bits that a watch is told.
const NORMAL: u64 = 0;
const FAILED: u64 = 1;
/// It had ended before.
const GONE: u64 = 2;

/// One of two who are linked.
struct End {
    turns: RunState,
    /// Whether it has ended: 1. In the kernel a bit of the word above. But where nothing else orders the end and a kill, loom may
    /// show the word as the kill has left it, though the end came later.
    done: WordCell,
    watched: Watched,
    /// How often it is in a queue.
    queued: AtomicU64,
    /// How often it was killed by a link.
    kills: AtomicU64,
}

impl End {
    fn new() -> Self {
        let end = Self {
            turns: RunState::new(),
            done: WordCell::new(0),
            watched: Watched::new(),
            queued: AtomicU64::new(0),
            kills: AtomicU64::new(0),
        };
        end.turns.mark_running();
        end
    }

    fn is_done(&self) -> bool {
        self.done.get() == 1
    }

    /// As `ProcessRef::kill`.
    fn kill(&self) {
        // Relaxed: read when all is over.
        self.kills.fetch_add(1, Ordering::Relaxed);
        self.turns.kill();
        if !mutant("link-not-woken") && self.turns.notify() {
            self.queued.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Of one whose turn is over, or goes on: whether it was killed and has not ended.
    fn was_killed(&self) -> bool {
        self.turns.is_killed() && !self.is_done()
    }
}

struct Scene {
    lists: Lists<2>,
    ends: [End; 2],
    nodes: Nodes,
    numbers: AtomicU64,
}

/// Their watches lie in two lists: three who wait for one would keep loom busy for ever.
fn who(which: usize) -> Identity {
    Identity::Process([64, 384][which])
}

/// The watches of a link, by their numbers; `None` if the watched one had ended, and this was told.
type Link = [u64; 2];

impl Scene {
    fn new() -> Arc<Self> {
        let ends = [End::new(), End::new()];
        Arc::new(Self { lists: Lists::new(), ends, nodes: Nodes::default(), numbers: AtomicU64::new(1) })
    }

    /// Half a link, as `ends_with`: when `watched` ends, the other is killed. Its number.
    fn half(&self, watched: usize) -> u64 {
        // Relaxed: it counts.
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let node = self.nodes.make(who(watched), number, act, self, 1 - watched as u64);
        let end = &self.ends[watched];
        // SAFETY: made here; what comes back is out of its list.
        unsafe {
            if let Some(late) = self.lists.watch(who(watched), node, &end.watched, || !end.is_done())
                && !mutant("link-late-spares")
            {
                Node::act(late, Asked::Tell(GONE));
            }
        }
        number
    }

    /// As `link`.
    fn link(&self) -> Link {
        let ends_other = self.half(0);
        [ends_other, if mutant("link-one-way") { 0 } else { self.half(1) }]
    }

    /// As `Link::cancel`.
    fn cancel(&self, link: Link) -> bool {
        let [one, other] = [0, 1].map(|which| {
            let Some(node) = self.lists.take(who(which), link[which]) else {
                return mutant("link-cancel-unasked");
            };
            // SAFETY: taken out of its list.
            unsafe { Node::act(node, Asked::Free) };
            true
        });
        one && other
    }

    /// Its last turn ends.
    fn end(&self, which: usize, how: u64) {
        let end = &self.ends[which];
        end.done.set(1);
        if end.watched.after_end() {
            for node in self.lists.take_all(who(which)) {
                // SAFETY: taken out of its list.
                unsafe { Node::act(node, Asked::Tell(how)) };
            }
        }
    }

    /// When all is over: nothing of one that has ended is left, and nothing else was given up.
    fn judge_watches(&self) {
        let waiting = [0, 1].map(|which| {
            let left = self.lists.take_all(who(which)).count();
            assert!(left == 0 || !self.ends[which].is_done(), "a watch outlives what it watches");
            left
        });
        assert_eq!(
            self.nodes.left(),
            waiting.iter().sum::<usize>(),
            "a watch is in no list, and was not given up"
        );
    }
}

/// As `act` in `sched/run/link.rs`.
unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: made by a scene, which outlives its threads.
    let (scene, which) = unsafe { known::<Scene>(node) };
    let end = &scene.ends[which as usize];
    if asked == Asked::IsPointless {
        return end.is_done();
    }
    scene.nodes.give_up(node);
    if matches!(asked, Asked::Tell(how) if how != NORMAL) {
        end.kill();
    }
    true
}

/// Two are linked while one of them crashes: the other is killed, once, by the end or because it comes late.
fn one_ends() {
    let scene = Scene::new();
    let links = task(|scene: &Scene| {
        scene.link();
    });
    let ends = task(|scene: &Scene| scene.end(0, FAILED));
    run(&scene, [links, ends]);
    assert_eq!(scene.ends[1].kills.load(Ordering::Relaxed), 1, "kills of the other");
    assert!(scene.ends[1].was_killed(), "the kill was lost");
    scene.end(1, FAILED);
    assert_eq!(scene.ends[0].kills.load(Ordering::Relaxed), 1, "the link leads one way only");
    scene.judge_watches();
}

/// Two end at once while they are linked, one as it wanted: no watch is told twice, and none is left.
fn both_end() {
    let scene = Scene::new();
    let links = task(|scene: &Scene| {
        scene.link();
    });
    let crashes = task(|scene: &Scene| scene.end(0, FAILED));
    let returns = task(|scene: &Scene| scene.end(1, NORMAL));
    run(&scene, [links, crashes, returns]);
    scene.judge_watches();
    assert_eq!(scene.nodes.left(), 0, "a watch outlives both");
    assert_eq!(scene.ends[1].kills.load(Ordering::Relaxed), 1, "one of the ends was not told, or twice");
}

/// One of two that are linked crashes while the other's turn ends in waiting, and somebody kills that one, too: it has one more turn, the last.
fn killed_for_it() {
    let scene = Scene::new();
    scene.link();
    let crashes = task(|scene: &Scene| {
        scene.end(0, FAILED);
        true
    });
    let kills = task(|scene: &Scene| {
        scene.ends[1].kill();
        true
    });
    let waits = task(|scene: &Scene| {
        let end = &scene.ends[1];
        // As between two turns: it was queued once.
        if end.turns.begin() {
            return true;
        }
        if end.turns.end_pending() {
            end.queued.fetch_add(1, Ordering::AcqRel);
        }
        false
    });
    let [_, _, is_last] = run(&scene, [crashes, kills, waits]);
    let end = &scene.ends[1];
    let queued = end.queued.load(Ordering::Acquire);
    if !is_last {
        assert_eq!(queued, 1, "it is in no queue, or in two");
        assert!(end.turns.begin(), "the kill was lost");
    }
    assert!(queued <= 1 && !(is_last && queued == 1), "it has ended, and is in a queue");
    scene.end(1, FAILED);
    scene.judge_watches();
}

/// A link is given up while one of the two crashes: whoever gives it up is told whether the other is killed.
fn cancelled() {
    let scene = Scene::new();
    let link = scene.link();
    let cancels = task(move |scene: &Scene| scene.cancel(link));
    let crashes = task(|scene: &Scene| {
        scene.end(0, FAILED);
        false
    });
    let [was_in_time, _] = run(&scene, [cancels, crashes]);
    let kills = scene.ends[1].kills.load(Ordering::Relaxed);
    assert_eq!(kills, u64::from(!was_in_time), "given up: {was_in_time}, killed: {kills}");
    scene.end(1, NORMAL);
    scene.judge_watches();
    assert_eq!(scene.nodes.left(), 0, "a watch outlives both");
}

/// Two link the same two while one of them crashes, each as far as that one's end goes: several links are as one.
fn linked_twice() {
    let scene = Scene::new();
    let links = || {
        task(|scene: &Scene| {
            scene.half(0);
        })
    };
    let crashes = task(|scene: &Scene| scene.end(0, FAILED));
    run(&scene, [links(), links(), crashes]);
    assert_eq!(scene.ends[1].kills.load(Ordering::Relaxed), 2, "each link kills once");
    assert!(scene.ends[1].was_killed(), "the kill was lost");
    scene.end(1, FAILED);
    scene.judge_watches();
    assert_eq!(scene.nodes.left(), 0, "a watch outlives both");
}
