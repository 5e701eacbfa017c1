//! Mutual exclusion that a preemptive kernel can use.

mod preempt;
mod spin_lock;

pub use preempt::{PreemptGuard, PreemptWord, preemption_is_disabled};
pub use spin_lock::{SpinGuard, SpinLock};
