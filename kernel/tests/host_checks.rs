//! The checks of actors and process mailboxes on std threads, as a program that miri can run: it knows no list that
//! the linker collects, as the suites in `tests/` have. On threads at full size they run there.
//!
//! `cargo test -p magpie --features checks --test host_checks`. `MAGPIE_WORK` sets about how many messages each
//! check sends, `MAGPIE_CHECK` names some of them by a part of their names.

use magpie::arch::MAX_CORES;
use magpie::machine::{self, Location, Machine};
use magpie::{actor, channel, sched};

const CORES: usize = 4;
const WORK: u64 = 2_000;

#[test]
fn actors_and_process_mailboxes_keep_their_promises_on_threads() {
    machine::describe(Machine {
        board: "host",
        application: "test",
        cores: CORES,
        places: [Location::default(); MAX_CORES],
        arguments: "",
        input: None,
    });
    let work = std::env::var("MAGPIE_WORK").map_or(WORK, |text| text.parse().expect("a number"));
    let wanted = std::env::var("MAGPIE_CHECK").unwrap_or_default();
    let all = actor::checks::ALL.iter().chain(channel::checks::ALL);
    let mut ran = 0;
    for check in all.filter(|check| check.name.contains(&wanted)) {
        eprintln!("{}", check.name);
        match sched::run_on_threads(CORES, 1, (check.start)(work)) {
            Ok(Ok(())) => ran += 1,
            Ok(Err(broken)) => panic!("{}: {broken}", check.name),
            Err(error) => panic!("{}: {error:?}", check.name),
        }
    }
    assert!(ran > 0, "no check's name contains {wanted}");
}
