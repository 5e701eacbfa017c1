//! A resident's form as a process.

use alloc::boxed::Box;
use core::ptr::NonNull;

use crate::mem::Counted;
use crate::sched::process::{AtWork, Detached, EndOfPiece, Header, Resident, Step, VTable};
use crate::sched::spawn::residents;
use crate::watch::Exit;

#[repr(C)]
pub(crate) struct ResidentProcess {
    pub(crate) header: Header,
    pub(crate) resident: Counted<dyn Resident>,
}

pub(crate) static VTABLE: VTable = VTable {
    name: || "an executor's worker",
    step,
    cancel: None,
    crash,
    piece: None,
    free,
    detach: Some(detach),
    is_to_end: Some(is_to_end),
    at_work: Some(at_work),
};

/// # Safety
/// `header` is that of a live [`ResidentProcess`].
pub(crate) unsafe fn resident<'a>(header: NonNull<Header>) -> &'a dyn Resident {
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
unsafe fn crash(header: NonNull<Header>, exit: Exit) {
    // SAFETY: as in `step`.
    unsafe { resident(header) }.crashed(exit);
}

/// # Safety
/// The contract of [`VTable::detach`].
unsafe fn detach(header: NonNull<Header>) -> Option<Box<dyn Detached>> {
    // SAFETY: as in `step`.
    unsafe { resident(header) }.detach()
}

/// # Safety
/// The contract of [`VTable::is_to_end`].
unsafe fn is_to_end(header: NonNull<Header>, asked: EndOfPiece) -> bool {
    // SAFETY: as in `step`.
    unsafe { resident(header) }.is_to_end(asked)
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
    residents::remove(header);
    // SAFETY: the process was boxed by `spawn/resident.rs`, and the last reference is gone.
    drop(unsafe { Box::from_raw(header.cast::<ResidentProcess>().as_ptr()) });
}
