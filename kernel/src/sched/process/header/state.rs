//! What a process is doing: its run state, the stack that it is suspended on, and what both come to for who asks.

use core::fmt;

use super::Header;
use crate::arch::atomic::Ordering;
use crate::mem::stack::StackBlock;
use crate::sched::process::kill_count::KillCount;
use crate::sched::process::run_state::RunState;

/// What a process is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ProcessState {
    /// It waits for something, and nobody has woken it.
    Waiting,
    /// It is in a queue for its next turn.
    Ready,
    /// A core runs it.
    Running,
    /// It was interrupted in its turn, and is in a queue to go on.
    Suspended,
    /// It has ended.
    Ended,
}

impl fmt::Display for ProcessState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Waiting => "waiting",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Ended => "ended",
        })
    }
}

impl Header {
    /// Whether the process, which the caller has taken from a queue, has ended a turn by itself before, or is suspended in
    /// one. Relaxed, here and below: a hint of how it will behave.
    pub(crate) fn has_yielded(&self) -> bool {
        self.run_state.has_begun() || self.has_yielded.load(Ordering::Relaxed)
    }

    /// Whether it has ended a turn by itself, and waited then.
    #[inline(always)]
    pub(crate) fn has_waited(&self) -> bool {
        self.has_yielded.load(Ordering::Relaxed)
    }

    /// It has ended a turn by itself, and waits.
    pub(crate) fn note_yielded(&self) {
        self.has_yielded.store(true, Ordering::Relaxed);
    }

    /// Takes the stack it is suspended on, if it is.
    pub(crate) fn take_stack(&self) -> *mut StackBlock {
        // Relaxed: whoever takes a process from a queue has synchronised with whoever put it there.
        let stack = self.stack.load(Ordering::Relaxed);
        if !stack.is_null() {
            self.stack.store(core::ptr::null_mut(), Ordering::Relaxed);
            self.run_state.set_suspended(false);
        }
        stack
    }

    pub(crate) fn suspend_on(&self, stack: *mut StackBlock) {
        // Relaxed: the enqueue that follows publishes it.
        self.stack.store(stack, Ordering::Relaxed);
        self.run_state.set_suspended(true);
    }

    /// Whether it is suspended on that stack.
    #[cfg(target_os = "none")]
    pub(crate) fn is_suspended_on(&self, stack: &StackBlock) -> bool {
        // Relaxed: for who has stopped all other cores.
        core::ptr::eq(self.stack.load(Ordering::Relaxed), stack)
    }

    /// Whether it waits, is queued or runs.
    pub(crate) fn run_state(&self) -> &RunState {
        &self.run_state
    }

    /// Whether it is counted among those that were killed.
    pub(crate) fn kill_count(&self) -> &KillCount {
        &self.kill_count
    }

    /// What it is doing, as was seen at some moment: stale as soon as it is read.
    pub fn state(&self) -> ProcessState {
        if self.is_done() {
            ProcessState::Ended
        } else if self.run_state.is_suspended() {
            ProcessState::Suspended
        } else if self.enqueued_at() != 0 && self.run_state.is_dispatchable() && !self.is_in_turn() {
            ProcessState::Ready
        } else if self.run_state.has_begun() {
            ProcessState::Running
        } else {
            ProcessState::Waiting
        }
    }

    /// Whether a stack has a turn of it. What is suspended was looked at before.
    fn is_in_turn(&self) -> bool {
        #[cfg(target_os = "none")]
        if Self::KEEPS_TIME {
            return crate::mem::stack::all().any(|block| core::ptr::eq(block.process().cast::<Self>(), self));
        }
        false
    }

    /// Whether it has ended in a panic or fault, or was killed in its turn.
    pub fn has_crashed(&self) -> bool {
        self.run_state.has_crashed()
    }

    /// Whether it has ended.
    pub fn is_done(&self) -> bool {
        self.run_state.is_done()
    }

    /// Whether the state is one that a process in a queue can have.
    pub(crate) fn is_dispatchable(&self) -> bool {
        // The word is the same for a process that runs and for one that is queued after a turn; the time is not. A host's
        // clock begins at zero.
        let is_queued = self.enqueued_at() != 0 || cfg!(not(target_os = "none"));
        self.run_state.is_dispatchable() && is_queued
    }
}
