//! The events of a core, read by another while they are overwritten; and what an interrupt writes among them.

use magpie::internals::sync::{Reading, Ring};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "traces::overwritten_while_read",
        preemptions: Some(3),
        body: overwritten_while_read,
        mutants: &[
            step("event-not-marked"),
            ordering("event-without-fence"),
            ordering("event-stamped-relaxed"),
            ordering("event-read-relaxed"),
            ordering("event-read-without-fence"),
            step("event-read-once"),
        ],
    },
    Model {
        name: "traces::an_interrupt_writes_too",
        preemptions: Some(3),
        body: an_interrupt_writes_too,
        mutants: &[step("event-claimed-in-two-steps")],
    },
];

/// The words of the event with this number.
fn words(number: u64) -> [u64; 3] {
    [number + 1, number + 11, number + 21]
}

/// Reads what is there, from 0 on; how many were read.
fn read(ring: &Ring<2>) -> u64 {
    let (mut at, mut count) = (0, 0);
    while at < 3 {
        match ring.read(at) {
            Reading::Words(found) => {
                assert_eq!(found, words(at), "the words of event {at} do not belong together");
                at += 1;
                count += 1;
            }
            Reading::Overwritten(oldest) => {
                assert!(oldest > at, "no way on from {at}");
                at = oldest;
            }
            Reading::NotYet => break,
        }
    }
    count
}

fn overwritten_while_read() {
    let ring = Arc::new(Ring::<2>::new());
    let write = task(|ring: &Ring<2>| {
        (0..3).for_each(|number| ring.write(words(number)));
        0
    });
    let [_, count] = run(&ring, [write, task(read)]);
    assert!(count <= 3);
    assert_eq!(ring.read(0), Reading::Overwritten(1));
    assert_eq!(ring.read(2), Reading::Words(words(2)));
}

/// The interrupt is another thread here, which may do more than an interrupt can: it need not have ended when what it has interrupted goes on.
fn an_interrupt_writes_too() {
    let ring = Arc::new(Ring::<2>::new());
    let write = |from: u64| {
        task(move |ring: &Ring<2>| {
            ring.write([from; 3]);
            0
        })
    };
    run(&ring, [write(7), write(8)]);
    let mut found: std::vec::Vec<_> = (0..2)
        .map(|number| match ring.read(number) {
            Reading::Words([first, second, third]) => {
                assert!(first == second && second == third, "two events in one");
                first
            }
            other => panic!("event {number} is lost: {other:?}"),
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, [7, 8]);
}
