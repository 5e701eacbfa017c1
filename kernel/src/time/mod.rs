//! Time: instants, and timers that wake processes.
//!
//! Each core has a timer queue of its own: the core's hardware timer is armed for the very tick at which the next timer is due,
//! the interrupt only sets a flag, and the core loop fires what is due, a bounded number at a time. Nothing fires early.
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

mod alarm;
pub(crate) mod instant;
mod interval;
mod schedule;
mod sleep;
pub(crate) mod timers;

pub(crate) use instant::ticks as ticks_of;
pub use instant::{Instant, of_ticks};
pub use interval::{Interval, Missed, interval, interval_at};
pub(crate) use schedule::Schedule;
pub use sleep::{Elapsed, Sleep, Timeout, background_timeout, sleep, sleep_until, timeout};
pub(crate) use timers::ended::free as free_ended;
pub(crate) use timers::lead::{hold_until, is_ahead};
pub(crate) use timers::owned::OwnedTimers;
pub(crate) use timers::per_core::{
    arm, expire, expire_one_urgent, next_deadline, next_urgent_deadline, take_out_of_crashed,
};
pub use timers::per_core::{fired, longest_pass, pending};
pub(crate) use timers::timer::Timer;
pub(crate) use timers::{DelayedCall, Held, TakeBack, comparator};
