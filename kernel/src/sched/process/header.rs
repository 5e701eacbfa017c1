//! What every process has, whatever its body: its header, its life cycle, and references to it.
//!
//! Whether it waits, is queued or runs is one word, [`RunState`], with the life cycle in its head.
//!
//! A process that is suspended on a lent stack stays running there, as one does that is queued after a turn: a wake-up only
//! notifies it, because it is in a queue already. Whoever takes it from the queue sees the stack and resumes it instead of
//! stepping it.
//!
//! A header is kept alive by references: one for the scheduler until the process has ended, one for each
//! waker and handle.

use core::ptr::NonNull;

use super::deadline::Deadline;
use super::run_state::RunState;
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::arch::{CoreId, CoreSet};
use crate::mem::stack::StackBlock;
use crate::mem::{OutOfMemory, Payer};
use crate::queue::Linked;
use crate::sched::process::priority::Priority;
use crate::sched::process::resident::{AtWork, Detached, EndOfPiece};
use crate::sched::process::share::ShareRef;
use crate::sched::process::step::Step;
use crate::sync::{Identity, ReferenceCount};
use crate::time::OwnedTimers;
use crate::watch::{self, Exit, Watch, Watched, Watcher};
use alloc::boxed::Box;

/// Hands over the running piece of a resident, as [`super::Resident::detach`].
pub(crate) type Detach = unsafe fn(NonNull<Header>) -> Option<Box<dyn Detached>>;

/// What the core loop can do with a process, by the kind of its body.
pub(crate) struct VTable {
    /// What it is, for messages that report a failure in it.
    pub name: fn() -> &'static str,
    /// Runs one turn. Called with preemption enabled, by one core at a time, while `RUNNING`.
    pub step: unsafe fn(NonNull<Header>) -> Step,
    /// It was killed before the turn that it is given now: what it owns is dropped. As `step`, and it is done.
    pub cancel: unsafe fn(NonNull<Header>) -> Step,
    /// The body has panicked or faulted on its stack, which is gone, or was killed there. Called instead of `step`'s return, when that is on
    /// record.
    pub crash: unsafe fn(NonNull<Header>, Exit),
    /// Frees the process. Called once, when the last reference is dropped.
    pub free: unsafe fn(NonNull<Header>),
    /// For residents: hands over the running piece, as [`super::Resident::detach`].
    pub detach: Option<Detach>,
    /// For residents and pieces detached from them: whether the piece of work that runs is to end now, because it was killed, and can.
    /// Called on its core, where its turn was interrupted and holds no lock, with interrupts masked and preemption disabled.
    pub is_to_end: Option<unsafe fn(NonNull<Header>, EndOfPiece) -> bool>,
    /// For residents and pieces detached from them: what is at work in the turn that the caller is part of. Called with
    /// preemption disabled, while the process runs here.
    pub at_work: Option<unsafe fn(NonNull<Header>) -> Option<AtWork>>,
}

/// What every process has, and what can be asked about it: a [`ProcessRef`] leads to it.
///
/// ```
/// # use magpie::sched;
/// use magpie::arch::{CoreId, CoreSet};
/// use magpie::sched::{Priority, ProcessState, Spawn};
///
/// # sched::run_on_threads(2, 1, async {
/// let handle = Spawn::new().priority(Priority::Low).pinned(CoreId::BOOT).start(async {})?;
/// let process = handle.process().clone();
/// assert_eq!((process.priority(), process.deadline()), (Priority::Low, None));
/// assert!(process.is_pinned() && process.affinity() == CoreSet::of(CoreId::BOOT));
/// assert_eq!((process.home(), process.migrations()), (CoreId::BOOT, 0));
/// handle.await?;
/// assert!(process.is_done() && !process.has_crashed() && !process.has_failed());
/// assert_eq!(process.state(), ProcessState::Ended);
/// println!("{} has ended after {} reductions", process.type_name(), process.reductions());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[repr(C)]
pub struct Header {
    run_state: RunState,
    references: ReferenceCount,
    vtable: &'static VTable,
    /// Next in an inbox or list; used by whichever of them holds the process.
    link: AtomicPtr<Header>,
    /// The stack it is suspended on, or null.
    stack: AtomicPtr<StackBlock>,
    /// The cores it may run on.
    affinity: AtomicU64,
    /// When it was enqueued, in clock ticks; 0 while it is in no queue.
    enqueued_at: AtomicU64,
    /// When it last changed cores, in clock ticks.
    moved_at: AtomicU64,
    /// How often it has changed cores.
    migrations: AtomicU32,
    priority: Priority,
    /// Whether it is `Normal`, may run anywhere and has no share: what a turn's end asks first.
    is_ordinary: AtomicBool,
    /// The core it ran on last, or was placed on.
    home: AtomicU8,
    /// It has ended a turn by itself before, and waited then.
    has_yielded: AtomicBool,
    /// [`FAILED`] and [`CAME_BACK`]: in one byte, because with another a process would be longer by a word.
    marks: AtomicU8,
    /// Who pays for what it allocates; never changed.
    account: u8,
    /// Whether somebody may watch it.
    watched: Watched,
    /// If it has one; never changed.
    deadline: Option<Box<Deadline>>,
    /// What its turns are charged to, if it has a share; never changed.
    share: Option<ShareRef>,
    /// What the turns were charged that have ended.
    reductions: AtomicU64,
    /// The timers that would wake it.
    timers: OwnedTimers,
}

