//! How a process is woken: no wake-up is lost, none enqueues it twice, and a turn sees what its wakers wrote; and that a
//! queue with something in it stays flagged.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::{KillCount, ReadyMask, RunState, Unended};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Task, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "turns::no_wake_up_is_lost",
        preemptions: None,
        body: no_wake_up_is_lost,
        mutants: &[
            ordering("notify-relaxed"),
            ordering("begin-relaxed"),
            step("end-unasked"),
            step("notify-in-two"),
        ],
    },
    Model {
        name: "turns::two_wakers",
        preemptions: Some(3),
        body: two_wakers,
        mutants: &[ordering("notify-relaxed"), step("notify-in-two")],
    },
    Model {
        name: "turns::a_yield_keeps_wake_ups",
        preemptions: Some(3),
        body: a_yield_keeps_wake_ups,
        mutants: &[
            ordering("begin-relaxed"),
            ordering("begin-blind"),
            step("end-unasked"),
            step("notify-queues-running"),
        ],
    },
    Model {
        name: "turns::a_killed_one_ends",
        preemptions: None,
        body: a_killed_one_ends,
        mutants: &[
            step("kill-in-two"),
            step("begin-spares"),
            step("end-unasked"),
            // It also overwrites the kill.
            step("notify-in-two"),
        ],
    },
    Model {
        name: "turns::a_kill_is_counted_until_the_end",
        preemptions: None,
        body: a_kill_is_counted_until_the_end,
        mutants: &[step("finish-blind"), step("kill-overlooks-end"), ordering("unended-relaxed")],
    },
    Model {
        name: "turns::two_kills_are_one",
        preemptions: Some(3),
        body: two_kills_are_one,
        mutants: &[step("finish-blind"), step("kill-counts-each"), step("end-counts-each")],
    },
    Model {
        name: "turns::a_full_queue_is_flagged",
        preemptions: None,
        body: a_full_queue_is_flagged,
        mutants: &[ordering("flag-relaxed"), ordering("clear-relaxed"), step("unflag-unasked")],
    },
    Model {
        name: "turns::what_arrives_is_looked_at",
        preemptions: None,
        body: what_arrives_is_looked_at,
        mutants: &[ordering("flag-relaxed"), ordering("clear-relaxed")],
    },
    Model {
        name: "turns::an_owners_own_is_flagged",
        preemptions: None,
        body: an_owners_own_is_flagged,
        mutants: &[step("flag-own-any")],
    },
];

/// A process, what two wakers have for it, and how often it is in a queue.
struct Process {
    turns: RunState,
    given: [AtomicU64; 2],
    queued: AtomicU64,
}

impl Process {
    fn new() -> Self {
        Self {
            turns: RunState::new(),
            given: [AtomicU64::new(0), AtomicU64::new(0)],
            queued: AtomicU64::new(0),
        }
    }

