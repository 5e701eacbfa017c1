//! Starting residents.

use alloc::boxed::Box;
use core::ptr::NonNull;
use core::time::Duration;

use crate::arch::CoreId;
use crate::mem::{self, Counted, Payer};
use crate::sched::cores::population;
use crate::sched::cores::{self, here};
use crate::sched::process::{Header, Priority, ProcessRef, Resident};
use crate::sched::spawn::builder::{self, SpawnError};
use crate::sched::spawn::resident_process::{ResidentProcess, VTABLE};
use crate::sched::spawn::residents;
use crate::sync::PreemptGuard;

/// Starts a resident on `core`, which `payer` pays for. It is not runnable until it is woken.
///
/// The process ends, and `resident` is dropped, when `step` returns [`Step::Done`](crate::sched::process::Step::Done) for the resident itself
/// and the last reference is gone.
pub fn spawn(
    resident: Counted<dyn Resident>,
    core: CoreId,
    priority: Priority,
    deadline: Option<Duration>,
    payer: Payer,
) -> Result<ProcessRef, SpawnError> {
    if cores::existing() & core.mask() == 0 {
        return Err(SpawnError::NoSuchCore);
    }
    if !payer.lives() {
        return Err(SpawnError::LimitDropped);
    }
    let deadline = builder::keep(deadline, priority)?;
    // Until it is on its list.
    let here = PreemptGuard::new();
    builder::count(core.mask(), &here)?;
    let header = Header::new(&VTABLE, priority, core.mask(), core)
        .with_deadline(deadline)
        .with_limits(payer.number().into(), here::share_here());
    let Ok(process) = mem::try_box_paid_by(Some(payer), ResidentProcess { header, resident }) else {
        population::uncount(core.mask());
        return Err(SpawnError::OutOfMemory);
    };
    let header = NonNull::from(Box::leak(process)).cast::<Header>();
    // SAFETY: the scheduler's own reference keeps the process alive until it is done.
    let process = unsafe { ProcessRef::count(header) };
    if let Err(error) = residents::add(&process) {
        // It was never queued, so it ends here: what was counted for it, and the scheduler's own reference.
        population::note_end(&process);
        // SAFETY: the reference that the header was made with, which nobody else will give up.
        drop(unsafe { ProcessRef::from_counted(header) });
        return Err(error);
    }
    Ok(process)
}

#[cfg(test)]
mod tests {
    use super::{Resident, spawn};
    use crate::arch::CoreId;
    use crate::mem::{Counted, Payer};
    use crate::sched::cores;
    use crate::sched::cores::population::{live_processes, pinned_to};
    use crate::sched::process::{AtWork, Detached, EndOfPiece, Priority, Step};
    use crate::sched::spawn::{SpawnError, residents};
    use crate::watch::Exit;
    use alloc::boxed::Box;

    struct Idler;

    impl Resident for Idler {
        fn step(&self) -> Step {
            Step::Done
        }

        fn detach(&self) -> Option<Box<dyn Detached>> {
            None
        }

        fn note_slice_end(&self) -> bool {
            false
        }

        fn has_waiting_for_end(&self, _most: usize) -> Option<bool> {
            Some(false)
        }

        fn end_turn(&self) -> bool {
            false
        }

        fn crashed(&self, _: Exit) {}

        fn at_work(&self) -> Option<AtWork> {
            None
        }

        fn is_to_end(&self, _: EndOfPiece) -> bool {
            false
        }

        fn is_ending(&self) -> bool {
            false
        }

        fn backlog(&self) -> u32 {
            0
        }

        fn has_waiting(&self, _now: u64) -> bool {
            false
        }

        fn give_back(&self) -> bool {
            false
        }

        fn let_go(&self) {}

        fn has_surplus(&self, _now: u64) -> bool {
            false
        }
    }

    #[test]
    fn a_resident_that_cannot_be_started_leaves_nothing_behind() {
        let core = CoreId::BOOT;
        let Ok(idler) = Counted::new(Idler) else { panic!("there is memory") };
        let resident = || -> Counted<dyn Resident> {
            // SAFETY: it is returned as it is.
            unsafe { idler.clone().unsized_by::<dyn Resident>(|place| place) }
        };
        let start = || spawn(resident(), core, Priority::Normal, None, Payer::NOBODY).err();
        assert_eq!(start(), Some(SpawnError::NoSuchCore), "before there is any core");
        cores::install(1);
        residents::fail_next_add();
        assert_eq!(start(), Some(SpawnError::OutOfMemory), "without memory for the list");
        assert_eq!((live_processes(), pinned_to(core)), (0, 0), "processes, and those pinned to the core");
        assert!(idler.is_only(), "references to what was to be started");
    }
}
