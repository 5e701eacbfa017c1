//! Timers: each core's queue of them, whose they are, and the one place that arms the hardware's comparator.
//!
//! Futures that wait for a timer are in `time/sleep.rs`: here nothing knows a process.

pub(crate) mod call_state;
pub(crate) mod comparator;
mod delayed_call;
pub(crate) mod ended;
pub(crate) mod lead;
pub(crate) mod owned;
pub(crate) mod per_core;
mod queue;
pub(crate) mod state;
pub(crate) mod timer;

pub(crate) use delayed_call::{DelayedCall, Held, TakeBack};
