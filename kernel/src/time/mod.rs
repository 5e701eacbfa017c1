//! Time: instants, and timers that wake processes.
//!
//! Each core has a [wheel](wheels) of its own, tickless: the core's hardware timer is armed for the next deadline,
//! the interrupt only sets a flag, and the core loop fires what is due, a bounded number at a time.

pub(crate) mod instant;
mod sleep;
pub(crate) mod wheels;

pub use instant::Instant;
pub use sleep::{Elapsed, Sleep, Timeout, background_timeout, sleep, sleep_until, timeout};
pub(crate) use wheels::owned::OwnedTimers;
pub(crate) use wheels::timers::{expire, next_deadline, take_out_of_crashed};
pub use wheels::timers::{fired, longest_pass, pending};
pub(crate) use wheels::{DelayedCall, Held, TakeBack, comparator};
