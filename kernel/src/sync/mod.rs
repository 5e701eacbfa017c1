//! Mutual exclusion and agreement between cores that a preemptive kernel can use.
//!
//! - [`SpinLock`]: data that one core at a time may touch;
//! - [`IdleFlag`]: how a core announces that it will wait, and how it is claimed to be woken;
//! - [`ReadyMask`]: which queues may have something;
//! - [`TurnWord`]: whether a process waits, is queued or runs, and how it is woken;
//! - [`Quiescence`]: finding out that nothing is left to do;
//! - [`Waiters`]: those who wait for one event, all of whom are told;
//! - [`LockWord`]: who holds an application's mutex, and whether that one has crashed;
//! - [`Standstill`]: what all cores are called for, and how all but one come to stand still;
//! - [`keep_waker`]: wakers that may be called anywhere;
//! - [`watch_crashes`]: who is told of a crash.

mod crashes;
mod idle_flag;
mod kept_waker;
mod lock_word;
mod preempt;
mod quiescence;
mod ready_mask;
mod spin_lock;
mod standstill;
mod turn_word;
mod waiters;

pub use crashes::{Identity, tell_of_crash, watch_crashes};
pub use idle_flag::{Depth, IdleFlag};
pub use kept_waker::{Keeper, is_kept_for, keep_waker, register_keeper};
pub use lock_word::{Holder, LockWord, Taken};
pub use preempt::{PreemptGuard, PreemptWord, preemption_is_disabled};
pub use quiescence::{Looked, Quiescence};
pub use ready_mask::ReadyMask;
pub use spin_lock::{SpinGuard, SpinLock};
pub use standstill::Standstill;
pub use turn_word::TurnWord;
pub use waiters::{Seat, Waiters};
