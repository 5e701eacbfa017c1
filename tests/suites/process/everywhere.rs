//! The checks that also run on the host (`magpie::process_mailbox::checks`), one test each.

use magpie::process_mailbox::checks;
use magpie_tests::{Failure, Outcome, amount, ensure_eq, kernel_test};

/// About how many messages each check sends, unless the boot argument `work` says otherwise.
const WORK: u64 = 100_000;

async fn run(name: &str) -> Outcome {
    let Some(check) = checks::ALL.iter().find(|check| check.name == name) else {
        return Err(Failure(alloc::format!("there is no check {name}")));
    };
    let work = amount("work", WORK);
    (check.start)(work).await.map_err(Failure)
}

macro_rules! everywhere {
    ($($module:ident::$name:ident),* $(,)?) => {
        const NAMES: &[&str] = &[$(concat!(stringify!($module), "::", stringify!($name))),*];

        $(mod $name {
            use super::{kernel_test, run};

            kernel_test! {
                async fn check() -> Outcome {
                    run(concat!(stringify!($module), "::", stringify!($name))).await
                }
            }
        })*
    };
}

everywhere![
    order::each_senders_messages_come_once_in_order,
    order::urgent_messages_overtake,
    selecting::what_does_not_match_stays_in_order,
    selecting::no_message_is_looked_at_twice,
    selecting::an_urgent_match_goes_first,
    waiting::no_wake_up_is_lost,
    waiting::a_time_limit_loses_nothing,
    waiting::messages_come_when_they_are_due,
    ends::a_full_mailbox_returns_the_message,
    ends::a_dropped_mailbox_returns_the_message,
    ends::a_mailbox_without_addresses_says_so,
];

kernel_test! {
    /// No check is left out here.
    async fn every_check_has_its_test() -> Outcome {
        ensure_eq!(NAMES.len(), checks::ALL.len(), "tests, for so many checks");
        Ok(())
    }
}