/// It has said itself that it failed.
const FAILED: u8 = 1;
/// It has come back from being put aside, and had no turn since.
const CAME_BACK: u8 = 2;

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

fn is_ordinary(priority: Priority, affinity: u64) -> bool {
    priority == Priority::Normal && affinity == u64::MAX
}

// SAFETY: `link` is the same field as long as the header lives, used by nothing but the lists.
unsafe impl Linked for Header {
    unsafe fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

impl Header {
    /// The header of a process that is not yet queued, with one reference, the scheduler's.
    pub(crate) fn new(vtable: &'static VTable, priority: Priority, affinity: u64, home: CoreId) -> Self {
        Self {
            run_state: RunState::new(),
            references: ReferenceCount::new(1),
            vtable,
            link: AtomicPtr::new(core::ptr::null_mut()),
            stack: AtomicPtr::new(core::ptr::null_mut()),
            affinity: AtomicU64::new(affinity),
            enqueued_at: AtomicU64::new(0),
            moved_at: AtomicU64::new(0),
            migrations: AtomicU32::new(0),
            priority,
            is_ordinary: AtomicBool::new(is_ordinary(priority, affinity)),
            home: AtomicU8::new(home.index() as u8),
            has_yielded: AtomicBool::new(false),
            marks: AtomicU8::new(0),
            account: 0,
            watched: Watched::new(),
            deadline: None,
            share: None,
            reductions: AtomicU64::new(0),
            timers: OwnedTimers::new(),
        }
    }

    /// The same with a deadline, for one that is `High`.
    pub(crate) fn with_deadline(self, deadline: Option<Box<Deadline>>) -> Self {
        Self { deadline, ..self }
    }

    /// The same with an account that pays for what it allocates.
    pub(crate) fn with_account(self, account: Payer) -> Self {
        Self { account: account.number(), ..self }
    }

    /// Who pays for what it allocates, as [`crate::sync::PaidBy`] takes it.
    #[inline(always)]
    pub(crate) fn account(&self) -> u32 {
        self.account.into()
    }

    /// The same with a share of CPU time. Its turns do not follow each other by the core loop's short way.
    pub(crate) fn in_share(self, share: Option<ShareRef>) -> Self {
        let header = Self { share, ..self };
        header.set_affinity(header.affinity_mask());
        header
    }

    #[inline(always)]
    pub(crate) fn share(&self) -> Option<&ShareRef> {
        self.share.as_ref()
    }

