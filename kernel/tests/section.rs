//! The critical section on the host: between cores of a kernel on threads, and threads that are none.

use std::cell::Cell;
use std::thread;

use critical_section::{Mutex, with};
use magpie::arch::CoreId;
use magpie::sched::{self, Spawn};

static NUMBERS: Mutex<Cell<(u64, u64)>> = Mutex::new(Cell::new((0, 0)));
const CHANGES: u64 = 20_000;

/// Adds one to both, in a section with another one inside.
fn add() {
    with(|section| {
        let numbers = NUMBERS.borrow(section);
        let (left, right) = numbers.get();
        assert_eq!(left, right, "somebody was in another's section");
        numbers.set((left + 1, right));
        with(|inner| {
            let numbers = NUMBERS.borrow(inner);
            let (left, right) = numbers.get();
            numbers.set((left, right + 1));
        });
        assert_eq!(numbers.get(), (left + 1, right + 1), "leaving the inner one has left the outer one");
    });
}

#[test]
fn cores_and_threads_are_alone_in_it() {
    let kernel = || {
        sched::run_on_threads(4, 1, async {
            let processes: Vec<_> = (0..4)
                .filter_map(CoreId::new)
                .map(|core| {
                    let changes = async {
                        for _ in 0..CHANGES {
                            add();
                        }
                    };
                    Spawn::new().pinned(core).start(changes).expect("there is memory")
                })
                .collect();
            for process in processes {
                process.await.expect("it ends");
            }
        })
        .expect("the kernel runs");
    };
    thread::scope(|scope| {
        scope.spawn(kernel);
        for _ in 0..2 {
            scope.spawn(|| (0..CHANGES).for_each(|_| add()));
        }
    });
    assert_eq!(with(|section| NUMBERS.borrow(section).get()), (6 * CHANGES, 6 * CHANGES));
}
