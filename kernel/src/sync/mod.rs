//! Mutual exclusion and agreement between cores that a preemptive kernel can use.
//!
//! - [`SpinLock`]: data that one core at a time may touch;
//! - [`InHand`]: who has a thing in hand, taken under a lock and put down without it;
//! - [`OwnerHint`]: who has a thing that thieves move;
//! - [`GuestFlag`]: whether a thing is in the list of somebody who is not its owner;
//! - [`WordCell`]: a word that says what is in a place, and hands it over;
//! - [`detachment`]: a thing held aside, with a side queue for what comes meanwhile;
//! - [`Census`]: how many live, and finding out that none does;
//! - [`Waiters`]: those who wait for one event, all of whom are told;
//! - [`keep_waker`]: wakers that may be called anywhere.

mod census;
pub mod detachment;
mod guest_flag;
mod in_hand;
mod kept_waker;
mod owner_hint;
mod preempt;
mod spin_lock;
mod waiters;
mod word_cell;

pub use census::Census;
pub use guest_flag::GuestFlag;
pub use in_hand::InHand;
pub use kept_waker::{Keeper, is_kept_for, keep_waker, register_keeper};
pub use owner_hint::OwnerHint;
pub use preempt::{PreemptGuard, PreemptWord, preemption_is_disabled};
pub use spin_lock::{SpinGuard, SpinLock};
pub use waiters::{Seat, Waiters};
pub use word_cell::WordCell;
