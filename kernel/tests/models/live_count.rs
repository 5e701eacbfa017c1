//! The count of those that live: zero is never early, and who waits for it is told.

use magpie::internals::sync::LiveCount;

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "live_count::never_early",
        preemptions: Some(3),
        body: never_early,
        mutants: &[
            ordering("live-count-add-relaxed"),
            ordering("live-count-sum-relaxed"),
            step("live-count-beginnings-first"),
        ],
    },
    Model {
        name: "live_count::who_waits_is_told",
        preemptions: None,
        body: who_waits_is_told,
        mutants: &[ordering("live-count-end-no-fence"), ordering("live-count-wait-no-fence")],
    },
];

/// One lives. It begets another, on another core than where it began, and ends; somebody looks meanwhile.
fn never_early() {
    let count = Arc::new(LiveCount::new(2).expect("memory"));
    count.begin(0);
    let lives = task(|count: &LiveCount| {
        count.begin(1);
        count.end(1, 1);
        true
    });
    let looks = task(|count: &LiveCount| count.is_none());
    let [_, none] = run(&count, [lives, looks]);
    assert!(!none, "one of the two lived all the time");
}

/// The last one ends while somebody begins to wait.
fn who_waits_is_told() {
    let count = Arc::new(LiveCount::new(1).expect("memory"));
    count.begin(0);
    let ends = task(|count: &LiveCount| count.end(0, 1));
    let waits = task(|count: &LiveCount| count.wait());
    let [tells, sees] = run(&count, [ends, waits]);
    assert!(tells || sees, "the waiter is never told");
}
