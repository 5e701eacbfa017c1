//! A supervisor and its children: an end is told to it once, and wakes it; a child that it asks to end hears of it; and no child outlives one
//! that has failed.
//!
//! The lists of watches, the look whether somebody is watched, the words of processes and the locks are the kernel's; the steps are those of
//! `supervise/control.rs` and `supervise/ends.rs`, and of the supervisor's loop in `supervise/run.rs`.

use std::ptr::NonNull;

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::watch::{Asked, Lists, Node, Watched};
use magpie::internals::sync::{Identity, RunState, SpinLock, WordCell};

use crate::harness::{Model, ordering, step};
use crate::nodes::{Nodes, known};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "supervise::begins_as_it_fails",
        preemptions: Some(3),
        body: begins_as_it_fails,
        mutants: &[step("child-begin-unasked"), step("ends-closed-late"), step("ends-closed-keeps")],
    },
    Model {
        name: "supervise::fails_behind_a_start",
        preemptions: Some(3),
        body: fails_behind_a_start,
        mutants: &[
            step("child-begin-unasked"),
            step("ends-closed-keeps"),
            step("watch-unasked"),
            step("watch-late-told-anyway"),
            ordering("watch-note-no-fence"),
            ordering("watch-end-no-fence"),
        ],
    },
    Model {
        name: "supervise::restarts",
        preemptions: Some(2),
        body: restarts,
        mutants: &[
            step("ends-any-late"),
            step("ends-note-unsaid"),
            step("ends-note-early"),
            step("ask-any-life"),
            step("watch-unasked"),
        ],
    },
    Model {
        name: "supervise::asked_to_end",
        preemptions: Some(3),
        body: asked_to_end,
        mutants: &[step("ask-unwoken"), step("ask-in-two"), step("leave-unasked"), step("end-unasked")],
    },
    Model {
        name: "supervise::killed_at_its_limit",
        preemptions: Some(3),
        body: killed_at_its_limit,
        mutants: &[step("end-unasked"), step("begin-spares"), step("ends-note-unsaid")],
    },
    Model {
        name: "supervise::killed_as_it_tends",
        preemptions: None,
        body: killed_as_it_tends,
        mutants: &[
            step("tends-unasked"),
            step("kill-looks-early"),
            step("kill-unwoken"),
            step("leave-unasked"),
        ],
    },
];

/// Whose ends are watched.
const CHILD: [Identity; 2] = [Identity::Process(64), Identity::Process(128)];
const SUPERVISOR: Identity = Identity::Process(384);

/// A process: the supervisor's, or that of one life of the child.
struct Process {
    turns: RunState,
    /// Whether it has ended: 1. See `links`.
    done: WordCell,
    watched: Watched,
    /// How often it is in a queue.
    queued: AtomicU64,
}

impl Process {
    fn new() -> Self {
        let (turns, done) = (RunState::new(), WordCell::new(0));
        turns.mark_running();
        Self { turns, done, watched: Watched::new(), queued: AtomicU64::new(0) }
    }

    fn has_ended(&self) -> bool {
        self.done.get() == 1
    }

