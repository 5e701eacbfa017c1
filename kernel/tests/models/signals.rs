//! Signals that interrupts raise on several cores at once: one of them puts it into its list, and its loop sees what all those wrote
//! who left it to that one.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::RaisedFlag;

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "signals::two_cores",
        preemptions: Some(3),
        body: two_cores,
        mutants: &[
            step("raised-set-by-load"),
            ordering("raised-set-no-acquire"),
            ordering("raised-set-no-release"),
            ordering("raised-clear-by-store"),
            ordering("raised-clear-no-release"),
            step("raised-cleared-late"),
        ],
    },
    Model {
        name: "signals::three_cores",
        preemptions: Some(2),
        body: three_cores,
        mutants: &[
            step("raised-set-by-load"),
            ordering("raised-clear-by-store"),
            step("raised-cleared-late"),
        ],
    },
];

const CORES: usize = 3;

/// A signal, and what is known of it.
struct Signal {
    flag: RaisedFlag,
    /// Whether it is in a list. Stands for its link: written by who has set the flag and by that core's loop, and nothing but the flag
    /// orders them.
    listed: Plain,
    /// How often each core has had an interrupt: what its handler wrote before it raised the signal.
    had: [AtomicU64; CORES],
    /// How many of those the loops have seen when they sent.
    seen: [AtomicU64; CORES],
    sent: AtomicU64,
}

impl Signal {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            flag: RaisedFlag::new(),
            listed: Plain::new(0),
            had: core::array::from_fn(|_| AtomicU64::new(0)),
            seen: core::array::from_fn(|_| AtomicU64::new(0)),
            sent: AtomicU64::new(0),
        })
    }

    /// An interrupt of this core's, its number, and the core's loop after it. As `Raisable::raise` and `Raised::carry_out`.
    fn interrupt(&self, core: usize, number: u64) {
        self.had[core].store(number, Ordering::Relaxed);
        if !self.flag.set() {
            return;
        }
        assert_eq!(self.listed.get(), 0, "it is put into a second list");
        self.listed.set(1);
        // The loop.
        self.listed.set(0);
        if mutant("raised-cleared-late") {
            self.send();
            self.flag.clear();
        } else {
            self.flag.clear();
            self.send();
        }
    }

    fn send(&self) {
        for (had, seen) in self.had.iter().zip(&self.seen) {
            // Relaxed: what orders is the flag. Two loops may send at once.
            seen.fetch_max(had.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// All that was raised was followed by a message that came of it.
    fn judge(&self, raised: u64) {
        for (had, seen) in self.had.iter().zip(&self.seen) {
            assert_eq!(
                had.load(Ordering::Relaxed),
                seen.load(Ordering::Relaxed),
                "an interrupt was not seen"
            );
        }
        let sent = self.sent.load(Ordering::Relaxed);
        assert!(0 < sent && sent <= raised, "{sent} messages of {raised} interrupts");
    }
}

/// Two interrupts on one core, one on another.
fn two_cores() {
    let signal = Signal::new();
    let first = task(|signal: &Signal| {
        signal.interrupt(0, 1);
        signal.interrupt(0, 2);
    });
    run(&signal, [first, task(|signal: &Signal| signal.interrupt(1, 1))]);
    signal.judge(3);
}

/// One on each of three.
fn three_cores() {
    let signal = Signal::new();
    let raises = |core| task(move |signal: &Signal| signal.interrupt(core, 1));
    run(&signal, [raises(0), raises(1), raises(2)]);
    signal.judge(3);
}
