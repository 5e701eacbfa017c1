//! Putting runnable processes into queues: which core, which part of its queues, and whom to wake.

use crate::arch::{CoreId, barrier, clock};
use crate::mem::stack::StackBlock;
use crate::sched::cores::{self, Core, ThisCore};
use crate::sched::place::{backlog, global, urgent, wake};
use crate::sched::process::{Header, Priority, ProcessRef, Runnable, reductions};
use crate::sync::PreemptGuard;
use crate::trace::{self, Kind};

impl ProcessRef {
    /// Makes the process runnable, unless it is already or has ended.
    pub fn wake(&self) {
        // Before the notification: a stack that overflows between that and the queue would leave the process marked as queued, and in
        // none, so nobody could wake it any more. In a section it overflows into its reserve.
        let here = PreemptGuard::new();
        if self.run_state().notify() {
            // SAFETY: `notify` has marked it as queued, and tells one caller so.
            woken(unsafe { Runnable::new(self.pointer()) }, &here);
        }
    }
}

/// A process was woken: it goes to the core where it ran last if that is awake, because its state is in that cache;
/// otherwise to this one, which is cheaper than waking another. When it leaves again is described in
/// [`sharing`](crate::sched::policy::sharing). The caller has disabled preemption since before it marked the process as queued.
#[inline(never)]
pub(crate) fn woken(process: Runnable, here: &PreemptGuard) {
    process.set_enqueued_at(clock::now());
    trace_wake(&process, Kind::Woken);
    // What is bound to this core and urgent, while its loop waits: most of what a device wakes. Apart, because it needs few registers.
    match ThisCore::that_waits(here) {
        Some(core)
            if process.affinity_mask() == core.mask()
                && process.priority().is_urgent()
                && may_be_chosen(&core, &process) =>
        {
            core.choose(process);
        }
        _ => place_woken(process, here),
    }
}

/// The rest of [`woken`].
#[inline(never)]
fn place_woken(process: Runnable, here: &PreemptGuard) {
    let Some(core) = ThisCore::of(here) else { return woken_in_interrupt(process, here) };
    if process.affinity_mask() == core.mask() {
        // There is no other place for it.
        return keep(&core, process);
    }
    if global::is_for(&process) {
        return global::push(process);
    }
    let target = place(core.core(), &process);
    if target.id() != core.id() {
        return deliver(process, target);
    }
    if process.priority() == Priority::Normal && !process.is_pinned() {
        if core.put_next(process) {
            call_thief(&core);
        }
        return;
    }
    keep(&core, process);
}

/// The same in an interrupt. Something urgent for which the turn that was interrupted is left at the end of that, or of the section that was, is chosen
/// for the next (`preempt::makes_way`), so it goes through no queue.
#[inline(never)]
fn woken_in_interrupt(process: Runnable, here: &PreemptGuard) {
    if let Some(core) = ThisCore::that_may_leave_turn(here)
        && urgent::preempts_the_turn(process.priority())
        && may_be_chosen(&core, &process)
        && (process.affinity_mask() == core.mask() || place_from_outside(&process).id() == core.id())
    {
        return core.choose(process);
    }
    // Not into the global queue either: the code that was interrupted may hold its lock.
    let target = place_from_outside(&process);
    deliver(process, target);
}

/// Writes down that a process became runnable, if a trace is on.
#[inline(always)]
fn trace_wake(process: &Header, kind: Kind) {
    if trace::is_on() {
        trace_wake_aside(process, kind);
    }
}

#[cold]
#[inline(never)]
fn trace_wake_aside(process: &Header, kind: Kind) {
    let subject = core::ptr::from_ref(process).addr() as u64;
    trace::note(kind, subject, process.home().index() as u32, Some(process.vtable().name));
}

/// As [`ProcessRef::wake`], for the core's loop, in which preemption is disabled.
#[inline(always)]
pub(crate) fn woken_by_loop(core: &ThisCore<'_>, process: &ProcessRef) {
    if !process.run_state().notify() {
        return;
    }
    // SAFETY: `notify` has marked it as queued, and tells one caller so.
    let process = unsafe { Runnable::new(process.pointer()) };
    if process.priority().is_urgent() && process.affinity_mask() == core.mask() {
        // As `woken` does.
        process.set_enqueued_at(clock::now());
        trace_wake(&process, Kind::Woken);
        return keep_urgent(core, process);
    }
    woken(process, core.here());
}

