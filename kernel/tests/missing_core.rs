//! A machine that has more cores than the scheduler could be started on, as one without memory for them has.

use magpie::actor::{Config, Executor, StartError};
use magpie::arch::MAX_CORES;
use magpie::machine::{self, Location, Machine};
use magpie::sched;

#[test]
fn an_executor_says_that_a_core_is_missing() {
    machine::describe(Machine {
        board: "host",
        application: "test",
        cores: 2,
        places: [Location::default(); MAX_CORES],
        arguments: "",
        input: None,
    });
    let started = sched::run_on_threads(1, 1, async {
        let all = Executor::start(&Config::default()).err();
        let those_there = Executor::start(&Config::default().workers(1));
        let dropped = match those_there {
            Ok(executor) => Some(executor.stop().await),
            Err(_) => None,
        };
        (all, dropped)
    });
    assert_eq!(started.ok(), Some((Some(StartError::NoSuchCore), Some(0))));
}