    /// A turn of its has ended that was charged so much.
    #[inline(always)]
    pub(crate) fn note_charged(&self, reductions: u64) {
        if !cfg!(feature = "uncounted") {
            // Relaxed load and store: only whoever ends a turn of it writes this.
            let before = self.reductions.load(Ordering::Relaxed);
            self.reductions.store(before.wrapping_add(reductions), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub(crate) fn kept_deadline(&self) -> Option<&Deadline> {
        self.deadline.as_deref()
    }

    /// Whether the process, which the caller has taken from a queue, has ended a turn by itself before, or is suspended in
    /// one. Relaxed, here and below: a hint of how it will behave.
    pub(crate) fn has_yielded(&self) -> bool {
        self.run_state.has_begun() || self.has_yielded.load(Ordering::Relaxed)
    }

    /// It has ended a turn by itself, and waits.
    pub(crate) fn note_yielded(&self) {
        self.has_yielded.store(true, Ordering::Relaxed);
    }

    /// Its run state says by now that it has ended: tells those who watch it. Runs nothing of the application's, and takes as long as
    /// there are watchers.
    #[inline(always)]
    pub(crate) fn tell_of_end(&self, exit: Exit) {
        if self.watched.after_end() {
            self.tell_all(exit);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_all(&self, exit: Exit) {
        let exit = if exit == Exit::Normal && self.has_failed() { Exit::Failed } else { exit };
        watch::tell_all(self.identity(), exit);
    }

    /// It says itself, in its last turn, that it has failed.
    pub(crate) fn note_failed(&self) {
        // Relaxed: read after its end, which is seen through its run state, or on the core that it ended on.
        self.marks.fetch_or(FAILED, Ordering::Relaxed);
    }

    fn identity(&self) -> Identity {
        Identity::Process(core::ptr::from_ref(self).addr())
    }

    pub(crate) fn timers(&self) -> &OwnedTimers {
        &self.timers
    }

    pub(crate) fn vtable(&self) -> &'static VTable {
        self.vtable
    }

    /// Has `watcher` told when the process ends, whatever ends it: exactly once, and at once if it has ended already. See
    /// [`watch`](crate::watch).
    ///
    /// ```
    /// use magpie::mem::OutOfMemory;
    /// use magpie::sched::ProcessRef;
    /// use magpie::watch::{Watch, Watcher};
    /// fn watch_all(processes: &[ProcessRef], watcher: &impl Watcher) -> Result<Vec<Watch>, OutOfMemory> {
    ///     processes.iter().map(|process| process.watch(watcher)).collect()
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no memory for it: 64 bytes, and 32 more for a mailbox that watches.
    pub fn watch(&self, watcher: &impl Watcher) -> Result<Watch, OutOfMemory> {
        watch::watch(self.identity(), watcher, &self.watched, || !self.is_done())
    }

    /// Its priority, which never changes.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The cores it may run on.
    pub fn affinity(&self) -> CoreSet {
        CoreSet::of_mask(self.affinity_mask())
    }

    pub(crate) fn affinity_mask(&self) -> u64 {
        // Relaxed: the mask stands alone.
        self.affinity.load(Ordering::Relaxed)
    }

    pub(crate) fn set_affinity(&self, mask: u64) {
        // Relaxed: as above; a process that is queued elsewhere moves when it is next enqueued.
        self.affinity.store(mask, Ordering::Relaxed);
        let is_ordinary = is_ordinary(self.priority, mask) && self.share.is_none();
        self.is_ordinary.store(is_ordinary, Ordering::Relaxed);
    }

    /// Whether it is `Normal`, may run on every core, and has no share of CPU time.
    #[inline(always)]
    pub(crate) fn is_ordinary(&self) -> bool {
        // Relaxed: as for the mask.
        self.is_ordinary.load(Ordering::Relaxed)
    }

    /// Whether it may run on one core only.
    pub fn is_pinned(&self) -> bool {
        self.affinity_mask().is_power_of_two()
    }

    /// The core it ran on last, or was placed on.
    pub fn home(&self) -> CoreId {
        // Relaxed: a hint for placement.
        CoreId::new(self.home.load(Ordering::Relaxed) as usize).unwrap_or(CoreId::BOOT)
    }

    pub(crate) fn set_home(&self, core: CoreId) {
        // Relaxed: as above.
        self.home.store(core.index() as u8, Ordering::Relaxed);
    }

    /// How often it has changed cores.
    pub fn migrations(&self) -> u32 {
        // Relaxed: a statistic.
        self.migrations.load(Ordering::Relaxed)
    }

    pub(crate) fn moved_at(&self) -> u64 {
        // Relaxed: a statistic that policy reads.
        self.moved_at.load(Ordering::Relaxed)
    }

    pub(crate) fn record_move(&self, now: u64) {
        // Relaxed load and store: only the holder of the process, while it is in no queue, writes these.
        self.migrations.store(self.migrations.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.moved_at.store(now, Ordering::Relaxed);
    }

    pub(crate) fn enqueued_at(&self) -> u64 {
        // Relaxed: a statistic that policy reads.
        self.enqueued_at.load(Ordering::Relaxed)
    }

    /// When it was enqueued; from now on it is in no queue.
    #[inline(always)]
    pub(crate) fn take_enqueued_at(&self) -> u64 {
        // Relaxed, both: whoever takes a process from a queue alone writes this.
        let at = self.enqueued_at.load(Ordering::Relaxed);
        self.enqueued_at.store(0, Ordering::Relaxed);
        at
    }

    pub(crate) fn set_enqueued_at(&self, now: u64) {
        // Relaxed: as above.
        self.enqueued_at.store(now, Ordering::Relaxed);
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

    /// Whether it waits, is queued or runs.
    pub(crate) fn run_state(&self) -> &RunState {
        &self.run_state
    }

    /// What it is doing, as was seen at some moment: stale as soon as it is read.
    pub fn state(&self) -> ProcessState {
        if self.is_done() {
            ProcessState::Ended
        } else if self.run_state.is_suspended() {
            ProcessState::Suspended
        } else if self.enqueued_at() != 0 {
            ProcessState::Ready
        } else if self.run_state.has_begun() {
            ProcessState::Running
        } else {
            ProcessState::Waiting
        }
    }

    /// The type of its future, or what else it is.
    pub fn type_name(&self) -> &'static str {
        (self.vtable.name)()
    }

    /// How many [reductions](crate::sched::charge) it was charged in the turns that have ended. One in which it was suspended counts
    /// when that ends; of a worker that is the behaviour's.
    pub fn reductions(&self) -> u64 {
        // Relaxed: a statistic.
        self.reductions.load(Ordering::Relaxed)
    }

    /// Whether it has ended in a panic or fault, or was killed in its turn.
    pub fn has_crashed(&self) -> bool {
        self.run_state.has_crashed()
    }

    /// Whether it has said itself that it failed: a [supervisor](crate::supervise) that gave up, or a child that returned an error.
    pub fn has_failed(&self) -> bool {
        // Relaxed: see `note_failed`.
        self.marks.load(Ordering::Relaxed) & FAILED != 0
    }

    /// Whether it has come back from being put aside, and had no turn since.
    pub(crate) fn has_come_back(&self) -> bool {
        // Relaxed: by whoever has it in hand; a queue hands it on.
        self.marks.load(Ordering::Relaxed) & CAME_BACK != 0
    }

    /// Notes whether it has.
    pub(crate) fn set_come_back(&self, has_come_back: bool) {
        if has_come_back {
            self.marks.fetch_or(CAME_BACK, Ordering::Relaxed);
        } else {
            self.marks.fetch_and(!CAME_BACK, Ordering::Relaxed);
        }
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

/// A counted reference to a process, which need not live any more. It can be asked what [`Header`] can.
///
/// ```
/// # use magpie::sched;
/// use core::future::poll_fn;
/// use core::sync::atomic::{AtomicBool, Ordering};
/// use core::task::Poll;
///
/// static IS_READY: AtomicBool = AtomicBool::new(false);
/// # sched::run_on_threads(2, 1, async {
/// let waiting = sched::spawn(poll_fn(|_| {
///     if IS_READY.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
/// }))?;
/// let process = waiting.process().clone();
/// assert!(sched::current_process().is_some_and(|own| own.id() != process.id()));
/// IS_READY.store(true, Ordering::Release);
/// process.wake();
/// waiting.await?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
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
    pub(crate) unsafe fn from_counted(header: NonNull<Header>) -> Self {
        Self(header)
    }

    /// Counts another reference to a live process.
    ///
    /// # Safety
    /// `header` is kept alive by somebody during the call.
    pub(crate) unsafe fn count(header: NonNull<Header>) -> Self {
        // SAFETY: the caller promised that the header is alive.
        unsafe { header.as_ref() }.references.add();
        Self(header)
    }

    /// Gives up the reference without uncounting it.
    pub(crate) fn into_counted(self) -> NonNull<Header> {
        let header = self.0;
        core::mem::forget(self);
        header
    }

    pub(crate) fn pointer(&self) -> NonNull<Header> {
        self.0
    }

    /// A number that no other living process has.
    #[inline(always)]
    pub fn id(&self) -> usize {
        self.0.as_ptr() as usize
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
        if self.references.release() {
            // SAFETY: the last reference is gone, so nobody else can reach the process.
            unsafe { (self.vtable.free)(self.0) }
        }
    }
}