    /// As a waker does. Relaxed: the word alone hands over what was given.
    fn give(&self, which: usize) {
        self.given[which].store(1, Ordering::Relaxed);
        if self.turns.notify() {
            self.queued.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// A turn that waits for more at its end. Which of the two it has seen, as bits.
    fn turn(&self) -> u64 {
        self.turns.begin();
        let seen = self.given[0].load(Ordering::Relaxed) | self.given[1].load(Ordering::Relaxed) << 1;
        if self.turns.end_pending() {
            self.queued.fetch_add(1, Ordering::AcqRel);
        }
        seen
    }

    /// A core that may take it from a queue: only then it has a turn, and the bit above the two is set.
    fn turn_if_queued(&self) -> u64 {
        match self.queued.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => self.turn() | 4,
            Err(_) => 0,
        }
    }
}

fn gives(which: usize) -> Task<Process, u64> {
    task(move |process: &Process| {
        process.give(which);
        0
    })
}

/// It is given something around one of its turns: either the turn sees that, or the process is in a queue again, once.
fn no_wake_up_is_lost() {
    let process = Arc::new(Process::new());
    // Somebody has taken it from a queue.
    process.turns.mark_queued();
    let runs = task(|process: &Process| process.turn());
    let [seen, _] = run(&process, [runs, gives(0)]);
    let queued = process.queued.load(Ordering::Acquire);
    assert!(queued <= 1, "it is in the queue twice");
    assert!(seen == 1 || queued == 1, "the wake-up was lost");
}

/// It is given something around a turn that yields, and the next, which another core runs: one of the two turns sees that,
/// or the process is in a queue again, once.
fn a_yield_keeps_wake_ups() {
    let process = Arc::new(Process::new());
    process.turns.mark_queued();
    let yields = task(|process: &Process| {
        process.turns.begin();
        let seen = process.given[0].load(Ordering::Relaxed);
        // The word stays as it is. The queue hands the process over.
        process.queued.fetch_add(1, Ordering::AcqRel);
        seen
    });
    let [seen, seen_later, _] = run(&process, [yields, task(Process::turn_if_queued), gives(0)]);
    let queued = process.queued.load(Ordering::Acquire);
    assert!(queued <= 1, "it is in the queue twice");
    assert!(queued == 1 || seen == 1 || seen_later & 1 == 1, "the wake-up was lost");
}

/// Two wake it while it waits: it is enqueued once, and the turn sees what both gave, or comes again.
fn two_wakers() {
    let process = Arc::new(Process::new());
    let [_, _, seen] = run(&process, [gives(0), gives(1), task(Process::turn_if_queued)]);
    let queued = process.queued.load(Ordering::Acquire);
    assert!(queued <= 1, "it is in the queue twice");
    assert!(seen == 7 || queued == 1, "a wake-up was lost");
}

/// It is killed around one of its turns, and somebody wakes it meanwhile: that turn finds it, or the next, and it is in a queue for that.
fn a_killed_one_ends() {
    let process = Arc::new(Process::new());
    process.turns.mark_queued();
    let runs = task(|process: &Process| {
        if process.turns.begin() {
            return 1;
        }
        if process.turns.end_pending() {
            process.queued.fetch_add(1, Ordering::AcqRel);
        }
        0
    });
    let kills = task(|process: &Process| {
        process.turns.kill();
        if process.turns.notify() {
            process.queued.fetch_add(1, Ordering::AcqRel);
        }
        0
    });
    let [found, _, _] = run(&process, [runs, kills, gives(0)]);
    let queued = process.queued.load(Ordering::Acquire);
    if found == 0 {
        assert_eq!(queued, 1, "it is in no queue, or in two");
        assert!(process.turns.begin(), "the kill was lost");
    } else {
        assert_eq!(queued, 0, "it has ended, and is in a queue");
    }
}

/// A process, and how many of its kind were killed and have not ended.
type Killed = (Process, KillCount, Unended);

fn last_turn() -> Task<Killed, u64> {
    task(|(process, kill_count, unended): &Killed| {
        process.turns.begin();
        if process.turns.finish() {
            kill_count.take_back(unended);
        }
        0
    })
}

fn kills() -> Task<Killed, u64> {
    task(|(process, kill_count, unended): &Killed| {
        if kill_count.kill(&process.turns, unended) {
            // As whoever is told of it acquires it.
            process.given[0].store(1, Ordering::Release);
        }
        0
    })
}

fn about_to_end() -> Arc<Killed> {
    let process = Process::new();
    process.turns.mark_queued();
    Arc::new((process, KillCount::new(), Unended::new()))
}

/// It is killed around its last turn, and a core is told of that: when that core sees that none is left it has ended; and when all is over
/// none is.
fn a_kill_is_counted_until_the_end() {
    let process = about_to_end();
    let looks = task(|(process, _, unended): &Killed| {
        let was_told = process.given[0].load(Ordering::Acquire) == 1;
        u64::from(was_told && unended.none() && !process.turns.is_done())
    });
    let [_, _, too_soon] = run(&process, [last_turn(), kills(), looks]);
    assert_eq!(too_soon, 0, "one that was killed goes on, and nobody looks for it");
    assert!(process.2.none(), "one that has ended is counted for ever");
}

/// Two kill it around its last turn: they count as one.
fn two_kills_are_one() {
    let process = about_to_end();
    run(&process, [last_turn(), kills(), kills()]);
    assert!(process.2.none(), "one that has ended is counted for ever, or twice");
}

/// Its owner's mask, and how much is in it.
type Queue = (ReadyMask, AtomicU64);

/// An empty queue that is flagged.
fn flagged() -> Arc<Queue> {
    let queue = (ReadyMask::new(), AtomicU64::new(0));
    queue.0.flag(1);
    Arc::new(queue)
}

/// A sender puts something into a queue that its owner has found empty, and takes out of the mask.
fn a_full_queue_is_flagged() {
    let queue = flagged();
    let puts = task(|(ready, items): &Queue| {
        // Relaxed: the mask alone hands it over.
        items.store(1, Ordering::Relaxed);
        ready.flag(1);
    });
    let finds_nothing = task(|(ready, items): &Queue| {
        if items.load(Ordering::Relaxed) == 0 {
            ready.unflag(1, || items.load(Ordering::Relaxed) == 0);
        }
    });
    run(&queue, [puts, finds_nothing]);
    assert_eq!(queue.0.bits(), 1, "nobody will look at what is in the queue");
}

/// A sender puts something where its owner looks only if the bit is set, and clears it before: the owner has seen that, or
/// will look again.
fn what_arrives_is_looked_at() {
    let inbox = flagged();
    let puts = task(|(ready, items): &Queue| {
        // Relaxed: the mask alone hands it over.
        items.store(1, Ordering::Relaxed);
        ready.flag(1);
        0
    });
    let looks = task(|(ready, items): &Queue| {
        if ready.bits() & 1 == 0 {
            return 0;
        }
        ready.clear(1);
        items.load(Ordering::Relaxed)
    });
    let [_, seen] = run(&inbox, [puts, looks]);
    assert!(seen == 1 || inbox.0.bits() & 1 == 1, "nobody will look at what has arrived");
}

/// The owner empties its queue and then puts something there itself, while a sender does.
fn an_owners_own_is_flagged() {
    let queue = flagged();
    let puts = task(|(ready, items): &Queue| {
        // Relaxed, here and below: the mask alone hands it over.
        items.fetch_add(1, Ordering::Relaxed);
        ready.flag(1);
    });
    let owns = task(|(ready, items): &Queue| {
        items.swap(0, Ordering::Relaxed);
        ready.unflag(1, || items.load(Ordering::Relaxed) == 0);
        items.fetch_add(1, Ordering::Relaxed);
        ready.flag_own(1);
    });
    run(&queue, [puts, owns]);
    assert_eq!(queue.0.bits(), 1, "nobody will look at what is in the queue");
}
