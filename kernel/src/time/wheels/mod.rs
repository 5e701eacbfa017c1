//! The wheels: each core's timers, whose they are, and the one place that arms the hardware's comparator.
//!
//! Futures that wait for a timer are in `time/sleep.rs`: here nothing knows a process.

pub(crate) mod comparator;
mod delayed_call;
pub(crate) mod owned;
pub(crate) mod timers;
pub(crate) mod wheel;

pub(crate) use delayed_call::{DelayedCall, Held, TakeBack};
