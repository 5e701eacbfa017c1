//! The actor system on std threads: the same code as on the machine, without preemption.
//!
//! `cargo test -p magpie --features checks --test host_actor`. `MAGPIE_WORK` sets how much each check
//! does, `MAGPIE_CHECK` names some of them by a part of their names.

use magpie::actor::checks;
use magpie::arch::MAX_CORES;
use magpie::machine::{self, Machine, Place};
use magpie::sched;

const CORES: usize = 4;

#[test]
fn the_actor_system_keeps_its_promises_on_threads() {
    machine::describe(Machine {
        board: "host",
        application: "test",
        cores: CORES,
        places: [Place::default(); MAX_CORES],
        arguments: "",
        input: None,
    });
    let work = std::env::var("MAGPIE_WORK").map_or(100_000, |text| text.parse().expect("a number"));
    let wanted = std::env::var("MAGPIE_CHECK").unwrap_or_default();
    for check in checks::ALL.iter().filter(|check| check.name.contains(&wanted)) {
        eprintln!("{}", check.name);
        let running = (check.start)(work);
        match sched::run_on_threads(CORES, 1, running) {
            Ok(Ok(())) => {}
            Ok(Err(broken)) => panic!("{}: {broken}", check.name),
            Err(error) => panic!("{}: {error:?}", check.name),
        }
    }
}
