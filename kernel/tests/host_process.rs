//! Process mailboxes on std threads: the same code as on the machine, without preemption.
//!
//! `cargo test -p magpie --features checks --test host_process`. `MAGPIE_WORK` sets how much each check does.

use magpie::arch::MAX_CORES;
use magpie::machine::{self, Machine, Place};
use magpie::process_mailbox::checks;
use magpie::sched;

#[test]
fn process_mailboxes_keep_their_promises_on_threads() {
    let work = std::env::var("MAGPIE_WORK").map_or(100_000, |text| text.parse().expect("a number"));
    machine::describe(Machine {
        board: "host",
        application: "test",
        cores: 4,
        places: [Place::default(); MAX_CORES],
        arguments: "",
        input: None,
    });
    for check in checks::ALL {
        eprintln!("{}", check.name);
        match sched::run_on_threads(4, 1, (check.start)(work)) {
            Ok(Ok(())) => {}
            Ok(Err(broken)) => panic!("{}: {broken}", check.name),
            Err(error) => panic!("{}: {error:?}", check.name),
        }
    }
}
