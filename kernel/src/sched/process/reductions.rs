//! Reductions: what a process is charged for what it does in one turn.
//!
//! The count lies in the stack block, which travels with the code, so charging needs no core and no
//! atomic. A turn that has used its reductions is asked to yield: every future of the kernel that a
//! process awaits (receive, sleep, join) asks [`is_exhausted`] first. What is charged beyond a turn's reductions is counted
//! too.

use crate::mem::stack::StackBlock;

/// Charges the running process so many reductions. To send or to receive one message is one.
#[inline(always)]
pub fn charge(reductions: u64) {
    StackBlock::current().charge(reductions);
}

/// What the running turn was charged.
pub(crate) fn charged() -> u64 {
    StackBlock::current().charged()
}

/// Whether the running process has used up the reductions of its turn, and should let others run.
#[inline(always)]
pub fn is_exhausted() -> bool {
    StackBlock::current().is_exhausted()
}
