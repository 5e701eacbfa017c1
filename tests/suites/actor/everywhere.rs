//! The checks that also run in the simulation and under miri (`magpie::actor::checks`).

use magpie::actor::checks;
use magpie::machine;
use magpie_tests::{Changed, Outcome, everywhere};

/// About how many messages each check sends, unless the boot argument `work` says otherwise. With many cores fewer: they
/// share few cores of a host, and hold each other's locks while they do not run.
fn usual_work() -> u64 {
    if machine::cores() <= 4 { 100_000 } else { 25_000 }
}

async fn run(name: &str) -> Outcome {
    // Who finds a mailbox full depends on its worker's being busy with the behaviour that fills it.
    let fills_mailboxes = name.contains("full_mailbox");
    let _whole_turns = fills_mailboxes.then(Changed::no_preemption).transpose()?;
    everywhere::run(checks::ALL, name, usual_work()).await
}

magpie::actor_checks!(magpie_tests::everywhere, super::run);
