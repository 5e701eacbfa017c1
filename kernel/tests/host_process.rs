//! Process mailboxes on std threads: the same code as on the machine, without preemption.
//!
//! `cargo test -p magpie --features checks --test host_process`. `MAGPIE_WORK` sets how much each check does,
//! `MAGPIE_CHECK` names some of them by a part of their names.

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
    let wanted = std::env::var("MAGPIE_CHECK").unwrap_or_default();
    for check in checks::ALL.iter().filter(|check| check.name.contains(&wanted)) {
        eprintln!("{}", check.name);
        match sched::run_on_threads(4, 1, (check.start)(work)) {
            Ok(Ok(())) => {}
            Ok(Err(broken)) => panic!("{}: {broken}", check.name),
            Err(error) => panic!("{}: {error:?}", check.name),
        }
    }
}
