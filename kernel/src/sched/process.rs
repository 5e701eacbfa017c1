//! What every process has, whatever its body: its header, its life cycle, and references to it.
//!
//! ```text
//!              wake                 picked
//!   Idle ───────────────▶ Queued ───────────▶ Running ──── Done ───▶ (ended)
//!    ▲                      ▲                  │   ▲ │
//!    │    Pending, not      │ Yield, or        │   │ │ wake: Notified, so that
//!    │    notified          │ notified         │   │ │ Pending queues it again
//!    └──────────────────────┼──────────────────┤   └─┘
//!                           └──────────────────┘
//! ```
//!
//! A process that is suspended on a lent stack stays `Running`: a wake-up only notifies it, for it is in
//! a queue already. Whoever takes it from the queue sees the stack and resumes it instead of stepping it.
//!
//! A header is kept alive by references: one for the scheduler until the process has ended, one for each
//! waker and handle.

use core::ptr::NonNull;

use super::priority::Priority;
use super::resident::{Detached, Wake};
use super::step::Step;
use crate::arch::CoreId;
use crate::arch::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::deque::Linked;
use crate::mem::stack::StackBlock;
use alloc::boxed::Box;

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

/// Hands over the running piece of a resident, as [`super::resident::Resident::detach`].
pub(super) type Detach = unsafe fn(NonNull<Header>) -> Option<Box<dyn Detached>>;

/// What the core loop can do with a process, by the kind of its body.
pub(super) struct VTable {
    /// Runs one turn. Called with preemption enabled, by one core at a time, while `RUNNING`.
    pub step: unsafe fn(NonNull<Header>) -> Step,
    /// The body has panicked or faulted on its stack, which is gone. Called instead of `step`'s return.
    pub crash: unsafe fn(NonNull<Header>),
    /// Frees the process. Called once, when the last reference is dropped.
    pub free: unsafe fn(NonNull<Header>),
    /// For residents: hands over the running piece, as [`super::resident::Resident::detach`].
    pub detach: Option<Detach>,
}

/// The first part of every process.
#[repr(C)]
pub struct Header {
    state: AtomicU32,
    references: AtomicU32,
    vtable: &'static VTable,
    /// Next in an inbox or list; used by whichever holds the process.
    link: AtomicPtr<Header>,
    /// The stack it is suspended on, or null.
    stack: AtomicPtr<StackBlock>,
    /// The cores it may run on.
    affinity: AtomicU64,
    /// When it was last enqueued, in clock ticks.
    enqueued_at: AtomicU64,
    /// When it last changed cores, in clock ticks.
    moved_at: AtomicU64,
    /// How often it has changed cores.
    migrations: AtomicU32,
    priority: Priority,
    /// The core it ran on last, or was placed on.
    home: AtomicU8,
}

// SAFETY: `link` is one field for life, used by nothing but the lists.
unsafe impl Linked for Header {
    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

/// What the state was when a process was woken.
#[derive(PartialEq, Eq)]
enum Woken {
    /// It was idle: the caller must enqueue it.
    Enqueue,
    /// It is queued, running or ended: nothing to do.
    Nothing,
}

impl Header {
    /// The header of a process that is not yet queued, with one reference, the scheduler's.
    pub(super) fn new(vtable: &'static VTable, priority: Priority, affinity: u64, home: CoreId) -> Self {
        Self {
            state: AtomicU32::new(0),
            references: AtomicU32::new(1),
            vtable,
            link: AtomicPtr::new(core::ptr::null_mut()),
            stack: AtomicPtr::new(core::ptr::null_mut()),
            affinity: AtomicU64::new(affinity),
            enqueued_at: AtomicU64::new(0),
            moved_at: AtomicU64::new(0),
            migrations: AtomicU32::new(0),
            priority,
            home: AtomicU8::new(home.index() as u8),
        }
    }

    pub(super) fn vtable(&self) -> &'static VTable {
        self.vtable
    }

    /// Its priority, fixed for life.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The cores it may run on, as a mask.
    pub fn affinity(&self) -> u64 {
        // Relaxed: the mask stands alone.
        self.affinity.load(Ordering::Relaxed)
    }

    pub(super) fn set_affinity(&self, mask: u64) {
        // Relaxed: as above; a process that is queued elsewhere moves when it is next enqueued.
        self.affinity.store(mask, Ordering::Relaxed);
    }

