//! What is sent before its moment, because the core has begun with it early, is seen by nobody before that moment: on the core itself,
//! whose turns are held, and by a thief.
//!
//! The clock is a thread that ticks. A mailbox is one that stays with a worker of the core, or one that a thief may take.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::{Held, SpinLock};

use crate::harness::{Model, Mutant, step};
use crate::tool::{Arc, Plain, Task, mutant, pause, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "held::two_moments",
        preemptions: Some(3),
        body: two_moments,
        mutants: &[
            seldom("held-last"),
            step("held-not-noted"),
            seldom("held-taken-by-any"),
            step("held-unread"),
        ],
    },
    Model {
        name: "held::a_turn_that_is_left",
        preemptions: None,
        body: a_turn_that_is_left,
        mutants: &[seldom("held-fires-in-a-turn"), step("held-not-noted")],
    },
    Model {
        name: "held::a_thief",
        preemptions: Some(2),
        body: a_thief,
        mutants: &[step("held-wherever"), step("held-moves")],
    },
];

/// One that loom alone rejects: that a whole turn comes before the clock's next tick is seldom in random schedules.
const fn seldom(name: &'static str) -> Mutant {
    Mutant { name, rejected_by: &["loom"] }
}

/// A core, its clock, and the mailbox of one of its workers.
struct Core {
    clock: AtomicU64,
    held: Held,
    /// Whether the mailbox never leaves the core's worker.
    stays: bool,
    /// Whose it is: 0 the core's, 1 a thief's. And the moments of what is in it, a bit each.
    mailbox: SpinLock<(Plain, Plain)>,
}

impl Core {
    fn new(stays: bool) -> Arc<Self> {
        Arc::new(Self {
            clock: AtomicU64::new(0),
            held: Held::new(),
            stays,
            mailbox: SpinLock::new((Plain::new(0), Plain::new(0))),
        })
    }

    /// The time goes on to 2.
    fn ticks() -> Task<Self, u64> {
        task(|core: &Self| {
            core.clock.store(1, Ordering::Release);
            core.clock.store(2, Ordering::Release);
            0
        })
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::Acquire)
    }

    /// `lead::hold_until`.
    fn hold_until(&self, moment: u64) {
        while self.now() < moment {
            pause();
        }
    }

    /// A delayed call fires early: `early::begin`, and what it is for.
    fn fires(&self, moment: u64) {
        if self.now() < moment && !self.held.may_go_first(moment, self.stays) {
            self.hold_until(moment);
        }
        let mailbox = self.mailbox.lock();
        mailbox.1.set(mailbox.1.get() | 1 << moment);
    }

    /// `core_loop::begin_turn`, of a worker or of another process.
    fn begins(&self, is_resident: bool) {
        if self.held.is_some() {
            self.hold_until(self.held.take(is_resident));
        }
    }

    /// The worker of that number goes through its mailbox. The bits of the moments that were seen.
    fn sees(&self, worker: u64) -> u64 {
        let mailbox = self.mailbox.lock();
        if mailbox.0.get() != worker {
            return 0;
        }
        let moments = mailbox.1.get();
        mailbox.1.set(0);
        let now = self.now();
        assert!(moments >> now <= 1, "a message was seen before its moment");
        moments
    }
}

/// Two calls, the later one carried out first; then a turn of another process, and one of the worker.
fn two_moments() {
    let core = Core::new(true);
    let turns = task(|core: &Core| {
        core.fires(2);
        core.fires(1);
        core.begins(false);
        core.begins(true);
        core.sees(0)
    });
    let [_, seen] = run(&core, [Core::ticks(), turns]);
    assert_eq!(seen, 6, "a message was lost");
}

/// A call fires while the worker's turn is interrupted, which then goes on: it does so only where nothing was fired. If something was, the
/// turn's rest was suspended, and the worker has a new turn.
fn a_turn_that_is_left() {
    let core = Core::new(true);
    let turns = task(|core: &Core| {
        core.begins(true);
        let mut seen = core.sees(0);
        // The timer's interrupt: the loop goes on in the place of the turn, as `preempt::finish` has it.
        if mutant("held-fires-in-a-turn") {
            core.fires(1);
            seen |= core.sees(0);
        } else {
            core.fires(1);
            core.begins(true);
            seen |= core.sees(0);
        }
        seen
    });
    let [_, seen] = run(&core, [Core::ticks(), turns]);
    assert_eq!(seen, 2, "the message was lost");
}

/// The mailbox may be taken by a thief, who looks into it at once: what is sent there waits for its moment first.
fn a_thief() {
    let core = Core::new(mutant("held-moves"));
    let turns = task(|core: &Core| {
        core.fires(1);
        core.begins(true);
        core.sees(0)
    });
    let steals = task(|core: &Core| {
        core.mailbox.lock().0.set(1);
        core.sees(1)
    });
    let [_, own, stolen] = run(&core, [Core::ticks(), turns, steals]);
    let left = core.mailbox.lock().1.get();
    assert_eq!(own + stolen + left, 2, "the message was lost, or is there twice");
}
