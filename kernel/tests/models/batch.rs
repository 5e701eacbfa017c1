//! A batch whose delivery is interrupted: it is cut, split, cut and then split, or ends in the middle because its actor is killed. Every
//! message is handled once, in order.
//!
//! How far a batch has come is the kernel's; the delivery loop, the interrupt and what follows a kill are those of `actor/target.rs`, `actor/run/delivery.rs`,
//! `worker/gulping.rs`, `detach.rs` and `crash.rs`. What the messages of a suspended actor wait for is in `lives` and `aside`: here
//! each message has an actor of its own.
//!
//! One task is the activation on the worker's core, and the interrupt's handler there. Whether an interrupt has come it asks between its
//! steps, wherever preemption is enabled. Another task says what the interrupts are for, and is the core that goes on with the
//! rest after a split.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use magpie::internals::arch::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use magpie::internals::sync::Extent;

use crate::harness::{Model, step};
use crate::tool::{Arc, Task, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "batch::cut",
        preemptions: Some(3),
        body: cut,
        mutants: &[
            step("cut-again"),
            step("cut-forgets-end"),
            step("cut-unsaid"),
            step("mend-keeps-end"),
            step("mend-unsaid"),
            step("cut-taken-for-done"),
            step("cut-gate-stays"),
            step("mend-gate-stays"),
        ],
    },
    Model {
        name: "batch::cut_and_split",
        preemptions: Some(3),
        body: cut_and_split,
        mutants: &[
            step("extent-end-by-equality"),
            step("split-keeps-end"),
            step("split-unsaid"),
            step("split-unmended"),
            step("undelivered-unasked"),
        ],
    },
    Model {
        name: "batch::cut_and_killed",
        preemptions: Some(3),
        body: cut_and_killed,
        mutants: &[step("crash-stays"), step("mend-keeps-end"), step("cut-forgets-end")],
    },
    Model {
        name: "batch::split_and_killed",
        preemptions: Some(3),
        body: split_and_killed,
        mutants: &[step("extent-end-by-equality"), step("split-keeps-end")],
    },
];

/// What an interrupt is for.
const NOTHING: u64 = 0;
/// The turn is to end.
const CUT: u64 = 1;
/// The behaviour is suspended.
const SPLIT: u64 = 2;
/// The behaviour is ended.
const KILL: u64 = 3;

/// The messages in the batch when it begins: 1, 2 and 3. The first two each send one that follows.
const FIRST: usize = 3;
const ALL: usize = 5;

/// What the checkers need not know: one core has it at a time.
#[derive(Default)]
struct Kept {
    /// A segment: the message in each of its places.
    letters: [u64; ALL + 1],
    sent: u64,
    /// In the order in which they were handled, but for the one that the batch was split at.
    handled: Vec<u64>,
    split_at: Option<u64>,
    split_handled: u64,
    killed: Option<u64>,
}

/// A worker's batch, and what is left after a split.
struct Scene {
    batch: Extent,
    rest: Extent,
    /// The delivery loop is at work.
    is_armed: AtomicBool,
    interrupt: AtomicU64,
    is_split: AtomicBool,
    is_rest_taken: AtomicBool,
    segment: Segment,
    kept: Mutex<Kept>,
}

/// Places to point at.
struct Segment(Box<[u8; ALL + 2]>);

impl Segment {
    fn place(&self, at: usize) -> NonNull<u8> {
        NonNull::from(&self.0[at])
    }

    fn at(&self, place: *mut u8) -> usize {
        place.addr() - self.place(0).addr().get()
    }
}

/// The activation is gone.
struct Killed;

/// How a turn ended.
#[derive(PartialEq, Eq)]
enum Turn {
    /// All is done.
    Over,
    /// There is more for the next.
    Yields,
    /// It was suspended, and has ended since.
    WasSplit,
}

/// Where senders on the worker's core write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    End,
    WholeEnd,
    Rest,
}

/// The worker's core, or another that goes on with the rest: what it alone knows.
struct Core<'a> {
    scene: &'a Scene,
    batch: &'a Extent,
    gate: Gate,
    /// It is the activation that was suspended.
    is_detached: bool,
}

