//! What every process has, whatever its body: its header. What it is doing, where it runs, who watches it and who refers to it is told in files
//! of their own.
//!
//! Whether it waits, is queued or runs is one word, [`RunState`], with the life cycle in its head.
//!
//! A process that is suspended on a lent stack stays running there, as one does that is queued after a turn: a wake-up only
//! notifies it, because it is in a queue already. Whoever takes it from the queue sees the stack and resumes it instead of
//! stepping it.
//!
//! A header is kept alive by references: one for the scheduler until the process has ended, one for each
//! waker and handle.

mod placing;
mod reference;
mod state;
mod table;
mod watching;

use alloc::boxed::Box;
use core::time::Duration;

pub use self::reference::ProcessRef;
pub use self::state::ProcessState;
pub(crate) use self::table::{PieceNow, VTable};
use super::deadline::Deadline;
use super::kill_count::KillCount;
use super::priority::Priority;
use super::run_state::RunState;
use super::share::ShareRef;
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::arch::{CoreId, clock};
use crate::mem::stack::StackBlock;
use crate::queue::Linked;
use crate::roll::Place;
use crate::sync::ReferenceCount;
use crate::time::{OwnedTimers, of_ticks};
use crate::watch::Watched;

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
    /// Whether it is `Normal`, may run anywhere, has no limit and is on a roll: what a turn's end asks first.
    is_ordinary: AtomicBool,
    /// The core it ran on last, or was placed on.
    home: AtomicU8,
    /// It has ended a turn by itself before, and waited then.
    has_yielded: AtomicBool,
    /// It has said itself that it failed.
    has_failed: AtomicBool,
    /// It has come back from being put aside, and had no turn since.
    has_come_back: AtomicBool,
    /// Whether it is counted among those that were killed.
    kill_count: KillCount,
    /// Who pays for what it allocates; never changed.
    account: u8,
    /// The core on whose roll it is, if it is on one.
    roll: AtomicU8,
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
    /// Where it is entered on that roll, or null.
    place: AtomicPtr<Place>,
    /// When it was made, in clock ticks.
    began_at: u64,
}

// SAFETY: `link` is the same field as long as the header lives, used by nothing but the lists.
unsafe impl Linked for Header {
    unsafe fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

impl Header {
    /// The header of a process that is not yet queued, with one reference, the scheduler's.
    #[inline(always)]
    pub(crate) fn new(vtable: &'static VTable, priority: Priority, affinity: u64, home: CoreId) -> Self {
        priority.note_use();
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
            is_ordinary: AtomicBool::new(false),
            home: AtomicU8::new(home.index() as u8),
            has_yielded: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            has_come_back: AtomicBool::new(false),
            kill_count: KillCount::new(),
            account: 0,
            roll: AtomicU8::new(0),
            watched: Watched::new(),
            deadline: None,
            share: None,
            reductions: AtomicU64::new(0),
            timers: OwnedTimers::new(),
            place: AtomicPtr::new(core::ptr::null_mut()),
            began_at: clock::now(),
        }
    }

    /// The same with a deadline, for one that is `High`.
    #[inline(always)]
    pub(crate) fn with_deadline(self, deadline: Option<Box<Deadline>>) -> Self {
        Self { deadline, ..self }
    }

    /// Who pays for what it allocates, as [`crate::sync::PaidBy`] takes it.
    #[inline(always)]
    pub(crate) fn account(&self) -> u32 {
        self.account.into()
    }

    /// The same with an account, by its number, that pays for what it allocates, and a share of CPU time. With either its turns do not
    /// follow others by the core loop's short way, which looks at neither.
    #[inline(always)]
    pub(crate) fn with_limits(self, account: u32, share: Option<ShareRef>) -> Self {
        // Numbers have eight bits.
        Self { account: account as u8, share, ..self }
    }

    /// Whether it has an account or a share.
    #[inline(always)]
    pub(crate) fn is_limited(&self) -> bool {
        self.account != 0 || self.share.is_some()
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

    /// It was made beforehand, and is about to be started by whoever has it alone.
    pub(crate) fn prepare(&mut self, priority: Priority, account: u8, home: CoreId) {
        self.priority = priority;
        self.account = account;
        self.began_at = clock::now();
        self.set_home(home);
    }

    #[inline(always)]
    pub(crate) fn kept_deadline(&self) -> Option<&Deadline> {
        self.deadline.as_deref()
    }

    pub(crate) fn timers(&self) -> &OwnedTimers {
        &self.timers
    }

    pub(crate) fn vtable(&self) -> &'static VTable {
        self.vtable
    }

    /// How long ago it was started.
    ///
    /// ```
    /// # use magpie::sched;
    /// # sched::run_on_threads(2, 1, async {
    /// let own = sched::current_process().ok_or("no process runs")?;
    /// let before = own.age();
    /// sched::yield_now().await;
    /// assert!(own.age() >= before);
    /// # Ok::<(), &str>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn age(&self) -> Duration {
        of_ticks(clock::now().saturating_sub(self.began_at))
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
}
