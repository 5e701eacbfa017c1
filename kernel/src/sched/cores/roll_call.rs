//! Which processes there are: each core has a [`Roll`](crate::roll::Roll) of those that were first seen there.
//!
//! **A process is entered when its first turn ends without its end**, is suspended, or has lasted for a slice. So one that is started and ends in
//! its first turn, as most do that are started often, costs a look at its end and nothing else. One that waits for its first turn is
//! counted ([`live_processes`](super::population::live_processes)), and not listed.
//!
//! It stays on the roll where it was entered, whatever core it goes to, and is struck off when it has ended, before the
//! scheduler gives up its reference. So under the lock of a roll all that are on it live, and may be referred to.

use core::iter;
use core::ptr::NonNull;

use super::block::{self, Core};
use super::here::current_process;
use crate::sched::process::{Header, ProcessRef};
use crate::sync::PreemptGuard;

/// Enters a process, unless it is on a roll already, or there is no memory for that: then it is tried again. The timer's interrupt of
/// its turn takes no memory.
///
/// # Safety
/// It is alive, and the caller has it in hand, with preemption disabled; or is its turn, or an interrupt of that where preemption was enabled.
#[cold]
#[inline(never)]
pub(crate) unsafe fn enter(core: &'static Core, process: NonNull<Header>, may_grow: bool) {
    // SAFETY: by contract.
    let header = unsafe { process.as_ref() };
    if !header.is_listed() {
        // SAFETY: `strike` comes before the end of the scheduler's reference.
        if let Some(place) = unsafe { core.roll.enter(process.cast(), may_grow) } {
            header.set_listed(Some((core.id(), place)));
        }
    }
}

/// A process that is on a roll has ended.
#[cold]
#[inline(never)]
pub(super) fn strike(header: &Header) {
    if let Some((core, place)) = header.listed()
        && let Some(core) = block::get(core.index())
    {
        header.set_listed(None);
        core.roll.strike(place);
    }
}

/// The processes, with the workers of executors and with behaviours that are suspended. One that is waiting for its first turn, or is in it for less
/// than a slice, is not among them, but for the caller; [`live_processes`](crate::sched::live_processes) counts those, too.
///
/// Each is looked at at a moment of its own, and may have ended since. It stops nobody, and takes no memory.
///
/// ```
/// # use magpie::sched;
/// use magpie::sched::ProcessState;
/// # sched::run_on_threads(2, 1, async {
/// let own = sched::current_process().ok_or("no process runs")?;
/// assert!(sched::processes().any(|process| process.id() == own.id()));
/// for process in sched::processes().filter(|process| process.state() == ProcessState::Waiting) {
///     println!("{} waits on core {}", process.type_name(), process.home().index());
/// }
/// # Ok::<(), &str>(())
/// # }).unwrap().unwrap();
/// ```
pub fn processes() -> impl Iterator<Item = ProcessRef> {
    if let Some(own) = current_process() {
        let here = PreemptGuard::new();
        if let Some(core) = Core::current(&here) {
            // SAFETY: the caller is its turn.
            unsafe { enter(core, own.pointer(), true) };
        }
    }
    // SAFETY: what is on a roll lives under its lock.
    let look = |process: NonNull<()>| Some(unsafe { ProcessRef::count(process.cast()) });
    let mut cores = block::all();
    let mut listed = cores.next().map(|core| core.roll.each(look));
    // As in `Roll::each`.
    iter::from_fn(move || {
        loop {
            match listed.as_mut()?.next() {
                Some(process) if process.is_done() => {}
                Some(process) => return Some(process),
                None => listed = cores.next().map(|core| core.roll.each(look)),
            }
        }
    })
}
