//! Errands: code of the application that a core's loop, a crash or a sender would have to call and must not, such as a
//! destructor or a waker. It runs as a process of its own, so it can be preempted, and its crash ends nothing else.
//!
//! The process lies in memory that was there before, as the first part of what it is about: to start it cannot fail.

use core::ptr::NonNull;

use crate::arch::CoreId;
use crate::sched::Priority;
use crate::sched::cores::{here, population};
use crate::sched::place::enqueue;
use crate::sched::process::{Header, Runnable, Step, VTable};
use crate::sync::PreemptGuard;
use crate::watch::Exit;

/// The first part of what such a process is about.
#[repr(C)]
pub(crate) struct Errand {
    header: Header,
    run: unsafe fn(NonNull<Self>) -> Step,
    free: unsafe fn(NonNull<Self>),
}

static VTABLE: VTable = table(|| "a call of the application's in the kernel's name", Some(cancel));

/// Of what calls nothing of the application's.
static LASTING: VTable = table(|| "a part of the kernel's work", None);

const fn table(name: fn() -> &'static str, cancel: Option<unsafe fn(NonNull<Header>) -> Step>) -> VTable {
    VTable { name, step, cancel, crash, piece: None, free, detach: None, is_to_end: None, at_work: None }
}

/// # Safety
/// The contract of [`VTable::step`].
unsafe fn step(header: NonNull<Header>) -> Step {
    let errand = header.cast::<Errand>();
    // SAFETY: this table is used for errands only, which are alive while they run.
    unsafe { (errand.as_ref().run)(errand) }
}

/// It is the kernel's, and is carried out.
///
/// # Safety
/// The contract of [`VTable::cancel`].
unsafe fn cancel(header: NonNull<Header>) -> Step {
    // SAFETY: by contract.
    while unsafe { step(header) } != Step::Done {}
    Step::Done
}

/// # Safety
/// The contract of [`VTable::crash`].
unsafe fn crash(_header: NonNull<Header>, _: Exit) {}

/// # Safety
/// The contract of [`VTable::free`].
unsafe fn free(header: NonNull<Header>) {
    let errand = header.cast::<Errand>();
    // SAFETY: as in `step`; the last reference is gone.
    unsafe { (errand.as_ref().free)(errand) };
}

impl Errand {
    /// An errand that calls `run`, in its process, until that says that it is done, and `free` when that has ended. `free` may be called anywhere, so it
    /// is the kernel's own code.
    pub(crate) fn new(run: unsafe fn(NonNull<Self>) -> Step, free: unsafe fn(NonNull<Self>)) -> Self {
        Self { header: Header::new(&VTABLE, Priority::Normal, u64::MAX, CoreId::BOOT), run, free }
    }

    /// The same of what calls nothing of the application's: it ends, and nobody kills it, who might do so in the middle of something.
    pub(crate) fn lasting(run: unsafe fn(NonNull<Self>) -> Step, free: unsafe fn(NonNull<Self>)) -> Self {
        Self { header: Header::new(&LASTING, Priority::Normal, u64::MAX, CoreId::BOOT), run, free }
    }

    /// The process.
    pub(crate) fn header(this: NonNull<Self>) -> NonNull<Header> {
        this.cast()
    }

    /// Starts the process. From anywhere, with preemption disabled or not, but under no lock of the scheduler's.
    ///
    /// # Safety
    /// Called once. The errand stays where it is until `free` was called for it. Before that it must be safe to call
    /// `run`.
    pub(crate) unsafe fn start(this: NonNull<Self>) {
        // SAFETY: the caller promised that the errand stays where it is.
        let header = unsafe { &this.as_ref().header };
        // Until it is queued. As in `ProcessRef::wake`, too.
        let guard = PreemptGuard::new();
        population::count_detached(header.affinity_mask(), &guard);
        header.set_home(here::current_core().unwrap_or(CoreId::BOOT));
        if header.run_state().notify() {
            // SAFETY: `notify` has marked it as queued, and this is the only call.
            enqueue::woken(unsafe { Runnable::new(Self::header(this)) }, &guard);
        }
    }
}
