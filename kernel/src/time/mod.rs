//! Time: instants, and timers that wake processes.
//!
//! Each core has a timer wheel of its own, tickless: the core's hardware timer is armed for the next deadline,
//! the interrupt only sets a flag, and the core loop fires what is due, a bounded number at a time.
//!
//! ```
//! # use magpie::{sched, time};
//! use core::time::Duration;
//! # sched::run_on_threads(2, 1, async {
//! let nap = sched::spawn(time::sleep(Duration::from_millis(2)));
//! sched::out_of_work().await;
//! assert_eq!(time::pending(), 0, "a pending timer is work");
//! magpie::log::text!("{} timers fired, in {} steps at a time at most", time::fired(), time::longest_pass());
//! # drop(nap);
//! # }).unwrap();
//! ```

pub(crate) mod instant;
mod sleep;
pub(crate) mod wheels;

pub use instant::{Instant, of_ticks};
pub use sleep::{Elapsed, Sleep, Timeout, background_timeout, sleep, sleep_until, timeout};
pub(crate) use wheels::owned::OwnedTimers;
pub(crate) use wheels::timers::{expire, next_deadline, next_urgent_deadline, take_out_of_crashed};
pub use wheels::timers::{fired, longest_pass, pending};
pub(crate) use wheels::{DelayedCall, Held, TakeBack, comparator};