/// As [`ProcessRef::wake`], for what the core's loop calls, which must be in no turn.
#[inline(always)]
pub(crate) fn wake_from_loop(process: &ProcessRef, here: &PreemptGuard) {
    match ThisCore::of(here) {
        Some(core) => woken_by_loop(&core, process),
        None => process.wake(),
    }
}

/// Whether an urgent process, woken by [`wake_from_loop`] now, would have the next turn here.
pub(crate) fn would_be_next(process: &ProcessRef, here: &PreemptGuard) -> bool {
    ThisCore::of(here).is_some_and(|core| may_be_chosen(&core, process))
}

/// Puts what is chosen for the next turn into its queue, after all.
#[inline(always)]
pub(crate) fn queue_chosen(core: &ThisCore<'_>) {
    if let Some(process) = core.take_chosen() {
        queue_apart(core, process);
    }
}

/// As [`queue`], where that is rare.
#[inline(never)]
pub(super) fn queue_apart(core: &ThisCore<'_>, process: Runnable) {
    queue(core, process);
}

/// Puts a process into this core's own queue, and calls a thief if one could take it.
#[inline(always)]
fn keep(core: &ThisCore<'_>, process: Runnable) {
    if process.priority().is_urgent() {
        return keep_urgent(core, process);
    }
    queue(core, process);
}

/// The same of something urgent. Between two turns it is the core's choice for the next, if nothing urgent waits and nothing is chosen: the
/// loop comes to that at once, so nobody else need find it in a queue.
#[inline(always)]
fn keep_urgent(core: &ThisCore<'_>, process: Runnable) {
    let is_between_turns = StackBlock::current().process().is_null();
    if is_between_turns && may_be_chosen(core, &process) {
        return core.choose(process);
    }
    queue_urgent(core, process);
}

/// Whether something urgent would have the next turn: nothing else that is waits, here or for any core.
#[inline(always)]
fn may_be_chosen(core: &ThisCore<'_>, process: &Header) -> bool {
    !process.has_deadline()
        && !core.queue.has_urgent()
        && !core.chosen.is_some()
        && !global::has_work_for(core)
}

#[inline(never)]
fn queue_urgent(core: &ThisCore<'_>, process: Runnable) {
    // First what was chosen, which came before.
    queue_chosen(core);
    let priority = process.priority();
    queue(core, process);
    urgent::ask_the_turn(core, priority);
}

#[inline(always)]
fn queue(core: &ThisCore<'_>, process: Runnable) {
    if core.push(process) {
        call_thief(core);
    }
}

/// Calls a thief if more waits on a core than that one will reach soon.
#[inline(always)]
fn call_thief_for(core: &Core) {
    // An estimate first: a core that becomes idle a moment later looks for itself.
    if wake::some_core_is_idle() {
        call_idle_core_for(core, core.queue.stealable());
    }
}

/// The same for the caller's own core.
#[inline(always)]
pub(crate) fn call_thief(core: &ThisCore<'_>) {
    if wake::some_core_is_idle() {
        call_idle_core(core.core());
    }
}

#[inline(never)]
fn call_idle_core(core: &Core) {
    call_idle_core_for(core, core.queue.stealable_where_flagged());
}

#[inline(always)]
fn call_idle_core_for(core: &Core, stealable: usize) {
    if backlog::is_backlog(core, stealable) {
        wake::wake_thief();
    }
}

/// What a spawn costs the parent's turn, counted in messages.
const SPAWN_REDUCTIONS: u64 = 20;

/// A new process: on the core of its parent, at the back, unless its mask says otherwise.
pub(crate) fn spawned(process: Runnable) {
    let here = PreemptGuard::new();
    process.set_enqueued_at(clock::now());
    match ThisCore::of(&here) {
        Some(core) if process.affinity_mask() & cores::online() & core.mask() != 0 => {
            // Paid by the parent.
            reductions::charge(SPAWN_REDUCTIONS);
            process.set_home(core.id());
            trace_wake(&process, Kind::Spawned);
            if global::is_for(&process) {
                return global::push(process);
            }
            core.pace.note_event();
            keep(&core, process);
        }
        _ => spawned_elsewhere(process, &here),
    }
}

/// The same, where the parent's core is none, in an interrupt, offline, or not for it.
#[cold]
fn spawned_elsewhere(process: Runnable, here: &PreemptGuard) {
    let core = Core::current(here);
    if core.is_some() {
        reductions::charge(SPAWN_REDUCTIONS);
    }
    process.set_home(home_for(process.affinity_mask(), core));
    trace_wake(&process, Kind::Spawned);
    if global::is_for(&process) {
        return global::push(process);
    }
    let target = place_from_outside(&process);
    deliver(process, target);
}