impl Scene {
    fn new() -> Arc<Self> {
        let scene = Self {
            batch: Extent::new(),
            rest: Extent::new(),
            is_armed: AtomicBool::new(false),
            interrupt: AtomicU64::new(NOTHING),
            is_split: AtomicBool::new(false),
            is_rest_taken: AtomicBool::new(false),
            segment: Segment(Box::new([0; ALL + 2])),
            kept: Mutex::default(),
        };
        for at in 0..FIRST {
            scene.kept().letters[at] = at as u64 + 1;
        }
        scene.kept().sent = FIRST as u64;
        scene.batch.set(scene.segment.place(0), scene.segment.place(FIRST));
        Arc::new(scene)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn letter(&self, place: *mut u8) -> u64 {
        self.kept().letters[self.segment.at(place)]
    }

    /// The worker's turns, until nothing is left or its activation is another's.
    fn work(&self) {
        let mut core = Core { scene: self, batch: &self.batch, gate: Gate::End, is_detached: false };
        loop {
            match core.turn() {
                Ok(Turn::Yields) => {}
                Ok(Turn::Over | Turn::WasSplit) => return,
                Err(Killed) => {
                    if core.is_detached {
                        // The envelope goes with it.
                        return;
                    }
                    core.crashed();
                }
            }
        }
    }

    /// The worker's next turn, on whatever core, if its batch was split.
    fn go_on(&self) {
        // Acquire: as a core that takes the worker from there.
        if !self.is_split.load(Ordering::Acquire) || self.is_rest_taken.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut core = Core { scene: self, batch: &self.rest, gate: Gate::Rest, is_detached: false };
        while let Ok(Turn::Yields) = core.turn() {}
    }

    fn judge(&self) {
        self.go_on();
        let kept = self.kept();
        assert!(kept.split_handled <= 1, "what was suspended is handled twice");
        let all = (1..=kept.sent).filter(|&message| kept.split_at != Some(message));
        let mut handled = kept.handled.clone();
        if let Some(killed) =
            kept.killed.filter(|&killed| kept.split_at != Some(killed) && !handled.contains(&killed))
        {
            handled.push(killed);
            handled.sort_unstable();
        }
        let was_seen =
            kept.split_handled == 1 || kept.split_at.is_none_or(|split| kept.killed == Some(split));
        assert!(was_seen, "what was suspended is lost");
        assert!(handled.iter().copied().eq(all), "lost, out of order, or handled twice: {handled:?}");
    }
}

impl Core<'_> {
    /// An interrupt, if one has come.
    fn interrupt(&mut self) -> Result<(), Killed> {
        let asked = self.scene.interrupt.swap(NOTHING, Ordering::Relaxed);
        if asked == NOTHING || self.scene.is_split.load(Ordering::Relaxed) && !self.is_detached {
            return Ok(());
        }
        match asked {
            KILL => self.kill(),
            _ if self.is_detached || !self.scene.is_armed.load(Ordering::Relaxed) => Ok(()),
            CUT => {
                // As `Batch::cut`.
                let is_cut = self.batch.cut(|envelope| {
                    let at = self.scene.segment.at(envelope.as_ptr());
                    self.scene.segment.place(at + 1)
                });
                if is_cut && !mutant("cut-gate-stays") {
                    self.gate = Gate::WholeEnd;
                }
                Ok(())
            }
            _ => {
                self.detach();
                Ok(())
            }
        }
    }

    /// As `Worker::is_to_end` and `Detached::is_to_end`.
    fn kill(&self) -> Result<(), Killed> {
        let current = if self.is_detached {
            NonNull::new(self.batch.split_at())
        } else {
            self.batch.current().filter(|_| self.scene.is_armed.load(Ordering::Relaxed))
        };
        let Some(envelope) = current else { return Ok(()) };
        let message = self.scene.letter(envelope.as_ptr());
        self.scene.kept().killed = Some(message);
        Err(Killed)
    }

    /// As `crash::crashed`.
    fn crashed(&mut self) {
        self.scene.is_armed.store(false, Ordering::Relaxed);
        self.mend();
        if let Some(envelope) = self.batch.current()
            && !mutant("crash-stays")
        {
            let at = self.scene.segment.at(envelope.as_ptr());
            self.batch.go_to(self.scene.segment.place(at + 1));
        }
    }

    /// As `Batch::mend`.
    fn mend(&mut self) -> bool {
        let was_cut = self.batch.mend();
        if was_cut && !mutant("mend-gate-stays") {
            self.gate = Gate::End;
        }
        was_cut
    }

