//! Processes that are put aside because their share of CPU time is used up: each comes back, into one queue, woken or killed meanwhile or
//! not; and the share is freed once, when nobody uses it.
//!
//! The rule over time, the words of processes, the locks, the count of references and what a timer's state says are the kernel's; the steps
//! are those of `sched/process/share.rs` and `sched/run/aside.rs`.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::{Budget, ReferenceCount, RunState, SpinLock, TimerIs, TimerState};

use crate::harness::{Model, Mutant, ordering, step};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "shares::put_aside_as_it_fires",
        preemptions: Some(2),
        body: put_aside_as_it_fires,
        mutants: &[
            step("share-armed-in-two"),
            step("share-armed-for-ever"),
            step("share-not-armed-again"),
            step("share-asked-early"),
            // Two write the timer at once, and shuttle sees one after the other.
            Mutant { name: "share-woken-early", rejected_by: &["loom"] },
        ],
    },
    Model {
        name: "shares::makes_way",
        preemptions: Some(3),
        body: makes_way,
        mutants: &[step("share-taken-in-two")],
    },
    Model {
        name: "shares::killed_aside",
        preemptions: Some(3),
        body: killed_aside,
        mutants: &[step("share-aside-waits"), step("begin-spares")],
    },
    Model {
        name: "shares::freed_once",
        preemptions: Some(2),
        body: freed_once,
        mutants: &[step("count-release-in-two"), ordering("count-release-relaxed")],
    },
];

/// Ticks: all that there is in the first period is used.
const EACH: u64 = 20;
const PERIOD: u64 = 100;

struct Inside {
    budget: Budget,
    aside: Vec<usize>,
    is_armed: bool,
}

/// A share, its timer, and two processes that have it.
struct Scene {
    inside: SpinLock<Inside>,
    references: ReferenceCount,
    /// Set when the share is freed; read by whoever uses it.
    is_freed: Plain,
    /// The timer's waker and links, and the lock of the queue that it is in.
    timer: Plain,
    state: TimerState,
    queue: SpinLock<()>,
    /// How often it was armed, and until when last.
    armed: AtomicU64,
    turns: [RunState; 2],
    /// How often each process is in a queue.
    queued: [AtomicU64; 2],
}

impl Scene {
    /// With so many references.
    fn new(references: u32) -> Arc<Self> {
        let mut budget = Budget::new(EACH, PERIOD, 0);
        budget.charge(EACH, EACH);
        let turns = [RunState::new(), RunState::new()];
        turns.iter().for_each(RunState::mark_queued);
        Arc::new(Self {
            inside: SpinLock::new(Inside { budget, aside: Vec::new(), is_armed: false }),
            references: ReferenceCount::new(references),
            is_freed: Plain::new(0),
            timer: Plain::new(0),
            state: TimerState::new(),
            queue: SpinLock::new(()),
            armed: AtomicU64::new(0),
            turns,
            queued: [AtomicU64::new(0), AtomicU64::new(0)],
        })
    }

    /// As `aside::admit`, by a core that has taken the process from a queue. Whether its turn begins.
    fn admit(&self, process: usize, now: u64) -> bool {
        if self.turns[process].is_killed() {
            return true;
        }
        // As `Share::admit`.
        let early = mutant("share-asked-early").then(|| self.inside.lock().is_armed);
        let mut inside = self.inside.lock();
        if inside.budget.left(now).is_some() {
            return true;
        }
        inside.aside.push(process);
        let was_armed = std::mem::replace(&mut inside.is_armed, true);
        let until = inside.budget.next();
        drop(inside);
        if mutant("share-aside-waits") {
            self.turns[process].begin();
            self.turns[process].end_pending();
        }
        if !early.unwrap_or(was_armed) {
            self.arm(until);
        }
        false
    }

    /// As `aside::arm`, and `time::arm`.
    fn arm(&self, until: u64) {
        self.references.add();
        self.timer.set(until);
        let _queue = self.queue.lock();
        self.state.set_armed(true);
        // Relaxed: read when all is over.
        self.armed.fetch_add(1, Ordering::Relaxed);
    }

    /// The timer's core fires it if it is armed, and wakes the share.
    fn fire(&self) {
        let queue = self.queue.lock();
        if self.state.get() != TimerIs::Armed {
            return;
        }
        let wake = || (self.take_one(), self.go_on());
        let early = mutant("share-woken-early").then(wake);
        self.timer.set(0);
        self.state.set_fired();
        drop(queue);
        // As `wake`, which brings one back.
        let (process, until) = early.unwrap_or_else(wake);
        if let Some(process) = process {
            self.enqueue(process);
        }
        match until {
            Some(until) if !mutant("share-not-armed-again") => {
                self.arm(until);
                // The one that the timer had.
                self.give_up();
            }
            _ => self.give_up(),
        }
    }

    /// As `Share::take_one`.
    fn take_one(&self) -> Option<usize> {
        assert_eq!(self.is_freed.get(), 0, "it is freed, and used");
        let mut inside = self.inside.lock();
        if inside.aside.is_empty() { None } else { Some(inside.aside.remove(0)) }
    }

