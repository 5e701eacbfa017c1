//! Appending to a locked queue without a preemption guard: the steps of `arch/aarch64/locked_append.rs`, and of the interrupt that comes into
//! them.
//!
//! The steps are written anew here, over a checker's cells, because the sequence is assembly. What the interrupt finds is where the code is:
//! so there is a model for each kind of place.

use magpie::internals::arch::atomic::{AtomicU32, Ordering};
use magpie::internals::arch::cpu;

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, Task, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "locked_append::interrupted_before_it_counts",
        preemptions: Some(3),
        body: interrupted_before_it_counts,
        mutants: &[
            ordering("locked-append-take-relaxed"),
            ordering("locked-append-free-relaxed"),
            ordering("withdraw-free-relaxed"),
            step("withdraw-keeps-lock"),
        ],
    },
    Model {
        name: "locked_append::interrupted_when_it_counts",
        preemptions: Some(3),
        body: interrupted_when_it_counts,
        mutants: &[
            ordering("withdraw-free-relaxed"),
            step("withdraw-keeps-lock"),
            step("withdraw-forgets-count"),
            step("withdraw-always-anew"),
        ],
    },
    Model {
        name: "locked_append::interrupted_without_the_lock",
        preemptions: Some(3),
        body: interrupted_without_the_lock,
        mutants: &[step("withdraw-frees-others")],
    },
];

/// More than are ever appended.
const ROOM: usize = 4;

struct Queue {
    lock: AtomicU32,
    place: Plain,
    words: [Plain; ROOM],
    waiting: AtomicU32,
}

/// Where an interrupt comes to a sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Nowhere.
    Never,
    /// It has tried to take the lock, whatever came of that.
    Tried,
    /// The words are written, and do not count yet.
    Written,
    /// They count, and are not counted.
    Placed,
    /// They are counted.
    Counted,
}

/// What has become of an attempt.
#[derive(PartialEq, Eq)]
enum Ended {
    Appended,
    Refused,
    /// It is to begin anew.
    Withdrawn,
}

impl Queue {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            lock: AtomicU32::new(0),
            place: Plain::new(0),
            words: core::array::from_fn(|_| Plain::new(0)),
            waiting: AtomicU32::new(0),
        })
    }

    fn take(&self) -> bool {
        let acquire =
            if mutant("locked-append-take-relaxed") { Ordering::Relaxed } else { Ordering::Acquire };
        self.lock.compare_exchange(0, 1, acquire, Ordering::Relaxed).is_ok()
    }

    fn free(&self) {
        let release =
            if mutant("locked-append-free-relaxed") { Ordering::Relaxed } else { Ordering::Release };
        self.lock.store(0, release);
    }

    /// The interrupt gives the lock back.
    fn take_back(&self) {
        if mutant("withdraw-keeps-lock") {
            return;
        }
        let release = if mutant("withdraw-free-relaxed") { Ordering::Relaxed } else { Ordering::Release };
        self.lock.store(0, release);
    }

    /// The sequence once, with an interrupt there.
    fn attempt(&self, word: u64, at: At) -> Ended {
        let is_taken = self.take();
        if at == At::Tried && (is_taken || mutant("withdraw-frees-others")) {
            self.take_back();
            return Ended::Withdrawn;
        }
        if !is_taken {
            return Ended::Refused;
        }
        let place = self.place.get();
        self.words[place as usize].set(word);
        // Relaxed, here and below: written with the lock held, and a hint for anybody else.
        let waiting = self.waiting.load(Ordering::Relaxed);
        if at == At::Written {
            self.take_back();
            return Ended::Withdrawn;
        }
        self.place.set(place + 1);
        if at == At::Placed {
            if !mutant("withdraw-forgets-count") {
                self.waiting.store(waiting + 1, Ordering::Relaxed);
            }
            self.take_back();
            return if mutant("withdraw-always-anew") { Ended::Withdrawn } else { Ended::Appended };
        }
        self.waiting.store(waiting + 1, Ordering::Relaxed);
        if at == At::Counted {
            self.take_back();
            return if mutant("withdraw-always-anew") { Ended::Withdrawn } else { Ended::Appended };
        }
        self.free();
        Ended::Appended
    }

    /// As an application's code sends, with an interrupt at that place of the first attempt. Whether it has.
    fn append(&self, word: u64, at: At) -> bool {
        match self.attempt(word, at) {
            Ended::Withdrawn => self.attempt(word, At::Never) == Ended::Appended,
            ended => ended == Ended::Appended,
        }
    }

    /// As a worker does: waits for the lock, and looks through what is there. With the lock held.
    fn look(&self) {
        while !self.take() {
            cpu::relax();
        }
        let place = self.place.get();
        assert_eq!(
            u64::from(self.waiting.load(Ordering::Relaxed)),
            place,
            "the count is not that of the words"
        );
        for word in &self.words[..place as usize] {
            assert_ne!(word.get(), 0, "a word counts that was not written");
        }
        self.free();
    }
}

/// One appends 1, another 2, each interrupted there; a worker looks. (The two try: of several that wait loom would never come to an end.)
fn interrupted(first: At, second: At) {
    let queue = Queue::new();
    let appends = |word: u64, at: At| task(move |queue: &Queue| u64::from(queue.append(word, at)) * word);
    let looks: Task<Queue, u64> = task(|queue: &Queue| {
        queue.look();
        0
    });
    // Twice the first is not the second.
    let appended: u64 = run(&queue, [appends(1, first), appends(8, second), looks]).iter().sum();
    queue.look();
    let found: u64 = queue.words[..queue.place.get() as usize].iter().map(Plain::get).sum();
    assert_eq!(found, appended, "what was appended is not there once");
}

fn interrupted_before_it_counts() {
    interrupted(At::Written, At::Never);
}

fn interrupted_when_it_counts() {
    interrupted(At::Placed, At::Counted);
}

fn interrupted_without_the_lock() {
    interrupted(At::Tried, At::Never);
}
