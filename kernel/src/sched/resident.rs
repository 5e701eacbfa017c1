//! Residents: processes that are not futures, bound to one core for life, such as an executor's worker.
//!
//! A resident is more than a future in one way: what the timer suspends is not the resident but the
//! piece of work it was carrying out, so that the resident itself goes on at once.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr::NonNull;

use super::cores;
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

    /// What is at work in the turn that the caller is part of. Called on its stack, with preemption disabled.
    fn at_work(&self) -> Option<AtWork>;

    /// How much waits for this resident; read from any core, to find out whether anything is left.
    fn backlog(&self) -> u32;

    /// Whether something waits behind the piece of work that runs, at `now` in clock ticks. Called by the timer
    /// interrupt on its core.
    fn has_waiting(&self, now: u64) -> bool;

    /// Whether something of what waits for it may leave for another core; read from any core, at `now` in clock ticks.
    /// Who looks again later finds more: what waits may leave once it was seen waiting for long.
    fn has_surplus(&self, now: u64) -> bool;
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

    /// What is at work in this piece.
    fn at_work(&self) -> Option<AtWork>;
}

/// What a resident, or a piece detached from it, works for: an actor whose behaviour runs. The scheduler passes it on to
/// who knows what it means, see [`at_work_here`](super::at_work_here).
#[derive(Clone, Copy, Debug)]
pub struct AtWork {
    /// Where it lives.
    pub place: NonNull<()>,
    /// Which one of those that have lived there.
    pub life: u64,
    /// Its type.
    pub name: fn() -> &'static str,
}

#[repr(C)]
struct ResidentProcess {
    header: Header,
    resident: Arc<dyn Resident>,
}

static VTABLE: VTable = VTable {
    name: || "an executor's worker",
    step,
    crash,
    free,
    detach: Some(detach),
    at_work: Some(at_work),
};

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
/// The contract of [`VTable::at_work`].
unsafe fn at_work(header: NonNull<Header>) -> Option<AtWork> {
    // SAFETY: as in `step`.
    unsafe { resident(header) }.at_work()
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
    if cores::existing() & core.mask() == 0 {
        return Err(SpawnError::NoSuchCore);
    }
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
    if let Err(error) = residents::add(process.clone()) {
        // It was never queued, so it ends here: what was counted for it, and the scheduler's own reference.
        spawn::note_end(&process);
        // SAFETY: the reference that the header was made with, which nobody else will give up.
        drop(unsafe { ProcessRef::from_counted(header) });
        return Err(error);
    }
    Ok(process)
}

#[cfg(test)]
mod tests {
    use super::{AtWork, Detached, Resident, spawn};
    use crate::arch::CoreId;
    use crate::sched::spawn::{live_processes, pinned_to};
    use crate::sched::{Priority, SpawnError, Step, cores, residents};
    use alloc::boxed::Box;
    use alloc::sync::Arc;

    struct Idler;

    impl Resident for Idler {
        fn step(&self) -> Step {
            Step::Done
        }

        fn detach(&self) -> Option<Box<dyn Detached>> {
            None
        }

        fn crashed(&self) {}

        fn at_work(&self) -> Option<AtWork> {
            None
        }

        fn backlog(&self) -> u32 {
            0
        }

        fn has_waiting(&self, _now: u64) -> bool {
            false
        }

        fn has_surplus(&self, _now: u64) -> bool {
            false
        }
    }

    #[test]
    fn a_resident_that_cannot_be_started_leaves_nothing_behind() {
        let core = CoreId::BOOT;
        let idler = Arc::new(Idler);
        let start = || spawn(idler.clone(), core, Priority::Normal).err();
        assert_eq!(start(), Some(SpawnError::NoSuchCore), "before there is any core");
        cores::install(1);
        residents::fail_next_add();
        assert_eq!(start(), Some(SpawnError::OutOfMemory), "without memory for the list");
        assert_eq!((live_processes(), pinned_to(core)), (0, 0), "processes, and those pinned to the core");
        assert_eq!(Arc::strong_count(&idler), 1, "references to what was to be started");
    }
}