    /// As `Share::go_on`, when a period begins.
    fn go_on(&self) -> Option<u64> {
        assert_eq!(self.is_freed.get(), 0, "it is freed, and used");
        let mut inside = self.inside.lock();
        let is_armed = !inside.aside.is_empty();
        if mutant("share-armed-in-two") {
            drop(inside);
            inside = self.inside.lock();
        }
        inside.is_armed = is_armed || mutant("share-armed-for-ever");
        let _ = inside.budget.left(PERIOD);
        is_armed.then(|| inside.budget.next())
    }

    /// As `aside::make_way`, by a core on which another process of the share has ended.
    fn make_way(&self, now: u64) {
        let mut inside = self.inside.lock();
        if inside.budget.left(now).is_none() || inside.aside.is_empty() {
            return;
        }
        let process = if mutant("share-taken-in-two") {
            let first = inside.aside[0];
            drop(inside);
            self.inside.lock().aside.retain(|process| *process != first);
            first
        } else {
            let first = inside.aside.remove(0);
            drop(inside);
            first
        };
        self.enqueue(process);
    }

    fn enqueue(&self, process: usize) {
        // Release: as a queue.
        self.queued[process].fetch_add(1, Ordering::Release);
    }

    /// As `ProcessRef::kill`.
    fn kill(&self, process: usize) {
        self.turns[process].kill();
        if self.turns[process].notify() {
            self.enqueue(process);
        }
    }

    /// A core takes the process from a queue, if it is there.
    fn take(&self, process: usize) -> bool {
        self.queued[process].swap(0, Ordering::Acquire) > 0
    }

    /// As `Share::charge`.
    fn charge(&self) {
        assert_eq!(self.is_freed.get(), 0, "it is freed, and used");
        self.inside.lock().budget.charge(1, PERIOD);
    }

    /// As `ShareRef::drop`.
    fn give_up(&self) {
        if self.references.release() {
            assert_eq!(self.is_freed.get(), 0, "it is freed twice");
            self.is_freed.set(1);
        }
    }
}

/// Two cores put a process aside each, with clocks that they have read before, while the timer fires on a third; what the next period gives is
/// used up, too. Both come back, one each time.
fn put_aside_as_it_fires() {
    let scene = Scene::new(3);
    scene.inside.lock().budget.charge(EACH, EACH);
    let put_aside = |process, now| {
        task(move |scene: &Scene| assert!(!scene.admit(process, now), "there is nothing left"))
    };
    run(&scene, [put_aside(0, 50), put_aside(1, 60), task(Scene::fire)]);
    assert!(scene.armed.load(Ordering::Relaxed) <= 2, "the timer was armed by one who was not told to");
    // As often as it may be armed by now.
    scene.fire();
    scene.fire();
    for process in 0..2 {
        assert_eq!(
            scene.queued[process].load(Ordering::Acquire),
            1,
            "it is aside for ever, or in two queues"
        );
        assert!(scene.admit(process, 2 * PERIOD), "there is something left in the period after the next");
    }
}

/// A process of the share ends when the next period has begun, and the timer fires: the one that is aside comes back once.
fn makes_way() {
    let scene = Scene::new(2);
    assert!(!scene.admit(0, 50), "there is nothing left");
    run(&scene, [task(Scene::fire), task(|scene: &Scene| scene.make_way(PERIOD))]);
    assert_eq!(scene.queued[0].load(Ordering::Acquire), 1, "it is aside for ever, or in two queues");
}

/// A process is killed while it is put aside, and the timer fires: it is in one queue, and has a turn for its end.
fn killed_aside() {
    let scene = Scene::new(2);
    let admits = task(|scene: &Scene| scene.admit(0, 50));
    let kills = task(|scene: &Scene| {
        scene.kill(0);
        false
    });
    let fires = task(|scene: &Scene| {
        scene.fire();
        false
    });
    let [has_begun, _, _] = run(&scene, [admits, kills, fires]);
    scene.fire();
    let queued = scene.queued[0].load(Ordering::Acquire);
    assert_eq!(queued, u64::from(!has_begun), "it is in so many queues, or runs");
    assert!(scene.admit(0, 60), "one that was killed is put aside");
    assert!(scene.turns[0].begin(), "the kill was lost");
}

/// A process that was killed comes back and ends while another ends on its core, and the timer's waker is still at work.
fn freed_once() {
    let scene = Scene::new(2);
    assert!(!scene.admit(0, 50), "there is nothing left");
    scene.kill(0);
    let comes_back = |scene: &Scene| {
        if scene.take(0) {
            assert!(scene.turns[0].begin(), "the kill was lost");
            scene.charge();
            scene.give_up();
        }
    };
    let other = task(|scene: &Scene| {
        scene.charge();
        scene.give_up();
    });
    run(&scene, [task(Scene::fire), task(comes_back), other]);
    comes_back(&scene);
    assert_eq!(scene.is_freed.get(), 1, "it is never freed");
}
