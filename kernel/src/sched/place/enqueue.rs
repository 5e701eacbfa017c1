//! Putting runnable processes into queues: which core, which part of its queues, and whom to wake.

use core::ptr::NonNull;

use crate::arch::{CoreId, barrier, clock};
use crate::sched::cores::{self, Core};
use crate::sched::place::{backlog, global, wake};
use crate::sched::process::{Header, Priority, ProcessRef, reductions};
use crate::sync::PreemptGuard;

impl ProcessRef {
    /// Makes the process runnable, unless it is already or has ended.
    pub fn wake(&self) {
        if self.run_state().notify() {
            woken(self.pointer());
        }
    }
}

/// A process was woken: it goes to the core where it ran last if that is awake, for its state is in that
/// cache; otherwise to this one, which is cheaper than waking another. When it leaves again is told in
/// [`sharing`](crate::sched::policy::sharing).
pub(crate) fn woken(process: NonNull<Header>) {
    let here = PreemptGuard::new();
    // SAFETY: a process in hand is alive.
    let header = unsafe { process.as_ref() };
    header.set_enqueued_at(clock::now());
    let core = Core::current(&here).filter(|core| !core.in_interrupt.get());
    let Some(core) = core else {
        // From an interrupt not into the global queue either: the code that was interrupted may hold its lock.
        deliver(process, place_from_outside(header));
        return;
    };
    if global::is_for(header) {
        global::push(process);
        return;
    }
    let target = place(core, header);
    if target.id() != core.id() {
        deliver(process, target);
        return;
    }
    if header.priority() == Priority::Normal && !header.is_pinned() {
        // SAFETY: this core's own queue, preemption disabled by `here`, not in an interrupt.
        if unsafe { core.queue.push_fast(process) } {
            call_thief_for(core);
        }
        return;
    }
    // SAFETY: as above.
    unsafe { keep(core, process) };
}

/// Puts a process into this core's own queue, and calls a thief if one could take it.
///
/// # Safety
/// The caller is on `core`, with preemption disabled and not in an interrupt; it gives up the process.
unsafe fn keep(core: &Core, process: NonNull<Header>) {
    // Asked before it is in the queue: a thief may take it from there, run it to its end, and free it.
    // SAFETY: a process in hand is alive.
    let pinned = unsafe { process.as_ref() }.is_pinned();
    // SAFETY: by contract.
    unsafe { core.queue.push_own(process) };
    if !pinned {
        call_thief_for(core);
    }
}

/// Calls a thief if more waits on a core than that one will reach soon.
#[inline(always)]
fn call_thief_for(core: &Core) {
    // An estimate first: who becomes idle a moment later looks for itself.
    if wake::some_core_is_idle() && backlog::is_backlog(core) {
        wake::wake_thief();
    }
}

/// What a spawn costs the parent's turn, as much as so many messages.
const SPAWN_REDUCTIONS: u64 = 20;

/// A new process: on the core of its parent, at the back, unless its mask says otherwise.
pub(crate) fn spawned(process: NonNull<Header>) {
    let here = PreemptGuard::new();
    // SAFETY: a process in hand is alive.
    let header = unsafe { process.as_ref() };
    header.set_enqueued_at(clock::now());
    let current = Core::current(&here);
    if current.is_some() {
        // Paid by the parent.
        reductions::charge(SPAWN_REDUCTIONS);
    }
    if global::is_for(header) {
        global::push(process);
        return;
    }
    match current {
        Some(core) if allowed(header) & core.id().mask() != 0 && !core.in_interrupt.get() => {
            core.pace.note_event();
            // SAFETY: this core's own queue, preemption disabled by `here`, not in an interrupt.
            unsafe { keep(core, process) };
        }
        _ => deliver(process, place_from_outside(header)),
    }
}

/// A process whose turn is over goes to the back of this core's queue.
///
/// # Safety
/// The caller is `core`'s loop.
pub(crate) unsafe fn requeue(core: &Core, process: NonNull<Header>) {
    // SAFETY: a process in hand is alive.
    let header = unsafe { process.as_ref() };
    let now = clock::now();
    header.set_enqueued_at(now);
    core.turn_ended_at.set(now);
    if global::is_for(header) {
        global::push(process);
    } else if allowed(header) & core.id().mask() == 0 {
        // Its mask was changed, or this core is going offline.
        deliver(process, place_from_outside(header));
    } else {
        // SAFETY: by contract.
        unsafe { keep(core, process) };
    }
}

/// Delivers a process to another core's inbox, and wakes it or, if it is busy, a thief.
pub(crate) fn deliver(process: NonNull<Header>, target: &Core) {
    // SAFETY: a process in hand is alive.
    let pinned = unsafe { process.as_ref() }.is_pinned();
    target.queue.push_remote(process);
    // Pairs with the barrier in `wake::announce`.
    barrier::full();
    if !wake::wake(target) && !pinned {
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
        && (allowed & core.id().mask() == 0 || !wake::is_idle(home))
    {
        return home;
    }
    if allowed & core.id().mask() != 0 { core } else { place_from_outside(header) }
}

/// Where a process goes that cannot stay here: home if allowed, else the allowed core with the shortest
/// queue.
fn place_from_outside(header: &Header) -> &'static Core {
    let allowed = allowed(header);
    let fits = |core: &&'static Core| allowed & core.id().mask() != 0;
    if let Some(home) = cores::get(header.home().index()).filter(fits) {
        return home;
    }
    let shortest = cores::all().filter(fits).min_by_key(|core| core.queue.stealable());
    match shortest.or_else(|| cores::get(CoreId::BOOT.index())) {
        Some(core) => core,
        None => {
            panic!("a process was made runnable before the scheduler was started: call sched::start first")
        }
    }
}
