//! Ask: a request with a reply as a future.
//!
//! A request is a message like any other: [`Request`] holds what is asked, and the [`Reply`] handle through
//! which one answer may be given. A behaviour that answers at once never sees it: what it returns is sent for it. One that
//! answers later receives the request whole ([`Answers`]). Both ends share a [slot], the one allocation of an ask. Whatever becomes
//! of the request, the asker is told: an answer, or why there will be none ([`AskError`]).
//!
//! A reply handle that is dropped says so itself: with the message at an actor that has ended, at the stop of
//! an executor, or by a behaviour that does not answer. Only a crash drops nothing; so each slot is listed
//! under the actor that was asked (`run/pending_asks.rs`), and the end of a crashed actor fails what is listed under it.

mod answer;
mod answers;
mod error;
mod reply;
mod slot;

pub use answer::Answer;
pub use answers::{Answers, Direct, Kept};
pub use error::AskError;
pub use reply::{Reply, Request, Unwanted};
