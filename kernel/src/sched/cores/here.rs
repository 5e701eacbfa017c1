//! What a process can ask about where it runs.

use core::ptr::NonNull;

use crate::arch::CoreId;
use crate::mem::stack::StackBlock;
use crate::sched::cores::Core;
use crate::sched::process::{AtWork, Header, ProcessRef, ShareRef};
use crate::sync::{Identity, PreemptGuard};

/// The core that runs the caller, if a scheduler does. The answer may be outdated at once, unless the
/// caller is pinned.
///
/// ```
/// # use magpie::{sched, time};
/// # sched::run_on_threads(2, 1, async {
/// assert!(sched::current_core().is_some());
/// # }).unwrap();
/// ```
pub fn current_core() -> Option<CoreId> {
    let here = PreemptGuard::new();
    Core::current(&here).map(Core::id)
}

/// The core that the caller runs on, if it is one; not from an interrupt.
#[inline(always)]
pub(crate) fn core_here(here: &PreemptGuard) -> Option<CoreId> {
    let core = Core::current(here)?;
    debug_assert!(!core.is_in_handler(), "a message was sent from an interrupt");
    Some(core.id())
}

/// The core whose loop the caller is, between two turns. `None` in a turn, and in an interrupt.
#[inline(always)]
pub(crate) fn loop_here(here: &PreemptGuard) -> Option<CoreId> {
    let is_between_turns = StackBlock::current().process().is_null();
    let core = Core::current(here).filter(|core| is_between_turns && !core.is_in_handler())?;
    Some(core.id())
}

/// Whether something urgent has come while the caller, a part of the core's loop, is at work.
pub(crate) fn is_wanted_urgently(_here: &PreemptGuard) -> bool {
    StackBlock::current().preempt().is_requested()
}

/// Whether something waits on this core that is not bound to it; an estimate. Bound residents do not count: several that
/// were woken to steal would each leave it to the next.
pub(crate) fn has_more_here() -> bool {
    let here = PreemptGuard::new();
    Core::current(&here).is_some_and(|core| core.queue.stealable() > 0 || core.queue.run_next_is_taken())
}

/// The process whose turn the caller is part of, if it is.
///
/// ```
/// # use magpie::sched;
/// # sched::run_on_threads(2, 1, async {
/// let handle = sched::spawn(async { sched::current_process().map(|process| process.id()) })?;
/// let id = handle.process().id();
/// assert_eq!(handle.await, Ok(Some(id)));
/// # Ok::<(), sched::SpawnError>(())
/// # }).unwrap().unwrap();
/// ```
pub fn current_process() -> Option<ProcessRef> {
    let process = NonNull::new(StackBlock::current().process().cast::<Header>())?;
    // SAFETY: a process is kept alive during its turn, which the caller is part of.
    Some(unsafe { ProcessRef::count(process) })
}

/// The share of CPU time of the process whose turn the caller is part of.
pub(crate) fn share_here() -> Option<ShareRef> {
    let process = NonNull::new(StackBlock::current().process().cast::<Header>())?;
    // SAFETY: as in `current_process`.
    unsafe { process.as_ref() }.share().cloned()
}

/// Whether the caller is part of a turn that belongs to no single process: of a resident's, or of a piece of work
/// detached from one.
pub(crate) fn is_in_resident() -> bool {
    let process = NonNull::new(StackBlock::current().process().cast::<Header>());
    // SAFETY: a process is kept alive during its turn, which the caller is part of.
    process.is_some_and(|process| unsafe { process.as_ref() }.vtable().at_work.is_some())
}

/// The one that the caller is part of, to be compared with one that has crashed: the process that runs, or in a behaviour the actor.
pub(crate) fn identity_here() -> Option<Identity> {
    if is_in_resident() {
        let AtWork { place, life, .. } = at_work_here()?;
        return Some(Identity::Actor { place: place.addr().get(), life });
    }
    match StackBlock::running_process() {
        0 => None,
        process => Some(Identity::Process(process)),
    }
}

/// What runs in the turn that the caller is part of, by its type: an actor's behaviour, or else a process. For messages
/// that report a failure in it.
pub fn name_here() -> Option<&'static str> {
    names_here().map(Names::innermost)
}

/// The type of the process that the caller is part of, and that of the actor whose behaviour it is in.
pub(crate) fn names_here() -> Option<Names> {
    // As in `at_work_here`.
    let _here = PreemptGuard::new();
    let process = NonNull::new(StackBlock::current().process().cast::<Header>())?;
    // SAFETY: as in `at_work_here`.
    Some(unsafe { names_of(process) })
}

/// What a process is called, and the actor whose behaviour runs in its turn.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    /// The type of the process.
    pub process: &'static str,
    /// That of the actor.
    pub actor: Option<&'static str>,
}

impl Names {
    /// What a failure is reported of.
    pub(crate) fn innermost(self) -> &'static str {
        self.actor.unwrap_or(self.process)
    }
}

/// # Safety
/// The process has a turn on this core, or had it until the caller stopped that. Preemption is disabled.
pub(crate) unsafe fn names_of(process: NonNull<Header>) -> Names {
    // SAFETY: its turn keeps it alive.
    let table = unsafe { process.as_ref() }.vtable();
    // SAFETY: by contract.
    let at_work = table.at_work.and_then(|at_work| unsafe { at_work(process) });
    Names { process: (table.name)(), actor: at_work.map(|at_work| (at_work.name)()) }
}

/// What the resident works for whose turn, or piece of a turn, the caller is part of.
pub(crate) fn at_work_here() -> Option<AtWork> {
    // Between finding the process and asking it the turn must not be suspended: that would make another process of it.
    let _here = PreemptGuard::new();
    let process = NonNull::new(StackBlock::current().process().cast::<Header>())?;
    // SAFETY: a process is kept alive during its turn, which the caller is part of; preemption is disabled.
    unsafe { (process.as_ref().vtable().at_work?)(process) }
}
