//! The lock of critical sections: one holder at a time, which may enter again.

use core::num::NonZeroUsize;

use magpie::internals::arch::cpu;
use magpie::internals::sync::{Entered, SectionLock};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "section::one_at_a_time",
        preemptions: None,
        body: one_at_a_time,
        mutants: &[
            ordering("section-enter-relaxed"),
            ordering("section-leave-relaxed"),
            step("section-enter-in-two"),
            step("section-held-by-anybody"),
        ],
    },
    Model {
        name: "section::entered_again",
        preemptions: None,
        body: entered_again,
        mutants: &[step("section-again-unsaid")],
    },
];

struct Shared {
    lock: SectionLock,
    data: Plain,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self { lock: SectionLock::new(), data: Plain::new(0) })
    }

    fn enter(&self, own: NonZeroUsize) -> Entered {
        loop {
            match self.lock.enter(own) {
                Some(entered) => return entered,
                None => cpu::relax(),
            }
        }
    }

    fn change(&self) {
        self.data.set(self.data.get() + 1);
    }
}

const FIRST: NonZeroUsize = NonZeroUsize::new(1).unwrap();
const SECOND: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Two change the data, once each.
fn one_at_a_time() {
    let shared = Shared::new();
    let changes = |own: NonZeroUsize| {
        task(move |shared: &Shared| {
            let entered = shared.enter(own);
            shared.change();
            shared.lock.leave(entered);
        })
    };
    run(&shared, [changes(FIRST), changes(SECOND)]);
    assert_eq!(shared.data.get(), 2, "a change was lost");
}

/// One enters again in its section, leaves that, and goes on.
fn entered_again() {
    let shared = Shared::new();
    let twice = task(|shared: &Shared| {
        let outer = shared.enter(FIRST);
        let inner = shared.enter(FIRST);
        shared.change();
        shared.lock.leave(inner);
        shared.change();
        shared.lock.leave(outer);
    });
    let once = task(|shared: &Shared| {
        let entered = shared.enter(SECOND);
        let before = shared.data.get();
        assert!(before != 1, "it was entered in the middle of another's section");
        shared.change();
        shared.lock.leave(entered);
    });
    run(&shared, [twice, once]);
    assert_eq!(shared.data.get(), 3, "a change was lost");
}