/// The home of a new process: its parent's core if the mask allows it, else the first that it does.
#[inline(always)]
fn home_for(affinity: u64, core: Option<&Core>) -> CoreId {
    match core {
        Some(core) if affinity & core.mask() != 0 => core.id(),
        _ => CoreId::new(affinity.trailing_zeros() as usize).unwrap_or(CoreId::BOOT),
    }
}

/// A process whose turn is over goes to the back of this core's queue.
pub(crate) fn requeue(core: &ThisCore<'_>, process: Runnable) {
    requeue_at(core, process, clock::now());
}

/// As [`requeue`]; the turn was over at `now`.
pub(crate) fn requeue_at(core: &ThisCore<'_>, process: Runnable, now: u64) {
    process.set_enqueued_at(now);
    core.turn_ended_at.set(now);
    if global::is_for(&process) {
        global::push(process);
    } else if allowed(&process) & core.mask() == 0 {
        // Its mask was changed, or this core is going offline.
        let target = place_from_outside(&process);
        deliver(process, target);
    } else {
        keep(core, process);
    }
}

/// A process that has made way for something urgent. If it is `Normal` and not pinned it comes next, within the bounds of the run-next
/// slot: behind thousands of others it would keep the stack that it is suspended on until all those have had their turns, and each
/// urgent turn would take another stack, until none is left. Its turn was over at `now`.
pub(crate) fn requeue_as_next(core: &ThisCore<'_>, process: Runnable, now: u64) {
    if process.priority() != Priority::Normal
        || process.is_pinned()
        || global::is_for(&process)
        || allowed(&process) & core.mask() == 0
    {
        return requeue_at(core, process, now);
    }
    process.set_enqueued_at(now);
    core.turn_ended_at.set(now);
    if core.put_next(process) {
        call_thief(core);
    }
}

/// The same of one whose turn was left at `at` and lay beneath the urgent one, whose end the core has noted. `is_young`: its time was not over.
pub(crate) fn requeue_left(core: &ThisCore<'_>, process: Runnable, is_young: bool, at: u64) {
    let ended_at = core.turn_ended_at.get();
    if is_young {
        requeue_as_next(core, process, at)
    } else {
        requeue_at(core, process, at)
    }
    core.turn_ended_at.set(ended_at);
}

/// Delivers a process to another core's inbox, and wakes it or, if it is busy, a thief.
pub(crate) fn deliver(process: Runnable, target: &Core) {
    let (pinned, priority) = (process.is_pinned(), process.priority());
    process.set_home(target.id());
    target.queue.push_remote(process);
    // Pairs with the barrier in `wake::announce`.
    barrier::full();
    if wake::wake(target) {
        return;
    }
    let here = PreemptGuard::new();
    urgent::ask(target, Core::current(&here), priority);
    if !pinned {
        call_thief_for(target);
    }
}

/// The online cores that a process may run on; if its mask leaves none of those, the mask itself: it then
/// waits for its core to come back.
fn allowed(header: &Header) -> u64 {
    let mask = header.affinity_mask() & cores::online();
    if mask == 0 { header.affinity_mask() } else { mask }
}

fn place(core: &'static Core, header: &Header) -> &'static Core {
    let allowed = allowed(header);
    let home = header.home();
    if home != core.id()
        && allowed & home.mask() != 0
        && let Some(home) = cores::get(home.index())
        && (allowed & core.mask() == 0 || !wake::is_idle(home))
    {
        let others = cores::all().filter(|core| allowed & core.mask() != 0);
        return urgent::elsewhere(home, header.priority(), others);
    }
    if allowed & core.mask() != 0 { core } else { place_from_outside(header) }
}

/// Where a process goes that cannot stay here: home if allowed, else the allowed core with the shortest
/// queue.
fn place_from_outside(header: &Header) -> &'static Core {
    let allowed = allowed(header);
    let fits = |core: &&'static Core| allowed & core.mask() != 0;
    if let Some(home) = cores::get(header.home().index()).filter(fits) {
        return home;
    }
    let shortest = cores::all().filter(fits).min_by_key(|core| core.queue.stealable());
    match shortest.or_else(|| cores::get(CoreId::BOOT.index())) {
        Some(core) => core,
        None => {
            panic!("a process was started before the scheduler: call sched::start first")
        }
    }
}