    /// Whether it may run on one core only.
    pub fn is_pinned(&self) -> bool {
        self.affinity().is_power_of_two()
    }

    /// The core it ran on last.
    pub fn home(&self) -> CoreId {
        // Relaxed: a hint for placement.
        CoreId::new(self.home.load(Ordering::Relaxed) as usize).unwrap_or(CoreId::BOOT)
    }

    pub(super) fn set_home(&self, core: CoreId) {
        // Relaxed: as above.
        self.home.store(core.index() as u8, Ordering::Relaxed);
    }

    /// How often it has changed cores.
    pub fn migrations(&self) -> u32 {
        // Relaxed: a statistic.
        self.migrations.load(Ordering::Relaxed)
    }

    pub(super) fn moved_at(&self) -> u64 {
        // Relaxed: a statistic that policy reads.
        self.moved_at.load(Ordering::Relaxed)
    }

    /// How often it has changed cores in its current interval, if that began after `since`.
    pub(super) fn migrations_since(&self, since: u64) -> u64 {
        if self.moved_at() < since { 0 } else { u64::from(self.migrations()) }
    }

    pub(super) fn record_move(&self, now: u64) {
        // Relaxed load and store: only who holds the process, out of any queue, writes these.
        self.migrations.store(self.migrations.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.moved_at.store(now, Ordering::Relaxed);
    }

    pub(super) fn enqueued_at(&self) -> u64 {
        // Relaxed: a statistic that policy reads.
        self.enqueued_at.load(Ordering::Relaxed)
    }

    pub(super) fn set_enqueued_at(&self, now: u64) {
        // Relaxed: as above.
        self.enqueued_at.store(now, Ordering::Relaxed);
    }

    /// Takes the stack it is suspended on, if it is.
    pub(super) fn take_stack(&self) -> *mut StackBlock {
        // Relaxed: who takes a process from a queue has synchronised with who put it there.
        let stack = self.stack.load(Ordering::Relaxed);
        if !stack.is_null() {
            self.stack.store(core::ptr::null_mut(), Ordering::Relaxed);
        }
        stack
    }

    pub(super) fn is_suspended(&self) -> bool {
        // Relaxed: as for `take_stack`.
        !self.stack.load(Ordering::Relaxed).is_null()
    }

    pub(super) fn suspend_on(&self, stack: *mut StackBlock) {
        // Relaxed: the enqueue that follows publishes it.
        self.stack.store(stack, Ordering::Relaxed);
    }

    fn notify(&self) -> Woken {
        // AcqRel: the release publishes what the waker wrote to the next turn's acquire (in `begin`),
        // also when the process is already queued; the acquire orders our enqueue after the `Pending`
        // transition that made it idle.
        let before = self.state.fetch_or(NOTIFIED, Ordering::AcqRel);
        if before & (QUEUED | RUNNING | NOTIFIED | DONE) != 0 {
            return Woken::Nothing;
        }
        // Relaxed: exactly one waker gets here, and the enqueue publishes it. A read-modify-write, for a
        // plain store would end the release sequence of another waker's `fetch_or` in between, and
        // `begin` would miss what that waker wrote.
        self.state.fetch_or(QUEUED, Ordering::Relaxed);
        Woken::Enqueue
    }

    /// A turn begins: forgets notifications, and sees what the wakers wrote.
    pub(super) fn begin(&self) {
        // AcqRel: pairs with `notify`.
        self.state.swap(RUNNING, Ordering::AcqRel);
    }

    /// A turn ended with nothing to do. Whether it was notified meanwhile and must be queued again.
    pub(super) fn end_pending(&self) -> bool {
        // Release: pairs with the acquire in `notify`, so that the core that runs the next turn sees
        // this one's writes. Acquire on failure: pairs with the notifier's release.
        match self.state.compare_exchange(RUNNING, 0, Ordering::Release, Ordering::Acquire) {
            Ok(_) => false,
            Err(_) => {
                self.requeue();
                true
            }
        }
    }

    /// A turn ended with more to do.
    pub(super) fn requeue(&self) {
        // AcqRel: the acquire pairs with a notifier's release, whose notification the coming turn answers;
        // the release hands this turn's writes, and what was acquired, to `begin`.
        self.state.swap(QUEUED, Ordering::AcqRel);
    }

    /// It has ended.
    pub(super) fn finish(&self) {
        // Release: whoever learns of the end sees the last turn's writes.
        self.state.store(DONE, Ordering::Release);
    }

    /// It has crashed.
    pub(super) fn finish_crashed(&self) {
        // Release: as in `finish`.
        self.state.store(DONE | CRASHED, Ordering::Release);
    }

    /// Whether it has ended in a panic or fault.
    pub fn has_crashed(&self) -> bool {
        // Acquire: pairs with `finish_crashed`.
        self.state.load(Ordering::Acquire) & CRASHED != 0
    }

    /// Whether it has ended.
    pub fn is_done(&self) -> bool {
        // Acquire: pairs with `finish`.
        self.state.load(Ordering::Acquire) & DONE != 0
    }

    /// Whether the state is one that a process in a queue can have; for the debug check at dispatch.
    pub(super) fn is_dispatchable(&self) -> bool {
        // Relaxed: the queue has synchronised.
        let state = self.state.load(Ordering::Relaxed);
        state & DONE == 0 && (state & QUEUED != 0 || (state & RUNNING != 0 && self.is_suspended()))
    }

    pub(super) fn mark_queued(&self) {
        // Relaxed: a new process, not yet visible to anyone.
        self.state.store(QUEUED, Ordering::Relaxed);
    }

    pub(super) fn mark_running(&self) {
        // Relaxed: a new process, not yet visible to anyone.
        self.state.store(RUNNING, Ordering::Relaxed);
    }
}

/// A counted reference to a process.
pub struct ProcessRef(NonNull<Header>);

// SAFETY: a header's fields are atomics or never change; the body is only touched by the core that runs
// it, and freed by whoever drops the last reference, which the bodies' `Send` bound allows.
unsafe impl Send for ProcessRef {}
// SAFETY: as above; everything a shared reference offers is atomic.
unsafe impl Sync for ProcessRef {}

impl ProcessRef {
    /// Takes over one reference that was counted already.
    ///
    /// # Safety
    /// `header` is a live process and the caller gives up one of its references.
    pub(super) unsafe fn from_counted(header: NonNull<Header>) -> Self {
        Self(header)
    }

