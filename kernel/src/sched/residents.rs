//! The residents of all executors: who they are, and what waits for them.

use alloc::vec::Vec;
use core::ptr::NonNull;

use super::cores::Core;
use super::process::{Header, ProcessRef};
use super::resident::resident;
use super::spawn::SpawnError;
use crate::sync::SpinLock;

static RESIDENTS: SpinLock<Vec<ProcessRef>> = SpinLock::new(Vec::new());

/// A backlog of this many cannot be worked off by its own resident alone without delay: one is what it
/// has in hand.
const SURPLUS: u32 = 2;

pub(super) fn add(process: ProcessRef) -> Result<(), SpawnError> {
    let mut residents = RESIDENTS.lock();
    // Ended ones are dropped here, where the list is being changed anyway.
    residents.retain(|resident| !resident.is_done());
    residents.try_reserve(1).map_err(|_| SpawnError::OutOfMemory)?;
    residents.push(process);
    Ok(())
}

/// What waits for `process` if it is a resident.
///
/// # Safety
/// `process` is alive.
pub(super) unsafe fn backlog(process: NonNull<Header>) -> u32 {
    // SAFETY: by contract.
    if unsafe { process.as_ref() }.vtable().detach.is_none() {
        return 0;
    }
    // SAFETY: only residents can detach.
    unsafe { resident(process) }.backlog()
}

fn backlog_of(process: &ProcessRef) -> u32 {
    // SAFETY: the reference keeps it alive, and only residents are on the list.
    unsafe { resident(process.pointer()) }.backlog()
}

/// Whether any resident has something waiting.
pub(super) fn any_backlog() -> bool {
    RESIDENTS.lock().iter().any(|process| !process.is_done() && backlog_of(process) > 0)
}

/// Whether a resident of another core has more waiting than it has in hand.
pub(super) fn surplus_elsewhere(core: &Core) -> bool {
    RESIDENTS
        .lock()
        .iter()
        .any(|process| process.home() != core.id() && !process.is_done() && backlog_of(process) >= SURPLUS)
}

/// Gives every resident of `core` a turn, to search the others' mailboxes.
pub(super) fn rouse(core: &Core) {
    let residents = RESIDENTS.lock();
    for process in residents.iter().filter(|process| process.home() == core.id()) {
        process.wake();
    }
}

/// Gives every resident of every core a turn, for a check: one may be roused at any time, wanted or not.
#[cfg(feature = "checks")]
pub(crate) fn rouse_all() {
    RESIDENTS.lock().iter().for_each(ProcessRef::wake);
}
