//! The promises of the actor system, as bodies that run anywhere: in the booted kernel and on the host's threads
//! (`tests/suites/actor`), and in the deterministic simulation (`kernel/tests/simulation.rs`).
//!
//! A body is a process. It returns what went wrong, or nothing.

mod asking;
mod bounds;
mod crowd;
mod hooks;
mod later;
mod lifetimes;
mod order;
mod placing;
mod sending;
mod storage;
mod storm;
mod watching;

use alloc::boxed::Box;
use alloc::string::String;
use core::future::Future;
use core::pin::Pin;

use super::{Config, MailboxVictim, StartError};
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::stats;

/// What came out: nothing, or what was broken.
pub type Verdict = Result<(), String>;

/// A running check.
pub type Running = Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// A check: its name says what is promised.
pub struct Check {
    /// `subject_promise`.
    pub name: &'static str,
    /// Starts it; the argument says about how many messages to send.
    pub start: fn(u64) -> Running,
}

/// The checks with these bodies.
macro_rules! checks {
    ([$($module:ident::$name:ident),* $(,)?]) => {
        &[$($crate::actor::checks::Check {
            name: concat!(stringify!($module), "::", stringify!($name)),
            start: |work| alloc::boxed::Box::pin($module::$name(work)),
        }),*]
    };
}
pub(crate) use checks;

/// Every check, in the order to run them.
pub const ALL: &[Check] = crate::actor_checks!(checks);

/// `actor_checks!(take, more)` is `take! { [module::check, ...], more }`, with every check of the actor system: the one list,
/// for what makes something of each of them.
#[macro_export]
macro_rules! actor_checks {
    ($($take:ident)::+ $(, $($more:tt)*)?) => {
        $($take)::+! { [
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
            storage::why_there_is_no_successor,
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
            later::an_interval_goes_on_until_it_is_cancelled,
            later::an_interval_ends_with_its_receiver,
            later::intervals_are_cancelled_while_they_fire,
            later::ticks_do_not_drift,
            watching::each_way_to_end_is_told_once,
            watching::who_has_ended_is_told_of_at_once,
            watching::what_is_cancelled_is_never_told,
            watching::no_bound_holds_an_end_back,
            watching::an_end_comes_before_mail,
            watching::ends_are_told_once_while_mailboxes_are_stolen,
        ] $(, $($more)*)? }
    };
}

macro_rules! ensure {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err(alloc::format!($($what)+));
        }
    };
}
pub(crate) use ensure;

/// Whether two values are equal, else what they are.
pub(crate) fn equal<T: PartialEq + core::fmt::Debug>(found: T, expected: T, what: &str) -> Verdict {
    if found == expected { Ok(()) } else { Err(alloc::format!("{what}: {found:?} instead of {expected:?}")) }
}

pub(crate) fn failed(error: impl core::fmt::Display) -> String {
    alloc::format!("{error}")
}

/// Counts how often it was dropped.
pub(crate) struct Dropped(pub(crate) &'static AtomicU64);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A counter for one run of a check; leaked, as checks run a few times.
pub(crate) fn counter() -> &'static AtomicU64 {
    Box::leak(Box::new(AtomicU64::new(0)))
}

pub(crate) fn count(counter: &AtomicU64) -> u64 {
    // Acquire: pairs with nothing; the executor has come to rest before counts are looked at.
    counter.load(Ordering::Acquire)
}

/// Does it again if a behaviour was suspended meanwhile, and gives back what came of it when none was: for promises that a
/// suspension would rightly change. On a busy host it can come to any behaviour.
async fn unsuspended<T, W: Future<Output = Result<T, String>>>(what: impl Fn() -> W) -> Result<T, String> {
    let suspended = || stats::worker_total(|worker| worker.detached_behaviours.get());
    loop {
        let before = suspended();
        let came = what().await;
        if suspended() == before {
            return came;
        }
    }
}

/// The executor that most checks use.
pub(crate) fn start() -> Result<super::Executor, String> {
    super::Executor::start(&Config::default()).map_err(failed)
}

/// One whose mailboxes are stolen as much as can be.
fn start_with_thieves(victim: MailboxVictim) -> Result<super::Executor, StartError> {
    super::Executor::start(&Config::default().victim(victim).thieves(64).reductions(50))
}
