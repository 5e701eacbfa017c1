//! Residents: processes that are not futures, bound to one core for life, such as an executor's worker.
//!
//! A resident is more than a future in one way: what the timer suspends is not the resident but the
//! piece of work it was carrying out, so that the resident itself goes on at once.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr::NonNull;

use super::priority::Priority;
use super::process::{Header, ProcessRef, VTable};
use super::residents;
use super::spawn::{self, SpawnError};
use super::step::Step;
use crate::arch::CoreId;

/// A process bound to one core, with its own way of being preempted.
pub trait Resident: Send + Sync {
    /// One turn on the core it is bound to, with preemption enabled.
    ///
    /// After [`Resident::detach`] has returned `Some` during this call, the call no longer speaks for the
    /// resident: it may be on any core, another call of `step` may be running meanwhile, and what it
    /// returns is the end of the detached piece: it must return [`Step::Done`].
    fn step(&self) -> Step;

    /// The turn has used up its slice. Called with interrupts masked on the stack of `step`, which held no
    /// lock. To hand over the piece of work that runs, records that, and returns a token that is dropped
    /// when that piece has ended; the stack is then suspended with the piece, and `step` called anew for
    /// the rest. `None` refuses: the turn runs on.
    fn detach(&self) -> Option<Box<dyn Detached>>;

    /// The piece of work that runs has panicked or faulted, and will not return. Called on its stack, with
    /// preemption disabled; `step` is called anew for the rest.
    fn crashed(&self);

    /// How much waits for this resident; read from any core, for thieves and the balancer.
    fn backlog(&self) -> u32;
}

/// A detached piece of work: what the scheduler must know of it while it is suspended.
pub trait Detached: Send {
    /// The cores it may be resumed on, as a mask.
    fn affinity(&self) -> u64 {
        u64::MAX
    }

    /// The piece has panicked or faulted, and will not return. Called on its stack, with preemption
    /// disabled.
    fn crashed(&self);
}

/// Names a resident to those who wake it.
pub trait Wake: Send + Sync {
    /// Makes the resident runnable on its core, and ends that core's sleep.
    fn wake(&self);

    /// The core that the resident is bound to.
    fn core(&self) -> CoreId;
}

#[repr(C)]
struct ResidentProcess {
    header: Header,
    resident: Arc<dyn Resident>,
}

static VTABLE: VTable = VTable { step, crash, free, detach: Some(detach) };

/// # Safety
/// `header` is that of a live [`ResidentProcess`].
pub(super) unsafe fn resident<'a>(header: NonNull<Header>) -> &'a dyn Resident {
    // SAFETY: by contract; the header is the first field.
    unsafe { &*header.cast::<ResidentProcess>().as_ref().resident }
}

/// # Safety
/// The contract of [`VTable::step`].
unsafe fn step(header: NonNull<Header>) -> Step {
    // SAFETY: this table is used for resident processes only.
    unsafe { resident(header) }.step()
}

/// # Safety
/// The contract of [`VTable::crash`].
unsafe fn crash(header: NonNull<Header>) {
    // SAFETY: as in `step`.
    unsafe { resident(header) }.crashed();
}

/// # Safety
/// The contract of [`VTable::detach`].
unsafe fn detach(header: NonNull<Header>) -> Option<Box<dyn Detached>> {
    // SAFETY: as in `step`.
    unsafe { resident(header) }.detach()
}

/// # Safety
/// The contract of [`VTable::free`].
unsafe fn free(header: NonNull<Header>) {
    // SAFETY: the process was boxed in `spawn`, and the last reference is gone.
    drop(unsafe { Box::from_raw(header.cast::<ResidentProcess>().as_ptr()) });
}

/// Starts a resident on `core`. It is not runnable until it is woken.
///
/// The process ends, and `resident` is dropped, when `step` returns [`Step::Done`] for the resident itself
/// and the last reference is gone.
pub fn spawn(
    resident: Arc<dyn Resident>,
    core: CoreId,
    priority: Priority,
) -> Result<ProcessRef, SpawnError> {
    spawn::count_start()?;
    if let Err(error) = spawn::count_pinned(core.mask()) {
        spawn::uncount_start();
        return Err(error);
    }
    let header = Header::new(&VTABLE, priority, core.mask(), core);
    let Ok(process) = crate::mem::try_box(ResidentProcess { header, resident }) else {
        spawn::uncount_start();
        spawn::uncount_pinned(core.mask());
        return Err(SpawnError::OutOfMemory);
    };
    let header = NonNull::from(Box::leak(process)).cast::<Header>();
    // SAFETY: the scheduler's own reference keeps the process alive until it is done.
    let process = unsafe { ProcessRef::count(header) };
    residents::add(process.clone())?;
    Ok(process)
}
