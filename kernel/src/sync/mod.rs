//! Mutual exclusion and agreement between cores that a preemptive kernel can use.
//!
//! - [`SpinLock`]: data that one core at a time may touch;
//! - [`SeqLock`]: a small value that one core publishes and any core reads;
//! - [`IdleFlag`]: how a core announces that it will wait, and how it is claimed to be woken;
//! - [`InHand`]: who has a thing in hand, taken under a lock and put down without it;
//! - [`OwnerHint`]: who has a thing that thieves move;
//! - [`WordCell`]: a word that says what is in a place, and hands it over;
//! - [`detachment`]: a thing held aside, with a side queue for what comes meanwhile;
//! - [`ReadyMask`]: which queues may have something;
//! - [`TurnWord`]: whether a process waits, is queued or runs, and how it is woken;
//! - [`Quiescence`]: finding out that nothing is left to do;
//! - [`Census`]: how many live, and finding out that none does.

mod census;
pub mod detachment;
mod idle_flag;
mod in_hand;
mod owner_hint;
mod preempt;
mod quiescence;
mod ready_mask;
mod seq_lock;
mod spin_lock;
mod turn_word;
mod word_cell;

pub use census::Census;
pub use idle_flag::{Depth, IdleFlag};
pub use in_hand::InHand;
pub use owner_hint::OwnerHint;
pub use preempt::{PreemptGuard, PreemptWord, preemption_is_disabled};
pub use quiescence::{Looked, Quiescence};
pub use ready_mask::ReadyMask;
pub use seq_lock::{SeqLock, Words};
pub use spin_lock::{SpinGuard, SpinLock};
pub use turn_word::TurnWord;
pub use word_cell::WordCell;
