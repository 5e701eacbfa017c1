//! Standing still: what the leader does while the others stand, it does alone, one time after the other. And each of them goes on.

use magpie::internals::arch::atomic::{AtomicBool, Ordering};
use magpie::internals::sync::Standstill;

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, pause, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "standstill::the_leader_is_alone",
        preemptions: Some(3),
        body: the_leader_is_alone,
        mutants: &[
            ordering("standstill-stand-relaxed"),
            ordering("standstill-lower-relaxed"),
            step("standstill-go-unasked"),
        ],
    },
    Model {
        name: "standstill::whoever_stands_goes_on",
        preemptions: None,
        body: whoever_stands_goes_on,
        mutants: &[step("standstill-wait-unasked")],
    },
];

const CALL: u32 = 2;
const FOLLOWER: u64 = 1;

struct Shared {
    standstill: Standstill,
    data: Plain,
    /// The follower does not answer any more.
    has_gone: AtomicBool,
}

/// One changes the data whenever it does not stand, the other leads twice and changes it when the first stands.
fn the_leader_is_alone() {
    let shared = Arc::new(Shared {
        standstill: Standstill::new(),
        data: Plain::new(0),
        has_gone: AtomicBool::new(false),
    });
    let follows = task(|shared: &Shared| {
        for _ in 0..2 {
            shared.data.set(shared.data.get() + 1);
            shared.standstill.stand(FOLLOWER, CALL, || {}, pause);
        }
        shared.has_gone.store(true, Ordering::Release);
        2
    });
    let leads = task(|shared: &Shared| {
        let mut changes = 0;
        for _ in 0..2 {
            if !shared.standstill.lead(CALL) {
                continue;
            }
            // Who has gone changes nothing any more.
            let mut is_alone = false;
            while !is_alone {
                is_alone =
                    shared.standstill.standing() == FOLLOWER || shared.has_gone.load(Ordering::Acquire);
                if !is_alone {
                    pause();
                }
            }
            shared.data.set(shared.data.get() + 1);
            changes += 1;
            shared.standstill.end(CALL);
        }
        changes
    });
    let changes: u64 = run(&shared, [follows, leads]).iter().sum();
    assert_eq!(shared.data.get(), changes, "a change was lost");
}

/// A core that is interrupted once more while it begins to stand takes that back. It waits until it is interrupted, and is when it is over.
fn whoever_stands_goes_on() {
    struct Shared {
        standstill: Standstill,
        /// An interrupt is pending. The controller keeps it: whoever sends one has written what it is about.
        is_pending: AtomicBool,
    }
    let shared = Arc::new(Shared { standstill: Standstill::new(), is_pending: AtomicBool::new(false) });
    let follows = task(|shared: &Shared| {
        let take_back = || drop(shared.is_pending.swap(false, Ordering::AcqRel));
        let wait = || {
            while !shared.is_pending.load(Ordering::Acquire) {
                pause();
            }
        };
        shared.standstill.stand(FOLLOWER, CALL, take_back, wait);
        0
    });
    let leads = task(|shared: &Shared| {
        assert!(shared.standstill.lead(CALL), "nobody else leads");
        shared.is_pending.swap(true, Ordering::AcqRel);
        // Whether it stands by now or never will, as one that has given up does.
        shared.standstill.end(CALL);
        shared.is_pending.swap(true, Ordering::AcqRel);
        0
    });
    run(&shared, [follows, leads]);
}
