//! The residents of all executors: who they are, and what waits for them.
//!
//! The list keeps nobody: who is freed leaves it before. So what a resident has taken is back when its executor has stopped, whether
//! another is ever started or not.

use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::resident_process::resident;
use crate::mem::stack::StackBlock;
use crate::sched::cores::Core;
use crate::sched::is_wanted_urgently;
use crate::sched::process::{Header, ProcessRef};
use crate::sched::spawn::SpawnError;
use crate::sync::{PaidBy, PreemptGuard, SpinLock};

/// Those that are on the list. Each is alive while the lock is held: nobody is freed before it has left.
struct Residents(Vec<NonNull<Header>>);

// SAFETY: processes may be looked at from any core.
unsafe impl Send for Residents {}

impl Residents {
    fn all(&self) -> impl Iterator<Item = ManuallyDrop<ProcessRef>> {
        // SAFETY: alive as long as the list is borrowed, so under the lock; the reference, which was not counted, is not given up. One
        // that has no other has ended, so nobody makes more of this.
        self.0.iter().map(|process| ManuallyDrop::new(unsafe { ProcessRef::from_counted(*process) }))
    }
}

static RESIDENTS: SpinLock<Residents> = SpinLock::new(Residents(Vec::new()));

#[cfg(test)]
static FAIL_NEXT_ADD: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);

/// Lets the next [`add`] find no memory.
#[cfg(test)]
pub(crate) fn fail_next_add() {
    FAIL_NEXT_ADD.store(true, core::sync::atomic::Ordering::Relaxed);
}

/// Puts a resident on the list, which [`remove`] must take from there.
///
/// # Errors
/// [`SpawnError::OutOfMemory`]; then nothing was changed, and the caller must undo what it has counted.
pub(crate) fn add(process: &ProcessRef) -> Result<(), SpawnError> {
    let _nobody = PaidBy::nobody();
    let mut residents = RESIDENTS.lock();
    #[cfg(test)]
    if FAIL_NEXT_ADD.swap(false, core::sync::atomic::Ordering::Relaxed) {
        return Err(SpawnError::OutOfMemory);
    }
    residents.0.try_reserve(1).map_err(|_| SpawnError::OutOfMemory)?;
    residents.0.push(process.pointer());
    Ok(())
}

/// Takes a resident from the list, if it was put there: it is about to be freed.
pub(crate) fn remove(process: NonNull<Header>) {
    RESIDENTS.lock().0.retain(|resident| *resident != process);
}

/// The resident whose turn runs on the caller's stack, if one does.
pub(crate) fn running_here() -> Option<NonNull<Header>> {
    let process = NonNull::new(StackBlock::current().process().cast::<Header>())?;
    // SAFETY: the process runs on this stack, so it is alive. Only residents can detach.
    unsafe { process.as_ref() }.vtable().detach.map(|_| process)
}

/// Whether a piece detached from a resident runs on the caller's stack.
pub(crate) fn piece_runs_here() -> bool {
    let process = NonNull::new(StackBlock::current().process().cast::<Header>());
    // SAFETY: the process runs on this stack, so it is alive. Only pieces are told of their turns.
    process.is_some_and(|process| unsafe { process.as_ref() }.vtable().piece.is_some())
}

/// Whether something waits behind a resident.
///
/// # Safety
/// `process` came from [`running_here`], or is a resident whose turn was interrupted on the caller's core.
pub(crate) unsafe fn has_waiting(process: NonNull<Header>, now: u64) -> bool {
    // SAFETY: by contract.
    unsafe { resident(process) }.has_waiting(now)
}

/// A slice has ended in a resident's turn: whether the piece of work that runs is the one that ran when the last one did.
///
/// # Safety
/// As [`has_waiting`].
pub(crate) unsafe fn note_slice_end(process: NonNull<Header>) -> bool {
    // SAFETY: by contract.
    unsafe { resident(process) }.note_slice_end()
}

/// Whether something waits for the end of a resident's turn, of the first `most` that may; `None` if none does, and there are more.
///
/// # Safety
/// As [`has_waiting`].
pub(crate) unsafe fn has_waiting_for_end(process: NonNull<Header>, most: usize) -> Option<bool> {
    // SAFETY: by contract.
    unsafe { resident(process) }.has_waiting_for_end(most)
}

/// Whether a resident only needs a turn in which it ends.
///
/// # Safety
/// `process` is a resident, which the caller has in hand.
pub(crate) unsafe fn is_ending(process: NonNull<Header>) -> bool {
    // SAFETY: by contract.
    unsafe { resident(process) }.is_ending()
}

/// Tells a resident to end its turn behind the piece of work that runs. Whether it will.
///
/// # Safety
/// `process` is a resident, whose turn runs on the caller's stack and holds no lock.
pub(crate) unsafe fn end_turn(process: NonNull<Header>) -> bool {
    // SAFETY: by contract.
    unsafe { resident(process) }.end_turn()
}

/// Has a resident give back a few of what it has in hand. Whether more are left.
///
/// # Safety
/// `process` is a resident of the caller's core, in no turn.
pub(crate) unsafe fn give_back(process: NonNull<Header>) -> bool {
    // SAFETY: by contract.
    unsafe { resident(process) }.give_back()
}

/// Lets what waits behind `process` go, if it is a resident.
///
/// # Safety
/// `process` is alive, and its turn runs on the caller's core and holds no lock.
pub(crate) unsafe fn let_go(process: NonNull<Header>) {
    // SAFETY: the caller promised that the process is alive; only residents can detach.
    unsafe {
        if process.as_ref().vtable().detach.is_some() {
            resident(process).let_go();
        }
    }
}

/// Whether any resident has something waiting.
pub(crate) fn any_backlog() -> bool {
    // SAFETY: alive under the lock, and only residents are on the list.
    let backlog_of = |process: &ProcessRef| unsafe { resident(process.pointer()) }.backlog();
    RESIDENTS.lock().all().any(|process| !process.is_done() && backlog_of(&process) > 0)
}

/// Whether any resident has something that may leave for another core, at `now` in clock ticks. All are looked at,
/// because the look notes what it sees; or until something urgent has come for the caller, a core's loop.
pub(crate) fn any_surplus(now: u64) -> bool {
    let has_surplus = |process: &ManuallyDrop<ProcessRef>| {
        // SAFETY: alive under the lock, and only residents are on the list.
        !process.is_done() && unsafe { resident(process.pointer()) }.has_surplus(now)
    };
    let here = PreemptGuard::new();
    let residents = RESIDENTS.lock();
    let looked_at = residents.all().take_while(|_| !is_wanted_urgently(&here));
    looked_at.filter(has_surplus).count() > 0
}

/// Gives every resident of `core` a turn, to search the others' mailboxes.
pub(crate) fn wake_all_of(core: &Core) {
    let residents = RESIDENTS.lock();
    for process in residents.all().filter(|process| process.home() == core.id()) {
        process.wake();
    }
}

/// Gives every resident of every core a turn, for a check: one may be woken at any time, whether needed or not.
#[cfg(feature = "checks")]
pub(crate) fn wake_all() {
    RESIDENTS.lock().all().for_each(|process| process.wake());
}
