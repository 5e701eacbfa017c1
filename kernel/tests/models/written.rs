//! What a core leaves for another to read, on its own stack: nobody reads what is not there any more.

use std::ptr::NonNull;

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::Written;

use crate::harness::{Model, Mutant, ordering, step};
use crate::tool::{Arc, Plain, pause, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "written::read_or_taken_back",
        preemptions: None,
        body: read_or_taken_back,
        mutants: &[
            ordering("leave-relaxed"),
            ordering("take-relaxed"),
            ordering("say-read-relaxed"),
            ordering("was-read-relaxed"),
            // Who asks says last that it is over. Without orderings nothing is taken back before it was read.
            Mutant { name: "take-back-unasked", rejected_by: &["loom"] },
        ],
    },
    Model {
        name: "written::next_one_asks",
        preemptions: Some(3),
        body: next_one_asks,
        mutants: &[ordering("take-relaxed"), step("take-unasked"), step("take-back-unasked")],
    },
];

/// What lies on the writer's stack when it is to be read, and when the writer has gone on.
const WRITTEN: u64 = 7;
const OTHER: u64 = 9;

/// The place, the writer's stack, and who asks: 0 while nobody does.
struct Cores {
    place: Written<Plain>,
    stack: Plain,
    asks: AtomicU64,
}

impl Cores {
    fn new() -> Arc<Self> {
        Arc::new(Self { place: Written::new(), stack: Plain::new(0), asks: AtomicU64::new(1) })
    }

    /// As `answer`, on the core that is asked; it gives up where it would go on waiting. What it has then is 0.
    fn answer(&self) -> u64 {
        let asks = self.asks.load(Ordering::Relaxed);
        if asks == 0 {
            return 0;
        }
        self.stack.set(WRITTEN);
        let words = NonNull::from(&self.stack);
        self.place.leave(words);
        for _ in 0..2 {
            let is_over = || self.asks.load(Ordering::Relaxed) != asks;
            if self.place.was_read() || (is_over() && self.place.take_back(words)) {
                // The stack is used for something else.
                self.stack.set(OTHER);
                break;
            }
            pause();
        }
        0
    }

    /// As `look_round`, once others have asked before. What it has read.
    fn look_round(&self) -> u64 {
        let mut read = 0;
        if let Some(words) = self.place.take() {
            // SAFETY: the model's stack; loom watches over what is in it.
            read = unsafe { words.as_ref() }.get();
            self.place.say_read();
        }
        self.asks.store(0, Ordering::Release);
        read
    }
}

fn judge(read: u64) {
    assert!(read == 0 || read == WRITTEN, "something else was read: {read}");
}

/// A core is asked, and answers late or in time.
fn read_or_taken_back() {
    let cores = Cores::new();
    let [_, read] = run(&cores, [task(Cores::answer), task(Cores::look_round)]);
    judge(read);
}

/// Behind the core that asks comes the next, while the one that was asked has not gone on yet.
fn next_one_asks() {
    let cores = Cores::new();
    let asks = task(|cores: &Cores| {
        let first = cores.look_round();
        cores.asks.store(2, Ordering::Relaxed);
        let second = cores.look_round();
        judge(first);
        judge(second);
        u64::from(first != 0) + u64::from(second != 0)
    });
    let [_, times] = run(&cores, [task(Cores::answer), asks]);
    assert!(times <= 1, "one answer was read twice");
}
