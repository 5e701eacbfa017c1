//! Taking a core out of service, and back.
//!
//! A core that is offline runs nothing but what cannot run anywhere else: its loop hands on whatever it finds in
//! its queues, and it sleeps. It still takes interrupts, fires the timers that were set on it, and hands on
//! whom they wake. It steals nothing, and nothing new is placed on it.
//!
//! A process that is pinned to the core would be stranded, so the core is not let go while one lives, and
//! none can be started while it is offline. The two checks cannot miss each other. Taking the core offline clears its
//! bit, passes a full barrier and reads the count. Starting a process counts it, passes a full barrier and reads the
//! bit.

use crate::arch::{CoreId, barrier};
use crate::sched::cores::{self, Core, ThisCore, population};
use crate::sched::place::{enqueue, wake};
use crate::sync::PreemptGuard;

/// Why a core stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OfflineError {
    /// The machine was not started with that core.
    NoSuchCore,
    /// The boot core ends the image, and stays.
    BootCore,
    /// This many processes can run nowhere else: executors' workers and processes pinned to that core. End those
    /// first.
    Pinned(u32),
}

impl core::fmt::Display for OfflineError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoSuchCore => f.write_str("there is no such core"),
            Self::BootCore => f.write_str("the boot core cannot go offline"),
            Self::Pinned(count) => {
                write!(f, "{count} are pinned there, or executors' workers: end those first")
            }
        }
    }
}

impl core::error::Error for OfflineError {}

fn find(core: CoreId) -> Result<&'static Core, OfflineError> {
    if cores::existing() & core.mask() == 0 {
        return Err(OfflineError::NoSuchCore);
    }
    cores::get(core.index()).ok_or(OfflineError::NoSuchCore)
}

/// Takes a core out of service. It goes on with the turn it is in, if any; what waits there moves to other
/// cores. A core that is offline already stays so.
///
/// # Errors
/// See [`OfflineError`]; the core then stays in service.
///
/// ```
/// # use magpie::{sched, time};
/// use magpie::arch::CoreId;
/// # sched::run_on_threads(2, 1, async {
/// let last = CoreId::new(1).unwrap();
/// sched::offline(last)?;
/// assert!(!sched::is_online(last));
/// sched::online(last)?;
/// # Ok::<(), sched::OfflineError>(())
/// # }).unwrap().unwrap();
/// ```
pub fn offline(core: CoreId) -> Result<(), OfflineError> {
    let target = find(core)?;
    if core == CoreId::BOOT {
        return Err(OfflineError::BootCore);
    }
    // Whoever is killed between two of the steps would leave a core out of service that has work of its own.
    let _here = PreemptGuard::new();
    cores::set_online(core, false);
    // Pairs with the barrier in `spawn::count_pinned`.
    barrier::full();
    match population::pinned_to(core) {
        0 => {
            wake::wake(target);
            Ok(())
        }
        pinned => {
            cores::set_online(core, true);
            Err(OfflineError::Pinned(pinned))
        }
    }
}

/// Puts a core back into service.
///
/// # Errors
/// [`OfflineError::NoSuchCore`].
pub fn online(core: CoreId) -> Result<(), OfflineError> {
    let target = find(core)?;
    // As above: it would sleep although it is in service.
    let _here = PreemptGuard::new();
    cores::set_online(core, true);
    barrier::full();
    // It comes to steal.
    wake::wake(target);
    Ok(())
}

/// Whether a core is in service.
pub fn is_online(core: CoreId) -> bool {
    cores::online() & core.mask() != 0
}

/// Hands on what waits on a core that is offline. What can run nowhere else it keeps, and runs: that is nothing
/// but a process that was started in the moment before.
pub(crate) fn evacuate(core: &ThisCore<'_>) {
    // As many rounds as there are entries now, because what is kept comes round again.
    for _ in 0..core.queue.waiting() {
        let Some(process) = core.take() else { return };
        core.statistics.processes_evacuated.bump();
        // The core is not online, so it goes elsewhere if it may.
        enqueue::requeue(core, process);
    }
}
