//! Preemption: stacks are lent.
//!
//! A turn runs directly on its core's stack, and pays nothing for being preemptible. The timer interrupt
//! counts slice ends; a turn that has seen two has had at least one whole slice. Then, if something else
//! waits, or the balancer could fetch something, the core leaves its stack to the process:
//!
//! 1. the interrupt has saved all registers in that stack's block;
//! 2. a fresh stack is taken from the pool or, when that is empty, the core's reserve;
//! 3. a resident is asked to detach the piece of work that runs; an ordinary process stands for itself;
//! 4. the core starts a new loop on the fresh stack, which *then* puts the suspended process into a queue:
//!    earlier, another core could resume it while this one still uses its stack.
//!
//! On its reserve a core resumes what is suspended, which needs no stack, and gives turns to what is urgent and to what has
//! ended turns by itself before; what is new waits until a stack is free ([`is_kept_waiting`]). So however many new
//! processes go on for ever, the core stays there for the others. Should one of those go on for ever, too, while no stack
//! is free, it runs on, and a counter says so.
//!
//! Whoever takes the process from a queue leaves its own stack behind (it goes back to the pool once it is
//! left) and returns from that interrupt.
//!
//! A section that disables preemption is never interrupted this way: the request is remembered in the
//! stack's preemption word, and the end of the section enters here by a trap.
//!
//! The bound: a process that never yields holds its core for at most two slices while others wait, plus
//! the longest section with preemption disabled.

use core::ptr::{self, NonNull};

use super::cores::Core;
use super::priority::Priority;
use super::process::Header;
use super::settings::{self, Setting};
use super::sharing;
use super::{balance, core_loop, crash, detached, enqueue, idle, residents, stop};
#[cfg(target_os = "none")]
use super::{calls, halt};
use crate::arch::atomic::{AtomicU32, Ordering};
use crate::arch::switch::{self, Frame};
use crate::arch::{clock, irq, timer};
use crate::mem::stack::{self, StackBlock, StackRef};
use crate::stats::Activity;
use crate::time;

/// Slice ends a turn may see before it is preempted: the first may come right after its start.
const SLICE_ENDS: u32 = 2;

