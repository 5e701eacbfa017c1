//! A delayed call that comes again and again, and is given up while it fires: its value has one holder at a time and comes back
//! once, nothing is left in the queue, and its memory is freed once, by the last who has a part in it.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::{CallState, ReferenceCount, SpinLock};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "delayed_call::given_up",
        preemptions: None,
        body: given_up,
        mutants: &[
            ordering("call-again-relaxed"),
            ordering("call-give-up-relaxed"),
            step("call-take-unasked"),
            step("call-again-unasked"),
            step("call-give-up-unasked"),
            step("call-armed-late"),
            step("call-stays-armed"),
            step("call-fired-kept"),
        ],
    },
    Model {
        name: "delayed_call::dropped",
        preemptions: None,
        body: dropped,
        mutants: &[step("call-freed-armed")],
    },
    Model {
        name: "delayed_call::ended_by_the_function",
        preemptions: None,
        body: ended_by_the_function,
        mutants: &[step("call-end-forgotten")],
    },
    Model {
        name: "delayed_call::given_up_at_its_end",
        preemptions: None,
        body: given_up_at_its_end,
        mutants: &[step("call-take-unasked"), step("call-give-up-unasked")],
    },
];

/// The memory of a call, with its place in the queue of the core that fires it.
struct Call {
    /// Whether the timer is in the queue.
    queue: SpinLock<Plain>,
    /// The timer's own: whether it has its waker, and so a reference.
    timer: Plain,
    state: CallState,
    references: ReferenceCount,
    /// 1 while the value is there.
    value: Plain,
    freed: AtomicU64,
    /// What the value came to: it was given back, or it was ended.
    came_back: AtomicU64,
    fired: AtomicU64,
}

impl Call {
    /// One that was set, with a handle.
    fn new() -> Arc<Self> {
        Arc::new(Self {
            queue: SpinLock::new(Plain::new(1)),
            timer: Plain::new(1),
            state: CallState::pending(),
            references: ReferenceCount::new(2),
            value: Plain::new(1),
            freed: AtomicU64::new(0),
            came_back: AtomicU64::new(0),
            fired: AtomicU64::new(0),
        })
    }

    fn take_value(&self) {
        assert_eq!(self.value.get(), 1, "the value is not there");
        self.value.set(0);
    }

    /// The value is with somebody who keeps it.
    fn keep_value(&self) {
        self.take_value();
        // Relaxed: read when all are done.
        self.came_back.fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self) {
        assert_eq!(self.freed.load(Ordering::Relaxed), 0, "used, and freed");
        if self.references.release() {
            // As freeing the memory: nobody else touches it any more, and it is in no queue.
            self.timer.set(0);
            self.value.set(self.value.get());
            assert_eq!(self.queue.lock().get(), 0, "freed, and in the queue");
            assert_eq!(self.freed.fetch_add(1, Ordering::Relaxed), 0, "freed twice");
        }
    }

    /// `per_core::arm`.
    fn arm(&self) {
        self.timer.set(1);
        self.queue.lock().set(1);
    }

    /// `per_core::cancel`.
    fn take_out(&self) {
        self.queue.lock().set(0);
    }

    /// A pass of the core's loop, which fires the timer if it is there, `per_core::expire`. With the function, which sets the
    /// call again unless it `ends` it.
    fn expire(&self, ends: bool) {
        let has_waker = {
            let queue = self.queue.lock();
            if queue.get() == 0 {
                return;
            }
            queue.set(0);
            let has_waker = self.timer.get() == 1;
            if !mutant("call-fired-kept") {
                self.timer.set(0);
            }
            has_waker
        };
        assert!(has_waker, "a timer without its waker is in the queue");
        if !self.state.take() {
            return self.release();
        }
        self.take_value();
        self.fired.fetch_add(1, Ordering::Relaxed);
        self.value.set(1);
        if ends {
            if !mutant("call-end-forgotten") {
                self.state.end();
            }
            self.keep_value();
            return self.release();
        }
        let armed_late = mutant("call-armed-late");
        if !armed_late {
            self.arm();
        }
        if self.state.set_again() {
            if armed_late {
                self.arm();
            }
            if mutant("call-freed-armed") {
                self.release();
            }
            return;
        }
        if !mutant("call-stays-armed") {
            self.take_out();
        }
        self.timer.set(0);
        self.keep_value();
        self.state.end();
        self.release();
    }

    /// The handle's owner gives it up. Whether it got the value.
    fn cancel(&self) -> bool {
        let has_value = self.state.give_up();
        if has_value {
            self.keep_value();
            self.take_out();
            if self.timer.get() == 1 {
                self.timer.set(0);
                self.release();
            }
        }
        self.release();
        has_value
    }
}

/// It is given up while the core fires it, once and again.
fn given_up() {
    let call = Call::new();
    let fires = task(|call: &Call| {
        call.expire(false);
        call.expire(false);
        false
    });
    let cancels = task(|call: &Call| call.cancel());
    let [_, has_value] = run(&call, [fires, cancels]);
    assert!(call.state.is_over(), "it was given up, and goes on");
    assert_eq!(call.queue.lock().get(), 0, "it was given up, and waits");
    assert_eq!(call.came_back.load(Ordering::Relaxed), 1, "the value has not come back once");
    assert!(has_value || call.fired.load(Ordering::Relaxed) > 0, "nobody had the value");
    assert_eq!(call.freed.load(Ordering::Relaxed), 1, "the memory was not freed");
}

/// The handle is dropped while the core fires it: it goes on.
fn dropped() {
    let call = Call::new();
    let fires = task(|call: &Call| {
        call.expire(false);
        call.expire(false);
    });
    let drops = task(|call: &Call| {
        assert!(!call.state.is_over(), "it is over by itself");
        call.release();
    });
    run(&call, [fires, drops]);
    assert_eq!(call.queue.lock().get(), 1, "it does not go on");
    assert!(call.state.is_pending(), "it waits, and does not say so");
    assert_eq!(call.fired.load(Ordering::Relaxed), 2, "times it was done");
    assert_eq!(call.freed.load(Ordering::Relaxed), 0, "it was freed while it waits");
}

/// The function ends it while the handle is dropped.
fn ended_by_the_function() {
    let call = Call::new();
    let fires = task(|call: &Call| {
        call.expire(true);
        call.expire(true);
    });
    run(&call, [fires, task(Call::release)]);
    assert!(call.state.is_over(), "it has ended, and does not say so");
    assert_eq!(call.fired.load(Ordering::Relaxed), 1, "times it was done");
    assert_eq!(call.came_back.load(Ordering::Relaxed), 1, "the value has not come back once");
    assert_eq!(call.freed.load(Ordering::Relaxed), 1, "the memory was not freed");
}

/// The function ends it while it is given up.
fn given_up_at_its_end() {
    let call = Call::new();
    let fires = task(|call: &Call| {
        call.expire(true);
        call.expire(true);
        false
    });
    let [_, has_value] = run(&call, [fires, task(Call::cancel)]);
    assert!(call.state.is_over(), "it has ended, and does not say so");
    assert_eq!(u64::from(!has_value), call.fired.load(Ordering::Relaxed), "done, and given back");
    assert_eq!(call.came_back.load(Ordering::Relaxed), 1, "the value has not come back once");
    assert_eq!(call.freed.load(Ordering::Relaxed), 1, "the memory was not freed");
}
