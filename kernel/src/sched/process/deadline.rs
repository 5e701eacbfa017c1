//! Deadlines: by when a process of priority `High` should have done what made it runnable.
//!
//! A process that is given one at its start has a *job* from each time it is started or woken until it waits or ends, which is due
//! that long after its beginning. A turn that ends before, by a yield or by a preemption, leaves the moment as it is; but if that has
//! passed by then, it is missed, and what is left of the job is a job of its own from then on. So whatever takes longer than it
//! has said puts off the others by its own deadline and one turn, and not for ever.
//!
//! Among the `High` processes of a core the one that is due first goes first: `cores/deadlines.rs` keeps them in that order,
//! `place/urgent.rs` says what is preempted. Nothing else happens to one that is late, but that it is counted (`run/due.rs`).

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::time::Duration;

use super::header::Header;
use crate::arch::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::mem;
use crate::queue::{HasNode, Node};
use crate::time::{of_ticks, ticks_of};

/// When something is due that has no deadline: after all that has one.
pub(crate) const NEVER: u64 = u64::MAX;

/// When a job is due that has not begun: it is told when the process is put into its queue.
const UNTOLD: u64 = 0;

/// How many processes have a deadline.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The shortest that any process has had, in clock ticks.
static SHORTEST: AtomicU64 = AtomicU64::new(NEVER);

/// A process's deadline, and its place among those that wait.
pub(crate) struct Deadline {
    /// From the beginning of a job, in clock ticks.
    relative: u64,
    /// When the job in progress is due, or [`UNTOLD`]. Written by whoever has the process in hand; read by interrupts in its turn, too.
    due: AtomicU64,
    node: UnsafeCell<Node<Header>>,
}

// SAFETY: the heap that the process is in alone uses the node, under its lock; the rest is atomic or never changes.
unsafe impl Sync for Deadline {}
// SAFETY: as above; the node's links mean nothing while the process is in no heap.
unsafe impl Send for Deadline {}

impl Deadline {
    /// So long after each beginning. `None` if there is no memory.
    pub(crate) fn new(relative: Duration) -> Option<Box<Self>> {
        Self::make(ticks_of(relative), UNTOLD)
    }

    /// Of a part of the same job.
    pub(crate) fn try_clone(&self) -> Option<Box<Self>> {
        Self::make(self.relative, self.due())
    }

    fn make(relative: u64, due: u64) -> Option<Box<Self>> {
        let deadline = Self { relative, due: AtomicU64::new(due), node: UnsafeCell::new(Node::NONE) };
        // Relaxed, both: they say when it pays to look. What must not be missed is found by the look that follows a turn.
        LIVE.fetch_add(1, Ordering::Relaxed);
        SHORTEST.fetch_min(relative, Ordering::Relaxed);
        // What does not fit is dropped, and uncounted.
        mem::kernel_box(deadline).ok()
    }

    // Relaxed, here and below: the queue publishes it with its process.
    fn due(&self) -> u64 {
        self.due.load(Ordering::Relaxed)
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        // Relaxed: as in `make`.
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether any process has a deadline.
pub(crate) fn are_in_use() -> bool {
    // Relaxed: as in `Deadline::make`.
    LIVE.load(Ordering::Relaxed) != 0
}

/// When what becomes runnable at `now` is due at the earliest. [`NEVER`] if no process has a deadline.
pub(crate) fn earliest_from(now: u64) -> u64 {
    // Relaxed: as in `Deadline::make`.
    if are_in_use() { now.saturating_add(SHORTEST.load(Ordering::Relaxed)) } else { NEVER }
}

impl Header {
    /// How long after it became runnable the process should have done what made it so, if it was given a
    /// [deadline](crate::sched::Spawn::deadline).
    pub fn deadline(&self) -> Option<Duration> {
        self.kept_deadline().map(|deadline| of_ticks(deadline.relative))
    }

    #[inline(always)]
    pub(crate) fn has_deadline(&self) -> bool {
        self.kept_deadline().is_some()
    }

    /// When the job in progress is due, in clock ticks.
    #[inline(always)]
    pub(crate) fn due(&self) -> u64 {
        self.kept_deadline().map_or(NEVER, Deadline::due)
    }

    /// The job in progress is over. The caller has it in hand.
    pub(crate) fn end_job(&self) {
        if let Some(deadline) = self.kept_deadline() {
            deadline.due.store(UNTOLD, Ordering::Relaxed);
        }
    }

    /// When the job is due of a process that goes into a queue. One that has not begun began when the process was enqueued.
    pub(crate) fn due_in_queue(&self) -> u64 {
        let Some(deadline) = self.kept_deadline() else { return NEVER };
        if deadline.due() == UNTOLD {
            // Before all that have none, however long it is.
            let due = self.enqueued_at().saturating_add(deadline.relative).clamp(UNTOLD + 1, NEVER - 1);
            deadline.due.store(due, Ordering::Relaxed);
        }
        deadline.due()
    }
}

// SAFETY: the node lies in an allocation of its own, which ends with the header; nothing else here touches it.
unsafe impl HasNode for Header {
    #[inline(always)]
    unsafe fn node(this: *mut Self) -> *mut Node<Self> {
        // SAFETY: by contract it is alive. The deadline itself never changes.
        match unsafe { (*this).kept_deadline() } {
            Some(deadline) => deadline.node.get(),
            None => panic!("a process without a deadline is among those with one"),
        }
    }
}
