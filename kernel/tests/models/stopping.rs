//! The stop of an executor: whoever asks for it, and the end of its owner meanwhile, have it carried out once, with the limit that was given, and
//! by one that finds all closed; whoever awaits it sees what it has counted; and no worker waits on.
//!
//! The steps are those of `actor/run/shutdown.rs`, and of `Worker::wait` and `end_soon`; the ender lies under a lock of the checker's.

use magpie::internals::arch::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Mutex, Plain, Task, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "stopping::asked_twice",
        preemptions: Some(3),
        body: asked_twice,
        mutants: &[
            step("stop-ender-left"),
            ordering("stop-limit-late"),
            step("stop-ender-closes-nothing"),
            ordering("stop-over-relaxed"),
        ],
    },
    Model {
        name: "stopping::a_worker_waits",
        preemptions: Some(3),
        body: a_worker_waits,
        mutants: &[
            ordering("stop-no-barrier"),
            ordering("wait-no-barrier"),
            step("stop-wakes-nobody"),
            step("wait-looks-early"),
        ],
    },
];

/// The limit that is given.
const LIMIT: u64 = 5;
/// What is counted while all is dropped.
const DROPPED: u64 = 7;

struct Scene {
    /// Whether it is still there.
    ender: Mutex<bool>,
    is_stopping: AtomicBool,
    /// The worker has said that it waits.
    waits: AtomicBool,
    is_woken: AtomicBool,
    limit: Plain,
    /// How often the ender's process was started.
    started: AtomicU64,
    carried_out: AtomicU64,
    dropped: Plain,
    is_over: AtomicBool,
}

impl Scene {
    fn new() -> Arc<Self> {
        let no = || AtomicBool::new(false);
        let none = || AtomicU64::new(0);
        Arc::new(Self {
            ender: Mutex::new(true),
            is_stopping: no(),
            waits: no(),
            is_woken: no(),
            limit: Plain::new(0),
            started: none(),
            carried_out: none(),
            dropped: Plain::new(0),
            is_over: no(),
        })
    }

    fn take_ender(&self) -> bool {
        let mut ender = self.ender.lock().unwrap();
        if mutant("stop-ender-left") { *ender } else { std::mem::take(&mut *ender) }
    }

    /// As `close`. Relaxed: as there, ordered by the barrier.
    fn close(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        if !mutant("stop-no-barrier") {
            fence(Ordering::SeqCst);
        }
        if self.waits.load(Ordering::Relaxed) && !mutant("stop-wakes-nobody") {
            self.is_woken.store(true, Ordering::Relaxed);
        }
    }

    /// Puts the ender's process into a queue, which publishes what came before.
    fn start(&self) {
        self.started.fetch_add(1, Ordering::Release);
    }

    /// As `stop`; and a look at what came of it.
    fn stop(&self) -> bool {
        if self.take_ender() {
            self.close();
            let is_late = mutant("stop-limit-late");
            if !is_late {
                self.limit.set(LIMIT);
            }
            self.start();
            if is_late {
                self.limit.set(LIMIT);
            }
        }
        let is_over = self.is_over.load(Ordering::Acquire);
        if is_over {
            assert_eq!(self.dropped.get(), DROPPED, "what was counted is not seen");
        }
        is_over
    }

    /// As `stop_ownerless`.
    fn owner_ends(&self) {
        if self.take_ender() {
            self.start();
        }
    }

    /// The ender's process has its turns, as often as it was started since.
    fn carry_out(&self) {
        for _ in self.carried_out.load(Ordering::Relaxed)..self.started.load(Ordering::Acquire) {
            assert_eq!(self.carried_out.fetch_add(1, Ordering::Relaxed), 0, "carried out twice");
            if !self.is_stopping.load(Ordering::Relaxed) && !mutant("stop-ender-closes-nothing") {
                self.close();
            }
            let limit = self.limit.get();
            assert!(limit == LIMIT || limit == 0, "a limit that nobody gave");
            assert!(self.is_stopping.load(Ordering::Relaxed), "it drops what is not closed");
            self.dropped.set(DROPPED);
            let over = if mutant("stop-over-relaxed") { Ordering::Relaxed } else { Ordering::Release };
            self.is_over.store(true, over);
        }
    }
}

/// It is asked for while its owner ends, and the ender has a turn as soon as it may.
fn asked_twice() {
    let scene = Scene::new();
    let owner: Task<Scene, bool> = task(|scene: &Scene| {
        scene.owner_ends();
        false
    });
    let ender = task(|scene: &Scene| {
        scene.carry_out();
        false
    });
    run(&scene, [task(|scene: &Scene| scene.stop()), owner, ender]);
    scene.carry_out();
    assert_eq!(scene.carried_out.load(Ordering::Relaxed), 1, "carried out so often");
    assert!(scene.stop(), "it is not over");
}

/// A worker is about to wait while the stop begins.
fn a_worker_waits() {
    let scene = Scene::new();
    let stops = task(|scene: &Scene| {
        scene.stop();
        true
    });
    let worker = task(|scene: &Scene| {
        let early = scene.is_stopping.load(Ordering::Relaxed);
        scene.waits.store(true, Ordering::Relaxed);
        if !mutant("wait-no-barrier") {
            fence(Ordering::SeqCst);
        }
        // Whether it sees the request, and ends.
        if mutant("wait-looks-early") { early } else { scene.is_stopping.load(Ordering::Relaxed) }
    });
    let [_, has_seen] = run(&scene, [stops, worker]);
    assert!(has_seen || scene.is_woken.load(Ordering::Relaxed), "a worker waits for ever");
}
