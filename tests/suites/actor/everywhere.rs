//! The checks that also run in the simulation and under miri (`magpie::actor::checks`).

use magpie::actor::checks;
use magpie::machine;
use magpie_tests::{Changed, Outcome, amount, everywhere};

/// About how many messages each check sends, unless the boot argument `work` says otherwise. With many cores fewer: they
/// share few cores of a host, and hold each other's locks while they do not run.
fn usual_work() -> u64 {
    if machine::cores() <= 4 { 100_000 } else { 25_000 }
}

async fn run(name: &str) -> Outcome {
    // Who finds a mailbox full depends on its worker's being busy with the behaviour that fills it.
    let fills_mailboxes = name.contains("full_mailbox");
    let _whole_turns = fills_mailboxes.then(Changed::no_preemption).transpose()?;
    everywhere::run(checks::ALL, name, amount("work", usual_work())).await
}

magpie_tests::everywhere!(
    checks::ALL,
    super::run,
    [
        sending::chained_sends_arrive_in_order,
        sending::one_message_to_many,
        sending::large_messages_arrive_whole,
        sending::an_ended_actor_returns_the_message,
        sending::sends_are_charged,
        lifetimes::each_outcome_drops_once,
        lifetimes::stop_messages_end_actors,
        lifetimes::undelivered_mail_is_dropped_once,
        lifetimes::the_count_of_the_living_is_never_early,
        lifetimes::handles_outlive_their_executor,
        lifetimes::executors_start_while_workers_are_woken,
        hooks::an_actor_starts_and_stops_once,
        hooks::no_bound_forgets_a_beginning,
        hooks::what_had_no_time_to_start_is_no_lost_message,
        storage::memory_is_used_again_and_old_addresses_are_not,
        storage::vacant_storage_has_one_successor,
        storage::a_retired_actor_is_taken_once,
        storage::a_static_actor_belongs_to_the_user,
        storage::a_storage_that_is_used_up_says_so,
        storage::the_last_of_a_storage_has_no_successor,
        bounds::full_mailboxes_refuse,
        bounds::full_mailboxes_forget_the_newest,
        bounds::full_mailboxes_forget_the_oldest,
        bounds::senders_wait_for_room,
        bounds::a_mailbox_grows_without_loss,
        placing::pinned_actors_stay,
        placing::neighbours_share_a_core,
        placing::wrong_configurations_are_refused,
        crowd::actors_come_and_go_while_mailboxes_are_stolen,
        order::exactly_once_in_order,
        storm::nothing_is_lost_under_constant_stealing,
        storm::nothing_is_lost_while_guests_come_and_go,
        asking::requests_are_answered,
        asking::an_answer_may_come_later,
        asking::who_gets_no_answer_is_told,
        asking::a_full_mailbox_gives_the_question_back,
        asking::an_actor_asks_another,
        later::messages_come_when_they_are_due,
        later::each_is_sent_or_taken_back,
        later::what_cannot_be_sent_is_dropped_once,
    ]
);
