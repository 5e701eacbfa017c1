//! Mutual exclusion and agreement between cores that a preemptive kernel can use.
//!
//! - [`SpinLock`]: data that one core at a time may touch;
//! - [`SeqLock`]: a small value that one core publishes and any core reads;
//! - [`IdleFlag`]: how a core announces that it will wait, and how it is claimed to be woken.

mod idle_flag;
mod preempt;
mod seq_lock;
mod spin_lock;

pub use idle_flag::{Depth, IdleFlag};
pub use preempt::{PreemptGuard, PreemptWord, preemption_is_disabled};
pub use seq_lock::{SeqLock, Words};
pub use spin_lock::{SpinGuard, SpinLock};