    fn wake(&self) {
        if self.turns.notify() {
            self.queued.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// As `ProcessRef::kill`.
    fn kill(&self) {
        self.turns.kill();
        self.wake();
    }

    /// Its turn ends in waiting.
    fn wait(&self) {
        if self.turns.end_pending() {
            self.queued.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Afterwards: whether it has another turn.
    fn is_queued(&self) -> bool {
        let queued = self.queued.swap(0, Ordering::Acquire);
        assert!(queued <= 1, "it is in two queues");
        queued == 1
    }
}

/// As `Inside` in `ends.rs`, and the child's `Line`.
#[derive(Default)]
struct Inside {
    ended: Vec<usize>,
    is_closed: bool,
    /// The life that runs.
    process: Option<usize>,
}

/// As `Asking` in `control.rs`. Lives are numbered from 1.
#[derive(Default)]
struct Asking {
    asked: usize,
    killed: usize,
    tends: usize,
    waker: Option<usize>,
}

/// A supervisor with a child, of which there are two lives.
struct Scene {
    lists: Lists<2>,
    nodes: Nodes,
    supervisor: Process,
    lives: [Process; 2],
    ends: SpinLock<Inside>,
    /// As `Ends::has_any`.
    has_any: AtomicU64,
    asking: SpinLock<Asking>,
    /// The memory of the watch for a life's end, which the next life's has, too.
    room: Plain,
    /// How many lives were started.
    started: AtomicU64,
}

impl Scene {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            lists: Lists::new(),
            nodes: Nodes::default(),
            supervisor: Process::new(),
            lives: [Process::new(), Process::new()],
            ends: SpinLock::new(Inside::default()),
            has_any: AtomicU64::new(0),
            asking: SpinLock::new(Asking::default()),
            room: Plain::new(0),
            started: AtomicU64::new(0),
        })
    }

    /// The child's link to its supervisor.
    fn link(&self) {
        let node = self.nodes.make(SUPERVISOR, 100, act_on_link, self, 0);
        // SAFETY: made here.
        unsafe { self.lists.insert(SUPERVISOR, node) };
        self.supervisor.watched.note();
    }

    /// As `Control::watch`, by the supervisor.
    fn watch(&self, life: usize) {
        self.room.set(life as u64);
        let node = self.nodes.make(CHILD[life], life as u64 + 1, act_at_end, self, life as u64);
        let process = &self.lives[life];
        // SAFETY: made here; what comes back is out of its list.
        unsafe {
            if let Some(late) = self.lists.watch(CHILD[life], node, &process.watched, || !process.has_ended())
            {
                Node::act(late, Asked::Tell(0));
            }
        }
    }

    /// As `Running::start`, as far as it starts the process.
    fn start(&self) {
        // Release: as a process that is put into a queue.
        self.started.fetch_add(1, Ordering::Release);
    }

    fn has_started(&self, life: usize) -> bool {
        self.started.load(Ordering::Acquire) > life as u64
    }

    /// As `Ends::begin`.
    fn begin(&self, life: usize) -> bool {
        let mut inside = self.ends.lock();
        if inside.is_closed && !mutant("child-begin-unasked") {
            return false;
        }
        inside.process = Some(life);
        true
    }

    /// As `Ends::note`.
    fn note(&self, life: usize) {
        let mut inside = self.ends.lock();
        inside.process = None;
        let wakes = !inside.is_closed && !mutant("ends-note-unsaid");
        let is_late = mutant("ends-any-late");
        if wakes && is_late {
            self.supervisor.wake();
        }
        if !inside.is_closed || mutant("ends-closed-keeps") {
            inside.ended.push(life);
            self.has_any.store(1, Ordering::Relaxed);
        }
        if wakes && !is_late {
            self.supervisor.wake();
        }
    }

    /// As `Ends::take`.
    fn take(&self) -> Option<usize> {
        if self.has_any.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut inside = self.ends.lock();
        let first = (!inside.ended.is_empty()).then(|| inside.ended.remove(0))?;
        self.has_any.store(u64::from(!inside.ended.is_empty()), Ordering::Relaxed);
        Some(first)
    }

    /// As `Ends::close`.
    fn close(&self) {
        let mut inside = self.ends.lock();
        inside.is_closed = true;
        inside.ended.clear();
    }

    /// As `Ends::kill_orphan`.
    fn kill_orphan(&self) {
        let is_late = mutant("ends-closed-late");
        if !is_late {
            self.close();
        }
        let process = self.ends.lock().process.take();
        if is_late {
            self.close();
        }
        if let Some(life) = process {
            self.lives[life].kill();
        }
    }

    /// As `Control::ask`.
    fn ask(&self, life: usize) {
        let mut asking = self.asking.lock();
        let waker = if mutant("ask-in-two") {
            let waker = asking.waker.take();
            drop(asking);
            asking = self.asking.lock();
            waker
        } else {
            asking.waker.take()
        };
        asking.asked = asking.asked.max(life + 1);
        drop(asking);
        if let Some(life) = waker.filter(|_| !mutant("ask-unwoken")) {
            self.lives[life].wake();
        }
    }

    fn is_asked(&self, life: usize) -> bool {
        let asked = self.asking.lock().asked;
        asked > life || (mutant("ask-any-life") && asked > 0)
    }

    /// As `Control::leave`.
    fn leave(&self, life: usize) -> bool {
        let mut asking = self.asking.lock();
        if asking.asked > life && !mutant("leave-unasked") {
            return false;
        }
        asking.waker = Some(life);
        true
    }

    /// As `Control::kill`, and `Running::run` where it is not told.
    fn kill_at_limit(&self, life: usize) {
        let looked = self.asking.lock().tends;
        let mut asking = self.asking.lock();
        asking.killed = asking.killed.max(life + 1);
        let tends = if mutant("kill-looks-early") { looked } else { asking.tends } == life + 1;
        let waker = asking.waker.take();
        drop(asking);
        if let Some(life) = waker.filter(|_| !mutant("kill-unwoken")) {
            self.lives[life].wake();
        }
        if !tends {
            self.lives[life].kill();
        }
    }

    /// As `Control::begin_tending`.
    fn begin_tending(&self, life: usize) -> bool {
        let mut asking = self.asking.lock();
        let may = asking.killed <= life || mutant("tends-unasked");
        if may {
            asking.tends = life + 1;
        }
        may
    }

    /// A turn of a life that tends an actor, as `wait` in `tend.rs`: waits until it is to kill that. Whether it has.
    fn tend(&self, life: usize) -> bool {
        let process = &self.lives[life];
        let is_dropped = process.turns.begin();
        let has_killed = {
            let mut asking = self.asking.lock();
            let is_told = asking.killed > life && !mutant("leave-unasked");
            if !is_told {
                asking.waker = Some(life);
            }
            is_told
        };
        if !is_dropped && !has_killed {
            process.wait();
        }
        has_killed
    }

    /// A process ends, and those who watch it are told.
    fn end(&self, process: &Process, who: Identity) {
        process.done.set(1);
        if process.watched.after_end() {
            for node in self.lists.take_all(who) {
                // SAFETY: taken out of its list.
                unsafe { Node::act(node, Asked::Tell(1)) };
            }
        }
    }

    fn end_life(&self, life: usize) {
        self.end(&self.lives[life], CHILD[life]);
    }

    /// A turn of a child that waits until it is asked to end. Whether it has ended.
    fn turn(&self, life: usize) -> bool {
        let process = &self.lives[life];
        let is_over = process.turns.begin() || self.is_asked(life) || !self.leave(life);
        if is_over {
            self.end_life(life);
        } else {
            process.wait();
        }
        is_over
    }

    /// A turn of the supervisor, which starts the second life when the first has ended. The lives whose ends it has seen.
    fn supervise(&self) -> Vec<usize> {
        self.supervisor.turns.begin();
        let mut seen = Vec::new();
        while let Some(life) = self.take() {
            seen.push(life);
            if life == 0 {
                self.start();
                self.watch(1);
            }
        }
        self.supervisor.wait();
        seen
    }

    /// When all is over, and the supervisor has failed.
    fn judge_failed(&self) {
        assert!(self.ends.lock().ended.is_empty(), "an end is kept for one who is gone");
        assert_eq!(self.nodes.left(), 0, "a watch was not given up");
    }
}

/// As `act_at_end`.
unsafe fn act_at_end(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: made by a scene, which outlives its threads.
    let (scene, life) = unsafe { known::<Scene>(node) };
    if asked == Asked::IsPointless {
        return false;
    }
    scene.nodes.give_up(node);
    let is_early = mutant("ends-note-early");
    if is_early {
        scene.note(life as usize);
    }
    // The node is read before the end is told: from then on its memory is the next watch's.
    assert_eq!(scene.room.get(), life, "the watch of a life was written over");
    if !is_early {
        scene.note(life as usize);
    }
    false
}

/// As `act_on_link`.
unsafe fn act_on_link(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: as above.
    let (scene, _) = unsafe { known::<Scene>(node) };
    if asked == Asked::IsPointless {
        return false;
    }
    scene.nodes.give_up(node);
    scene.kill_orphan();
    false
}

/// A child begins while its supervisor fails; its own end is told afterwards.
fn begins_as_it_fails() {
    let scene = Scene::new();
    scene.link();
    let begins = task(|scene: &Scene| scene.begin(1));
    let fails = task(|scene: &Scene| {
        scene.end(&scene.supervisor, SUPERVISOR);
        true
    });
    let [has_begun, _] = run(&scene, [begins, fails]);
    assert_eq!(
        has_begun,
        scene.lives[1].turns.is_killed(),
        "begun: {has_begun}: the child outlives its supervisor"
    );
    scene.note(1);
    scene.judge_failed();
}

/// A supervisor starts a child, watches it and fails, while the child begins and ends.
fn fails_behind_a_start() {
    let scene = Scene::new();
    scene.link();
    let fails = task(|scene: &Scene| {
        scene.start();
        scene.watch(0);
        scene.end(&scene.supervisor, SUPERVISOR);
        true
    });
    let lives = task(|scene: &Scene| {
        if !scene.has_started(0) {
            return false;
        }
        scene.begin(0);
        scene.end_life(0);
        true
    });
    let [_, has_lived] = run(&scene, [fails, lives]);
    if !has_lived {
        assert!(!scene.begin(0), "a child begins under a supervisor that is gone");
        scene.end_life(0);
    }
    assert!(
        scene.lives[0].has_ended() || scene.lives[0].turns.is_killed(),
        "the child outlives its supervisor"
    );
    scene.judge_failed();
}

/// A life that was asked to end ends, another is started, which ends as well, and the supervisor waits in between: it sees both ends, in
/// order.
fn restarts() {
    let scene = Scene::new();
    scene.start();
    scene.watch(0);
    scene.ask(0);
    let first = task(|scene: &Scene| {
        scene.end_life(0);
        Vec::new()
    });
    let supervises = task(Scene::supervise);
    let second = task(|scene: &Scene| {
        if scene.has_started(1) {
            assert!(!scene.is_asked(1), "what the life before it was asked is taken for its own");
            assert!(scene.begin(1), "it is taken for an orphan");
            scene.end_life(1);
        }
        Vec::new()
    });
    let [_, mut seen, _] = run(&scene, [first, supervises, second]);
    for _ in 0..2 {
        if scene.supervisor.is_queued() {
            seen.extend(scene.supervise());
        }
        if scene.has_started(1) && !scene.lives[1].has_ended() {
            scene.end_life(1);
        }
    }
    if scene.supervisor.is_queued() {
        seen.extend(scene.supervise());
    }
    assert_eq!(seen, [0, 1], "the supervisor waits for ever, or was told twice");
    assert_eq!(scene.nodes.left(), 0, "a watch was not given up");
}

/// A child that was killed, or asked to end, has another turn if it needs one, and its supervisor sees the end.
fn judge_stopped(scene: &Scene, has_ended: bool) {
    if has_ended {
        assert!(!scene.lives[0].is_queued(), "it has ended, and is in a queue");
    } else {
        assert!(scene.lives[0].is_queued(), "the child waits for ever");
        assert!(scene.turn(0), "it does not hear of it");
    }
    if !scene.supervisor.is_queued() {
        // It has not come to wait yet, or it has seen the end.
        return;
    }
    assert_eq!(scene.take(), Some(0), "the end is lost");
}

/// A supervisor asks its child to end, and waits for that, while the child comes to wait until it is asked.
fn asked_to_end() {
    let scene = Scene::new();
    scene.watch(0);
    let asks = task(|scene: &Scene| {
        scene.ask(0);
        false
    });
    let waits = task(|scene: &Scene| scene.turn(0));
    let [_, has_ended] = run(&scene, [asks, waits]);
    judge_stopped(&scene, has_ended);
    assert_eq!(scene.take(), Some(0), "the end is lost");
}

/// A supervisor kills a child whose time is over, and waits for its end, while the child's turn ends in waiting.
fn killed_at_its_limit() {
    let scene = Scene::new();
    scene.watch(0);
    let kills = task(|scene: &Scene| {
        scene.supervisor.turns.begin();
        scene.lives[0].kill();
        let has_seen = scene.take().is_some();
        if !has_seen {
            scene.supervisor.wait();
        }
        has_seen
    });
    let waits = task(|scene: &Scene| scene.turn(0));
    let [has_seen, has_ended] = run(&scene, [kills, waits]);
    judge_stopped(&scene, has_ended);
    assert!(has_seen || scene.ends.lock().ended.is_empty(), "the supervisor waits for ever");
}

/// A life is killed by its supervisor while it comes to tend an actor: it kills that itself, and ends after it, or never has one. (That a process which
/// is killed at a limit ends is the model above.)
fn killed_as_it_tends() {
    let scene = Scene::new();
    let kills = task(|scene: &Scene| {
        scene.kill_at_limit(0);
        (false, false)
    });
    let tends = task(|scene: &Scene| {
        let has_actor = scene.begin_tending(0);
        (has_actor, has_actor && scene.tend(0))
    });
    let [_, (has_actor, has_killed)] = run(&scene, [kills, tends]);
    let is_dropped = scene.lives[0].turns.is_killed();
    assert_eq!(has_actor, !is_dropped, "with an actor: {has_actor}; dropped: {is_dropped}");
    if has_actor && !has_killed {
        assert!(scene.lives[0].is_queued(), "it waits, and its actor lives for ever");
        assert!(scene.tend(0), "it was woken, and does not kill its actor");
    }
}