    /// As `detach::detach`.
    fn detach(&mut self) {
        let Some(envelope) = self.batch.current_of_whole() else { return };
        if !mutant("split-unmended") {
            self.mend();
        }
        let at = self.scene.segment.at(envelope.as_ptr());
        let Some(end) = NonNull::new(self.batch.end()) else { return };
        self.scene.rest.set(self.scene.segment.place(at + 1), end);
        self.batch.split(envelope);
        let message = self.scene.letter(envelope.as_ptr());
        let mut kept = self.scene.kept();
        kept.split_at = Some(message);
        // It may have been handled, and the loop not have come to the next.
        kept.split_handled = kept.handled.extract_if(.., |handled| *handled == message).count() as u64;
        drop(kept);
        self.is_detached = true;
        // Release: as a process that is put into a queue.
        self.scene.is_split.store(true, Ordering::Release);
    }

    /// A behaviour, which sends a message if it has not been suspended.
    fn handle(&mut self, place: *mut u8) -> Result<(), Killed> {
        self.interrupt()?;
        let message = self.scene.letter(place);
        let mut kept = self.scene.kept();
        if kept.split_at == Some(message) {
            kept.split_handled += 1;
        } else {
            kept.handled.push(message);
        }
        assert!(kept.handled.len() <= ALL, "the loop goes on behind its end");
        drop(kept);
        if message < FIRST as u64 && !self.is_detached {
            self.send();
        }
        Ok(())
    }

    /// As `append`, behind the batch.
    fn send(&self) {
        let end: &AtomicPtr<u8> = match self.gate {
            Gate::End => self.batch.end_cell(),
            Gate::WholeEnd => self.batch.whole_end_cell(),
            Gate::Rest => self.scene.rest.end_cell(),
        };
        let at = self.scene.segment.at(end.load(Ordering::Relaxed));
        let mut kept = self.scene.kept();
        kept.sent += 1;
        let message = kept.sent;
        kept.letters[at] = message;
        drop(kept);
        end.store(self.scene.segment.place(at + 1).as_ptr(), Ordering::Relaxed);
    }

    /// As `delivery::deliver`. Whether the batch's end was reached.
    fn deliver(&mut self) -> Result<bool, Killed> {
        let mut position = self.batch.position();
        self.interrupt()?;
        if self.batch.is_done_at(position) {
            return Ok(true);
        }
        loop {
            self.handle(position)?;
            self.interrupt()?;
            let next = self.scene.segment.place(self.scene.segment.at(position) + 1);
            self.batch.go_to(next);
            position = next.as_ptr();
            self.interrupt()?;
            if self.batch.is_done_at(position) {
                return Ok(true);
            }
        }
    }

    /// As `Worker::run_batches`, and `detach::finish_detached`.
    fn turn(&mut self) -> Result<Turn, Killed> {
        let is_workers = !self.is_detached;
        if is_workers {
            self.scene.is_armed.store(true, Ordering::Relaxed);
        }
        let mut is_done = self.deliver()?;
        // From here on preemption is disabled.
        if !self.is_detached {
            self.scene.is_armed.store(false, Ordering::Relaxed);
        }
        if self.batch.was_changed() {
            if !self.mend() {
                if let Some(envelope) = self.batch.undelivered() {
                    self.handle(envelope.as_ptr())?;
                }
                return Ok(Turn::WasSplit);
            }
            is_done &= mutant("cut-taken-for-done");
        }
        Ok(if is_done { Turn::Over } else { Turn::Yields })
    }
}

/// Interrupts come, for these reasons, one after the other; one that is not taken before the next comes is lost.
fn interrupts(reasons: &'static [u64]) -> Task<Scene, ()> {
    task(move |scene: &Scene| {
        for &reason in reasons {
            scene.interrupt.store(reason, Ordering::Relaxed);
        }
        scene.go_on();
    })
}

fn explore(reasons: &'static [u64]) {
    let scene = Scene::new();
    run(&scene, [task(Scene::work), interrupts(reasons)]);
    scene.judge();
}

/// A turn is to end, and once more.
fn cut() {
    explore(&[CUT, CUT]);
}

/// A turn is to end, and does not: its behaviour is suspended.
fn cut_and_split() {
    explore(&[CUT, SPLIT]);
}

/// A turn is to end, and its behaviour is ended meanwhile.
fn cut_and_killed() {
    explore(&[CUT, KILL]);
}

/// A behaviour that was suspended is ended.
fn split_and_killed() {
    explore(&[SPLIT, KILL]);
}
