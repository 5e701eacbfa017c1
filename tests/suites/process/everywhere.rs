//! The checks that also run under miri (`magpie::channel::checks`).

use magpie::channel::checks;
use magpie_tests::{Outcome, amount, everywhere};

/// About how many messages each check sends, unless the boot argument `work` says otherwise.
const WORK: u64 = 100_000;

async fn run(name: &str) -> Outcome {
    everywhere::run(checks::ALL, name, amount("work", WORK)).await
}

magpie_tests::everywhere!(
    checks::ALL,
    super::run,
    [
        order::each_senders_messages_come_once_in_order,
        order::urgent_messages_overtake,
        selecting::what_does_not_match_stays_in_order,
        selecting::no_message_is_looked_at_twice,
        selecting::an_urgent_match_goes_first,
        waiting::no_wake_up_is_lost,
        waiting::a_time_limit_loses_nothing,
        waiting::messages_come_when_they_are_due,
        asking::a_process_answers,
        asking::who_gets_no_answer_is_told,
        ends::a_full_mailbox_returns_the_message,
        ends::a_dropped_mailbox_returns_the_message,
        ends::a_mailbox_without_addresses_says_so,
    ]
);
