//! Mutual exclusion and agreement between cores that a preemptive kernel can use.
//!
//! - [`SpinLock`]: data that one core at a time may touch;
//! - [`IdleFlag`]: how a core announces that it will wait, and how it is claimed to be woken;
//! - [`InHand`]: who has a thing in hand, taken under a lock and put down without it;
//! - [`OwnerHint`]: who has a thing that thieves move;
//! - [`GuestFlag`]: whether a thing is in the list of somebody who is not its owner;
//! - [`WordCell`]: a word that says what is in a place, and hands it over;
//! - [`detachment`]: a thing held aside, with a side queue for what comes meanwhile;
//! - [`ReadyMask`]: which queues may have something;
//! - [`TurnWord`]: whether a process waits, is queued or runs, and how it is woken;
//! - [`Quiescence`]: finding out that nothing is left to do;
//! - [`Census`]: how many live, and finding out that none does;
//! - [`Waiters`]: those who wait for one event, all of whom are told;
//! - [`LockWord`]: who holds an application's mutex, and whether that one has crashed;
//! - [`Standstill`]: what all cores are called for, and how all but one come to stand still;
//! - [`keep_waker`]: wakers that may be called anywhere;
//! - [`watch_crashes`]: who is told of a crash.

mod census;
mod crashes;
pub mod detachment;
mod guest_flag;
mod idle_flag;
mod in_hand;
mod kept_waker;
mod lock_word;
mod owner_hint;
mod preempt;
mod quiescence;
mod ready_mask;
mod spin_lock;
mod standstill;
mod turn_word;
mod waiters;
mod word_cell;

pub use census::Census;
pub use crashes::{Identity, tell_of_crash, watch_crashes};
pub use guest_flag::GuestFlag;
pub use idle_flag::{Depth, IdleFlag};
pub use in_hand::InHand;
pub use kept_waker::{Keeper, is_kept_for, keep_waker, register_keeper};
pub use lock_word::{Holder, LockWord, Taken};
pub use owner_hint::OwnerHint;
pub use preempt::{PreemptGuard, PreemptWord, preemption_is_disabled};
pub use quiescence::{Looked, Quiescence};
pub use ready_mask::ReadyMask;
pub use spin_lock::{SpinGuard, SpinLock};
pub use standstill::Standstill;
pub use turn_word::TurnWord;
pub use waiters::{Seat, Waiters};
pub use word_cell::WordCell;
