//! Mutual exclusion and agreement between cores that a preemptive kernel can use.
//!
//! - [`SpinLock`]: data that one core at a time may touch;
//! - [`SpinWait`]: what a core does that waits for another;
//! - [`Waiters`]: those who wait for one event, all of whom are told;
//! - [`keep_waker`]: wakers that may be called anywhere;
//! - [`ReferenceCount`]: how many keep a thing, and who is the last;
//! - [`watch_crashes`]: who is told of a crash;
//! - `set_once`: a value that is set once, by whoever may be preempted;
//! - [`PaidBy`]: who pays for memory;
//! - [`critical_section`]: what libraries that know no kernel take for mutual exclusion.

mod account;
mod crashes;
#[cfg(not(any(loom, shuttle)))]
pub(crate) mod critical_section;
mod kept_waker;
mod preempt;
mod reference_count;
mod section_lock;
#[cfg(not(loom))]
mod set_once;
mod spin_lock;
mod spin_wait;
mod waiters;

pub use account::AccountWord;
pub(crate) use account::{PaidBy, account_here};
pub use crashes::{CrashNumber, Identity, tell_of_crash, watch_crashes};
pub use kept_waker::{Keeper, is_kept_for, is_kept_for_crashed, keep_waker, register_keeper, take_kept};
pub use preempt::{PreemptGuard, PreemptWord, preemption_is_disabled};
pub use reference_count::ReferenceCount;
pub use section_lock::{Entered, SectionLock};
#[cfg(not(loom))]
pub(crate) use set_once::set_once;
pub use spin_lock::{SpinGuard, SpinLock};
pub use spin_wait::SpinWait;
pub use waiters::{Seat, Waiters};