    /// Counts another reference to a live process.
    ///
    /// # Safety
    /// `header` is kept alive by somebody during the call.
    pub(super) unsafe fn count(header: NonNull<Header>) -> Self {
        // SAFETY: the header is alive, by contract.
        // Relaxed: a new reference is made from an existing one, which already orders everything.
        let before = unsafe { header.as_ref() }.references.fetch_add(1, Ordering::Relaxed);
        debug_assert!(before != 0 && before < u32::MAX / 2, "a process was referenced after its end");
        Self(header)
    }

    /// Gives up the reference without uncounting it.
    pub(super) fn into_counted(self) -> NonNull<Header> {
        let header = self.0;
        core::mem::forget(self);
        header
    }

    pub(super) fn pointer(&self) -> NonNull<Header> {
        self.0
    }

    /// A number that no other living process has.
    #[inline(always)]
    pub fn id(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// Makes the process runnable, unless it is already or has ended.
    pub fn wake(&self) {
        if self.notify() == Woken::Enqueue {
            super::enqueue::woken(self.0);
        }
    }
}

impl core::ops::Deref for ProcessRef {
    type Target = Header;

    #[inline(always)]
    fn deref(&self) -> &Header {
        // SAFETY: the reference keeps the header alive.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for ProcessRef {
    fn clone(&self) -> Self {
        // SAFETY: `self` keeps it alive.
        unsafe { Self::count(self.0) }
    }
}

impl Drop for ProcessRef {
    fn drop(&mut self) {
        // AcqRel: our use of the process happens before it is freed by whoever sees zero, which
        // acquires what the others released. Not a fence in the branch: ThreadSanitizer does not know those.
        if self.references.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: the last reference is gone, so nobody else can reach the process.
            unsafe { (self.vtable.free)(self.0) }
        }
    }
}

impl Wake for ProcessRef {
    fn wake(&self) {
        ProcessRef::wake(self);
    }

    fn core(&self) -> CoreId {
        self.home()
    }
}
