//! The word that says whether a process waits, is queued or runs; and how it is woken so that no wake-up is lost and none
//! enqueues it twice.
//!
//! ```text
//!              notify               begin
//!   idle ───────────────▶ queued ───────────▶ running ── finish ──▶ (ended)
//!    ▲                      ▲                  │   ▲ │
//!    │  end_pending, not    │ requeue, or      │   │ │ notify: noted, so that
//!    │  notified            │ notified         │   │ │ end_pending queues it again
//!    └──────────────────────┼──────────────────┤   └─┘
//!                           └──────────────────┘
//! ```
//!
//! A waker writes what it has for the process, then notifies. The notification either finds the process idle, and the
//! waker enqueues it; or it is left in the word, where the end of the turn finds it, or the beginning of the next one
//! clears it: that turn sees what the waker wrote.

use crate::arch::atomic::{AtomicU32, Ordering};

/// In a run queue, or on the way into one.
const QUEUED: u32 = 1;
/// A core runs it, or it is suspended on a lent stack.
const RUNNING: u32 = 2;
/// Woken since it was last picked.
const NOTIFIED: u32 = 4;
/// Ended; never runs again.
const DONE: u32 = 8;
/// Ended in a panic or fault, so that nothing it owned was dropped.
const CRASHED: u32 = 16;

/// A process's word.
pub struct RunState(AtomicU32);

impl RunState {
    /// Of a process that waits.
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// A wake-up. Returns whether the caller must enqueue the process.
    pub fn notify(&self) -> bool {
        // AcqRel: the release publishes what the waker wrote to the next turn's acquire (in `begin`),
        // also when the process is already queued; the acquire orders our enqueue after the `Pending`
        // transition that made it idle.
        let before = self.0.fetch_or(NOTIFIED, Ordering::AcqRel);
        if before & (QUEUED | RUNNING | NOTIFIED | DONE) != 0 {
            return false;
        }
        // Relaxed: exactly one waker gets here, and the enqueue publishes it. A read-modify-write, because a plain
        // store would end the release sequence of another waker's `fetch_or` in between, and `begin` would miss what
        // that waker wrote.
        self.0.fetch_or(QUEUED, Ordering::Relaxed);
        true
    }

    /// A turn begins: forgets notifications, and sees what the wakers wrote.
    pub fn begin(&self) {
        // AcqRel: pairs with `notify`.
        self.0.swap(RUNNING, Ordering::AcqRel);
    }

    /// A turn ended with nothing to do. Whether the process was notified meanwhile and must be queued again.
    pub fn end_pending(&self) -> bool {
        // Release: pairs with the acquire in `notify`, so that the core that runs the next turn sees
        // this one's writes. Acquire on failure: pairs with the notifier's release.
        match self.0.compare_exchange(RUNNING, 0, Ordering::Release, Ordering::Acquire) {
            Ok(_) => false,
            Err(_) => {
                self.requeue();
                true
            }
        }
    }

    /// A turn ended with more to do.
    pub fn requeue(&self) {
        // AcqRel: the acquire pairs with a notifier's release, whose notification the coming turn answers;
        // the release hands this turn's writes, and what was acquired, to `begin`.
        self.0.swap(QUEUED, Ordering::AcqRel);
    }

    /// The process has ended.
    pub fn finish(&self) {
        // Release: whoever learns of the end sees the last turn's writes.
        self.0.store(DONE, Ordering::Release);
    }

    /// The process has crashed.
    pub fn finish_crashed(&self) {
        // Release: as in `finish`.
        self.0.store(DONE | CRASHED, Ordering::Release);
    }

    /// Whether the process has ended in a panic or fault.
    pub fn has_crashed(&self) -> bool {
        // Acquire: pairs with `finish_crashed`.
        self.0.load(Ordering::Acquire) & CRASHED != 0
    }

    /// Whether the process has ended.
    pub fn is_done(&self) -> bool {
        // Acquire: pairs with `finish`.
        self.0.load(Ordering::Acquire) & DONE != 0
    }

    /// Whether a process in a queue can have this word; `suspended`: it waits on a lent stack.
    pub fn is_dispatchable(&self, suspended: bool) -> bool {
        // Relaxed: the queue has synchronised.
        let state = self.0.load(Ordering::Relaxed);
        state & DONE == 0 && (state & QUEUED != 0 || (state & RUNNING != 0 && suspended))
    }

    /// A new process goes into a queue.
    pub fn mark_queued(&self) {
        // Relaxed: not yet visible to anyone.
        self.0.store(QUEUED, Ordering::Relaxed);
    }

    /// A new process begins its life on a stack.
    pub fn mark_running(&self) {
        // Relaxed: not yet visible to anyone.
        self.0.store(RUNNING, Ordering::Relaxed);
    }
}

impl Default for RunState {
    fn default() -> Self {
        Self::new()
    }
}
