//! Ask: a request with a reply as a future.
//!
//! A request is a message like any other: [`Request`] holds what is asked, and the [`Reply`] handle through
//! which one answer may be given. Both ends share a [slot], the one allocation of an ask. Whatever becomes
//! of the request, the asker is told: an answer, or why there will be none ([`AskError`]).
//!
//! A reply handle that is dropped says so itself: with the message at an actor that has ended, at the stop of
//! an executor, or by a behaviour that does not answer. Only a crash drops nothing; so each slot is listed
//! under whoever was asked ([`pending`]), and the end of one that has crashed fails what is listed under it.
//!
//! Nothing here knows who is asked, and how a request gets there.

mod answer;
mod error;
pub(crate) mod pending;
mod reply;
mod slot;

pub use answer::Answer;
pub(crate) use answer::{ask, prepare};
pub use error::AskError;
pub(crate) use pending::Asked;
pub use reply::{Reply, Request, Unwanted};
