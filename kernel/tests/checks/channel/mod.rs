//! The promises of process mailboxes, as bodies that run anywhere: see [`crate::actor::checks`].

mod asking;
mod ends;
mod order;
mod selecting;
mod waiting;

use crate::actor::checks::{Check, checks};

/// Every check, in the order to run them.
pub const ALL: &[Check] = crate::channel_checks!(checks);

/// As [`actor_checks`](crate::actor_checks), with every check of process mailboxes.
#[macro_export]
macro_rules! channel_checks {
    ($($take:ident)::+ $(, $($more:tt)*)?) => {
        $($take)::+! { [
            order::each_senders_messages_come_once_in_order,
            order::urgent_messages_overtake,
            selecting::what_does_not_match_stays_in_order,
            selecting::no_message_is_looked_at_twice,
            selecting::an_urgent_match_goes_first,
            waiting::no_wake_up_is_lost,
            waiting::a_time_limit_loses_nothing,
            waiting::messages_come_when_they_are_due,
            waiting::what_finds_no_room_is_left_out,
            asking::a_process_answers,
            asking::who_gets_no_answer_is_told,
            ends::a_full_mailbox_returns_the_message,
            ends::a_dropped_mailbox_returns_the_message,
            ends::a_mailbox_without_addresses_says_so,
        ] $(, $($more)*)? }
    };
}

/// What a process's end makes of a check's result.
fn ended<T: core::fmt::Debug>(error: T) -> alloc::string::String {
    alloc::format!("{error:?}")
}