/// Runs an interrupt's handler. A request to preempt that the interrupted code had is left to that code: the handler's
/// own sections must not end in a preemption.
pub(super) fn in_handler(handler: impl FnOnce(&'static Core)) {
    let word = StackBlock::current().preempt();
    word.hold();
    // SAFETY: interrupts are unmasked only after the core's block was set, and the word is held.
    let core = unsafe { Core::this() };
    let interrupted = core.enter(Activity::Interrupt);
    handler(core);
    core.enter(interrupted);
    word.release();
}

/// The core's timer fired.
pub(super) fn on_timer() {
    in_handler(timer_fired);
}

fn timer_fired(core: &'static Core) {
    // Relaxed throughout: this core's own loop and interrupt.
    core.timer_due.store(1, Ordering::Relaxed);
    let now = clock::now();
    let end = core.slice_end.get();
    let slice_ended = end != 0 && now >= end;
    if slice_ended {
        core.slice_end.set(0);
        if core.busy.load(Ordering::Relaxed) != 0 {
            core.slices.store(core.slices.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
            ensure_slice_timer(core);
        }
    }
    let look = core.next_look.get();
    if slice_ended || (look != 0 && now >= look) {
        look_for_waiting(core, now);
    }
    // It may have been a timer of the wheel's; the slice, or the wait for a look, goes on.
    for at in [core.slice_end.get(), core.next_look.get()].into_iter().filter(|&at| at != 0) {
        timer::arm_if_earlier(at);
    }
}

/// If something waits here while another core is idle, looks once more soon; if it then still does, an idle core comes
/// to see what may leave. In the timer's interrupt.
fn look_for_waiting(core: &Core, now: u64) {
    let was_waiting = core.next_look.replace(0) != 0;
    // Notes what it sees, so that who is called finds how long it has been so.
    sharing::may_be_robbed(core, now);
    if !idle::some_core_is_idle() || !(running_has_waiting(now) | !core.queue.is_empty()) {
        return;
    }
    if was_waiting {
        idle::wake_thief();
    } else {
        core.next_look.set(now + settings::ticks(Setting::ShareWaitMicroseconds));
    }
}

/// Whether something waits behind the resident that runs here, if one does.
fn running_has_waiting(now: u64) -> bool {
    let process = NonNull::new(StackBlock::current().process().cast::<Header>());
    // SAFETY: the process runs on this stack, so it is alive.
    process.is_some_and(|process| unsafe { residents::has_waiting(process, now) })
}

/// Counts slices from now on, unless one is being counted. The turns in between cost one look.
#[inline]
pub(super) fn ensure_slice_timer(core: &Core) {
    if core.slice_end.get() == 0 {
        let end = clock::now() + settings::ticks(Setting::SliceMicroseconds);
        core.slice_end.set(end);
        timer::arm_if_earlier(end);
    }
}

/// Arms the timer after the wheel's timers have fired: for the end of the slice, for the next look at what waits, or for
/// the next timer.
pub(super) fn arm_timer(core: &Core) {
    let own = [core.slice_end.get(), core.next_look.get()].into_iter().filter(|&at| at != 0);
    match own.chain(time::next_deadline(core.id())).min() {
        None => timer::disarm(),
        Some(at) => timer::arm(at),
    }
}

/// Another core rang. The core loop, or the turn's end, does what is needed.
pub(super) fn on_wake_up() {}

/// The end of an interrupt, or of a section that postponed a preemption.
///
/// # Safety
/// Interrupts are masked; `frame` is the complete state of the code that was interrupted on this stack.
///
/// A request that finds nothing to do any more is forgotten, because each section's end would come here for it.
pub(super) unsafe fn consider(frame: *mut Frame) {
    let block = StackBlock::current();
    if block.is_in_reserve() {
        if block.preempt().is_enabled() {
            // SAFETY: the section that ran out of stack has ended, and its process must not go on.
            unsafe { crash::end_overflowed(&*frame) };
        }
        return;
    }
    // SAFETY: preemption cannot happen here, with interrupts masked, and the scheduler runs.
    let core = unsafe { Core::this() };
    #[cfg(target_os = "none")]
    if calls::all() & calls::HALT != 0 {
        if !block.process().is_null() && !block.preempt().is_enabled() {
            block.preempt().request();
            return;
        }
        // SAFETY: by contract. A loop of the core's own stands still if it came for that.
        unsafe { halt::stand_still(core, block, frame) };
    }
    let Some(process) = NonNull::new(block.process().cast::<Header>()) else {
        block.preempt().clear_request();
        return;
    };
    // Relaxed: this core's own.
    if core.slices.load(Ordering::Relaxed) < SLICE_ENDS || !is_worth_it(core, process) {
        block.preempt().clear_request();
        return;
    }
    if !block.preempt().is_enabled() {
        block.preempt().request();
        return;
    }
    // SAFETY: by contract; preemption was enabled, so the turn holds no lock.
    unsafe { lend_stack(core, block, process, frame) };
}

/// Whether anything would run in the process's place.
fn is_worth_it(core: &Core, process: NonNull<Header>) -> bool {
    // SAFETY: the process runs, so it is alive.
    let is_resident = unsafe { process.as_ref() }.vtable().detach.is_some();
    is_resident
        || core_loop::has_work(core)
        || balance::is_called_for(core)
        || time::next_deadline(core.id()).is_some_and(|deadline| deadline <= clock::now())
        || stop::is_requested()
}

/// # Safety
/// As [`consider`], and the turn of `process` runs on the stack of `block` with preemption enabled.
unsafe fn lend_stack(
    core: &'static Core,
    block: &'static StackBlock,
    process: NonNull<Header>,
    frame: *mut Frame,
) {
    // From here on this is ordinary kernel code that happens to have interrupts masked.
    block.preempt().reset(1);
    // Relaxed: this core's own. If the attempt fails, the next is two slices away.
    core.slices.store(0, Ordering::Relaxed);
    let from_pool = stack::take();
    let is_reserve = from_pool.is_none();
    let Some(fresh) = from_pool.or_else(|| take_reserve(core)) else {
        core.statistics.preemptions_without_stack.bump();
        block.preempt().reset(0);
        return;
    };
    // SAFETY: the process runs, so it is alive.
    let Some(handover) = (unsafe { hand_over(core, process) }) else {
        keep_or_give(core, fresh);
        core.statistics.detachments_refused.bump();
        block.preempt().reset(0);
        return;
    };
    let suspended = handover[0].unwrap_or(process);
    block.set_process(suspended.as_ptr().cast());
    if frame != block.saved() {
        // It came by a trap. SAFETY: both are valid, and nobody else uses this stack's block.
        unsafe { ptr::copy_nonoverlapping(frame, block.saved(), 1) };
    }
    // SAFETY: both are alive: one runs, or was just made.
    unsafe { suspended.as_ref() }.suspend_on(core::ptr::from_ref(block).cast_mut());
    core.handover.set(handover);
    core.on_reserve.set(is_reserve);
    if core.taken_from.get().is_some() {
        core_loop::judge_theft(core);
    }
    core.busy.store(0, Ordering::Relaxed);
    core.statistics.preemptions.bump();
    fresh.block().preempt().reset(1);
    // SAFETY: the fresh stack is this core's alone, its preemption count is 1 as the loop needs it, and
    // interrupts are masked. The code suspended here holds no lock and nothing of the core's.
    unsafe {
        switch::start_on(fresh.top(), core::ptr::from_ref(fresh.block()).cast_mut().cast(), fresh_loop, 0)
    }
}

/// What the fresh loop has to enqueue: the process to suspend and, if that is a detached piece, the
/// resident it came from. `None` if the resident refuses or memory is short.
///
/// # Safety
/// The turn of `process` runs on the current stack and holds no lock.
unsafe fn hand_over(core: &Core, process: NonNull<Header>) -> Option<[Option<NonNull<Header>>; 2]> {
    // SAFETY: by contract.
    let header = unsafe { process.as_ref() };
    let Some(detach) = header.vtable().detach else { return Some([Some(process), None]) };
    let reservation = detached::Reservation::new(header.priority(), core.id())?;
    // SAFETY: by contract.
    let token = unsafe { detach(process) }?;
    Some([Some(reservation.fill(token)), Some(process)])
}

/// A core loop on a fresh stack, after a preemption.
extern "C" fn fresh_loop(_: usize) -> ! {
    // SAFETY: the stack's preemption count is 1.
    let core = unsafe { Core::this() };
    let block = StackBlock::current();
    if block.is_in_reserve() {
        // SAFETY: what ran on this stack has crashed, and its reserve is far below this.
        unsafe { block.map_reserve(false) };
    }
    #[cfg(target_os = "none")]
    if core.has_crashed.replace(false) {
        // For what is called here, which is little.
        const ROOM_BYTES: usize = 2048;
        let here = ptr::from_ref(&core).addr();
        // SAFETY: this is the first code on the stack since the crash, and what it calls has room.
        unsafe { block.clear_below(here.saturating_sub(ROOM_BYTES)) };
    }
    let [suspended, resident] = core.handover.take();
    for process in [resident, suspended].into_iter().flatten() {
        // SAFETY: the suspended process's stack has been left; this is the core's own loop. A resident
        // whose piece was detached takes its next turn from the queue like everyone.
        unsafe {
            if Some(process) == resident {
                process.as_ref().turns().requeue();
                core.queue.prefer_bound();
            }
            enqueue::requeue(core, process);
        }
    }
    // SAFETY: the loop runs with interrupts unmasked; nothing here relies on them being masked.
    unsafe { irq::enable() };
    // SAFETY: the core's block was set at its start, this stack's block by `start_on`, and the count is 1.
    unsafe { core_loop::run() };
    stop::core_stopped()
}

/// Resumes a suspended process, leaving the current stack behind.
///
/// # Safety
/// The caller is `core`'s loop, took from a queue the process that is suspended on `block`, and keeps
/// nothing that needs dropping on the current stack.
pub(super) unsafe fn resume(core: &'static Core, block: NonNull<StackBlock>) -> ! {
    irq::disable();
    core.enter(Activity::Running);
    // SAFETY: the current stack is this core loop's, which ends here; `after_resume` gives it back once
    // it has been left.
    core.left_stack.set(Some(unsafe { StackRef::current() }));
    // SAFETY: a suspended process's stack stays alive until it is resumed.
    let frame = unsafe { block.as_ref() }.saved();
    // SAFETY: the frame was saved by the interrupt that suspended the process, and nobody else resumes it,
    // for the process was in one queue only. Interrupts are masked.
    unsafe { switch::resume(frame, block.as_ptr().cast(), after_resume, 0) }
}

/// Runs in the name of the resumed stack, before its registers are restored.
extern "C" fn after_resume(_: usize) {
    // SAFETY: interrupts are masked.
    let core = unsafe { Core::this() };
    core.on_reserve.set(false);
    if let Some(left) = core.left_stack.take() {
        keep_or_give(core, left);
    }
    // The suspended code had preemption enabled, or had just enabled it.
    StackBlock::current().preempt().reset(0);
}

/// How many cores have their reserve.
static RESERVES: AtomicU32 = AtomicU32::new(0);

/// How many stacks cores have in reserve; roughly, while they suspend and resume.
pub fn reserves() -> u32 {
    RESERVES.load(Ordering::Relaxed)
}

fn take_reserve(core: &Core) -> Option<StackRef> {
    let reserve = core.reserve.take()?;
    // Relaxed: a statistic.
    RESERVES.fetch_sub(1, Ordering::Relaxed);
    Some(reserve)
}

/// A stack is not needed any more: the core's reserve comes first. With it, the core is not on its last stack.
fn keep_or_give(core: &Core, stack: StackRef) {
    match core.reserve.take() {
        None => {
            // Relaxed: as in `take_reserve`.
            RESERVES.fetch_add(1, Ordering::Relaxed);
            core.reserve.set(Some(stack));
            core.on_reserve.set(false);
        }
        Some(reserve) => {
            core.reserve.set(Some(reserve));
            stack::give(stack);
        }
    }
}

/// Gives a core the reserve that it begins with, if there is one.
pub(super) fn prepare(core: &Core) {
    if let Some(reserve) = stack::take() {
        keep_or_give(core, reserve);
    }
}

/// Whether a process that the core's loop has taken must wait, because the loop runs on the core's last stack. After as many
/// as wait in its queue the loop looks for something to steal.
pub(super) fn is_kept_waiting(core: &Core, process: &Header) -> bool {
    let may_begin = process.is_suspended() || process.has_yielded() || process.priority() <= Priority::High;
    if may_begin || !core.on_reserve.get() {
        return false;
    }
    if let Some(free) = stack::take() {
        keep_or_give(core, free);
        return false;
    }
    true
}

/// Suspends nothing, but ends what runs on this stack: a crash. Never returns; the stack is lost to the
/// crashed code and becomes this core's loop's again.
///
/// # Safety
/// The current stack block is that of a process that cannot go on. No lock is held.
pub(super) unsafe fn abandon_turn() -> ! {
    irq::disable();
    let block = StackBlock::current();
    block.preempt().reset(1);
    // SAFETY: preemption is disabled by the line above.
    let core = unsafe { Core::this() };
    core.busy.store(0, Ordering::Relaxed);
    core.has_crashed.set(true);
    let top = StackRef::top_of(block);
    // SAFETY: the code below the top of this stack has ended; nothing on it is used again.
    unsafe { switch::start_on(top, core::ptr::from_ref(block).cast_mut().cast(), fresh_loop, 0) }
}
