//! Time: instants, and timers that wake processes.
//!
//! Each core has a [wheel] of its own, tickless: the core's hardware timer is armed for the next deadline,
//! the interrupt only sets a flag, and the core loop fires what is due, a bounded number at a time.

mod alarm;
mod instant;
mod owned;
mod sleep;
mod timers;
mod wheel;

pub(crate) use alarm::{Alarm, Held};
pub use instant::Instant;
pub(crate) use owned::OwnedTimers;
pub use sleep::{Elapsed, Sleep, Timeout, background_timeout, sleep, sleep_until, timeout};
pub(crate) use timers::{expire, next_deadline};
pub use timers::{fired, longest_pass, pending};
