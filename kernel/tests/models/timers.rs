//! A timer that fires while its owner looks at it: the owner sees that it has fired without the queue's lock, and has it alone then.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::{SpinLock, TimerState};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[Model {
    name: "timers::seen_without_the_lock",
    preemptions: None,
    body: seen_without_the_lock,
    mutants: &[
        ordering("timer-fired-relaxed"),
        ordering("timer-has-fired-relaxed"),
        step("timer-fired-early"),
        step("timer-freed-unasked"),
    ],
}];

/// A timer, and the queue that it is in.
struct Timer {
    queue: SpinLock<Plain>,
    state: TimerState,
    /// Its waker, its links: what the queue uses while it is armed, and the owner afterwards.
    rest: Plain,
    woken: AtomicU64,
}

/// One core fires it; its owner looks, and takes it out if it has not fired. In both cases it has the timer for itself then.
fn seen_without_the_lock() {
    let timer = Arc::new(Timer {
        queue: SpinLock::new(Plain::new(1)),
        state: TimerState::new(),
        rest: Plain::new(1),
        woken: AtomicU64::new(0),
    });
    timer.state.set_armed(true);
    let fires = task(|timer: &Timer| {
        let queue = timer.queue.lock();
        if queue.get() == 0 {
            return;
        }
        queue.set(0);
        if mutant("timer-fired-early") {
            timer.state.set_fired();
        }
        timer.rest.set(0);
        if !mutant("timer-fired-early") {
            timer.state.set_fired();
        }
        drop(queue);
        // Relaxed: read when all are done.
        timer.woken.fetch_add(1, Ordering::Relaxed);
    });
    let owner = task(|timer: &Timer| {
        if !timer.state.has_fired() && !mutant("timer-freed-unasked") {
            timer.queue.lock().set(0);
        }
        // As to use it again.
        timer.rest.set(2);
    });
    run(&timer, [fires, owner]);
    assert_eq!(timer.rest.get(), 2, "it was touched after it was its owner's");
    assert!(timer.woken.load(Ordering::Relaxed) <= 1, "it has woken twice");
}
