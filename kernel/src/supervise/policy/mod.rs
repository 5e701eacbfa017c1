//! What a supervisor decides: which children are started and stopped after which event, and when. Nothing here knows what a child is,
//! or how one is started; moments are durations since any fixed one.

pub(super) mod machine;
mod rules;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub(super) use machine::{Machine, Outcome, Step};
pub(super) use rules::Rules;
pub use rules::{Backoff, Restart, Strategy};
