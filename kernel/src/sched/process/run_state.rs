//! The word that says whether a process waits, is queued or runs; and how it is woken so that no wake-up is lost and none
//! enqueues it twice.
//!
//! ```text
//!              notify               begin
//!   idle ───────────────▶ queued ───────────▶ running ── finish ──▶ (ended)
//!    ▲                                         │   ▲ │
//!    │  end_pending, not notified              │   │ │ notify: noted
//!    └─────────────────────────────────────────┘   └─┘
//! ```
//!
//! A waker writes what it has for the process, then notifies. The notification either finds the process idle, and the
//! waker enqueues it; or it is left in the word, where the end of the turn finds it, or the beginning of the next one
//! clears it: that turn sees what the waker wrote.
//!
//! **A process whose turn ends with more to do stays running while it is queued**, so a yield costs no atomic step. Whoever
//! looks at the word acts the same for a process that is queued and for one that runs:
//!
//! - a waker enqueues neither, and its notification stays until a turn begins. `begin` needs an exchange only if it reads
//!   a notification. One that it does not see yet is found by `end_pending`, whose exchange fails, or by the next `begin`;
//! - whoever joins asks only whether it has ended, and that is written by a turn or by a turn's crash. Of one that is
//!   queued no code runs, so it cannot crash there;
//! - whoever kills it leaves that in the word, too, and notifies: the next turn begins by an exchange, because the word is not
//!   that of a process that simply goes on, and finds it. A turn that runs is looked at by the interrupts that come there;
//! - what a turn wrote reaches the next one through the queue, whose push releases and whose take acquires.

use crate::arch::atomic::{AtomicU32, Ordering};

/// In a run queue, or on the way into one, since it was started or woken; or it was woken while it ran.
const QUEUED: u32 = 1;
/// A core runs it, or it has more to do: it is queued after a turn, or suspended on a lent stack.
const RUNNING: u32 = 2;
/// Woken since it was last picked.
const NOTIFIED: u32 = 4;
/// Ended; never runs again.
const DONE: u32 = 8;
/// Ended in a panic or fault, so that nothing it owned was dropped.
const CRASHED: u32 = 16;

/// It is suspended on a lent stack; also running.
const SUSPENDED: u32 = 32;
/// It is to have no more turns.
const KILLED: u32 = 64;
/// The turn that it has is the one in which what it owns is dropped, because it was killed; also running.
const ENDING: u32 = 128;

/// A process's word.
pub struct RunState(AtomicU32);

impl RunState {
    /// Of a process that waits.
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// A wake-up. Returns whether the caller must enqueue the process.
    pub fn notify(&self) -> bool {
        // AcqRel: the release publishes what the waker wrote to the next turn's acquire (in `begin`), also when the process is already
        // queued; the acquire orders our enqueue after the `Pending` transition that made it idle. Both bits at once: that one is queued
        // means nothing beside any of the others, and a second step would have to be a read-modify-write, too, or it would end the release
        // sequence of another waker's.
        let before = self.0.fetch_or(NOTIFIED | QUEUED, Ordering::AcqRel);
        before & (QUEUED | RUNNING | NOTIFIED | DONE) == 0
    }

    /// A turn begins: forgets notifications, and sees what the wakers wrote. Whether the process was killed: then this turn is for its
    /// end.
    #[inline(always)]
    pub fn begin(&self) -> bool {
        if !self.goes_on() {
            // AcqRel: pairs with `notify`.
            let before = self.0.swap(RUNNING, Ordering::AcqRel);
            if before & KILLED != 0 {
                // Relaxed: for this core's own interrupts, and for the end of this turn.
                self.0.fetch_or(ENDING, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// It is to have no more turns. The caller wakes it afterwards, so that it has the one in which it ends. Whether it has not ended.
    pub fn kill(&self) -> bool {
        // AcqRel: pairs with `finish`; the release is for the mark that the kill is counted. The wake-up that follows comes later in the
        // order of this word, so whoever sees that, sees this.
        self.0.fetch_or(KILLED, Ordering::AcqRel) & DONE == 0
    }

    /// Whether it was killed, and has not begun the turn for its end.
    pub fn is_killed(&self) -> bool {
        // Relaxed: looked at by interrupts again and again.
        self.0.load(Ordering::Relaxed) & (KILLED | ENDING) == KILLED
    }

    /// Whether it was killed, whatever turn it has by now.
    #[inline(always)]
    pub fn is_killed_or_ending(&self) -> bool {
        // Relaxed: as in `is_killed`.
        self.0.load(Ordering::Relaxed) & (KILLED | ENDING) != 0
    }

    /// Whether this turn is the one for its end.
    pub fn is_ending(&self) -> bool {
        // Relaxed: written by the same turn.
        self.0.load(Ordering::Relaxed) & ENDING != 0
    }

    /// It is suspended in its turn, or goes on with it. Whoever has the process in hand does this; a read-modify-write,
    /// because a waker may notify it meanwhile.
    pub fn set_suspended(&self, suspended: bool) {
        // Relaxed: the queue publishes what goes with it.
        if suspended {
            self.0.fetch_or(SUSPENDED, Ordering::Relaxed);
        } else {
            self.0.fetch_and(!SUSPENDED, Ordering::Relaxed);
        }
    }

    /// Whether it is suspended in its turn.
    pub fn is_suspended(&self) -> bool {
        // Relaxed: an estimate, for whoever inspects it.
        self.0.load(Ordering::Relaxed) & SUSPENDED != 0
    }

    /// Whether the process, which somebody has taken from a queue, has had a turn, is not suspended, and was not woken
    /// since.
    #[inline(always)]
    pub fn goes_on(&self) -> bool {
        // Relaxed: without a notification there is nothing to acquire but what the queue has handed over.
        self.0.load(Ordering::Relaxed) == RUNNING
    }

    /// Whether a turn has begun that did not end in waiting.
    pub fn has_begun(&self) -> bool {
        // Relaxed: asked by whoever has taken the process from a queue, which has synchronised.
        self.0.load(Ordering::Relaxed) & RUNNING != 0
    }

    /// A turn ended with nothing to do. Whether the process was notified meanwhile and must be queued again; the
    /// notification stays for the next turn.
    pub fn end_pending(&self) -> bool {
        // Release: pairs with the acquire in `notify`, so that the core that runs the next turn sees
        // this one's writes. Relaxed on failure: the next `begin` acquires.
        self.0.compare_exchange(RUNNING, 0, Ordering::Release, Ordering::Relaxed).is_err()
    }

    /// The process has ended. Whether it was killed before.
    pub fn finish(&self) -> bool {
        self.finish_as(DONE)
    }

    /// The process has crashed. Whether it was killed before.
    pub fn finish_crashed(&self) -> bool {
        self.finish_as(DONE | CRASHED)
    }

    #[inline(always)]
    fn finish_as(&self, state: u32) -> bool {
        // Release: whoever learns of the end sees the last turn's writes. Acquire: pairs with `kill`, for the mark that it is counted.
        self.0.swap(state, Ordering::AcqRel) & (KILLED | ENDING) != 0
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

    /// Whether a process in a queue can have this word.
    pub fn is_dispatchable(&self) -> bool {
        // Relaxed: the queue has synchronised.
        let state = self.0.load(Ordering::Relaxed);
        state & DONE == 0 && state & (QUEUED | RUNNING) != 0
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
