//! Preemption: stacks are lent.
//!
//! A turn runs directly on its core's stack, and pays nothing for being preemptible. The timer interrupt
//! counts slice ends; a turn that has seen two has had at least one whole slice. Then, if something else
//! waits, or the balancer could fetch something, the core leaves its stack to the process. Of a resident's turn, which consists of many
//! pieces, it is the piece that must have seen two; see `run/slice.rs`.
//!
//! 1. the interrupt has saved all registers in that stack's block;
//! 2. a fresh stack is taken from the pool or, when that is empty, the core's reserve;
//! 3. the core starts a new loop on the fresh stack, which unmasks interrupts, because the rest may take long;
//! 4. a resident is asked to detach the piece of work that was interrupted; an ordinary process stands for itself. Where there is
//!    nothing to detach the turn goes on;
//! 5. what is suspended comes into a queue: any earlier, and another core could resume it while this one still uses its stack. What makes way for something
//!    urgent may come there behind that one's turn (`run/beneath.rs`).
//!
//! On its reserve a core resumes what is suspended, which needs no stack, and gives turns to what is urgent and to what has
//! ended turns by itself before; what is new waits until a stack is free (`run/reserve.rs`). So however many new
//! processes go on for ever, the core remains available to the others. If one of those also goes on for ever while no
//! stack is free, it runs on, and a counter says so.
//!
//! Whoever takes the process from a queue leaves its own stack behind (it goes back to the pool once it is
//! left) and returns from that interrupt.
//!
//! A section that disables preemption is never interrupted this way: the request is remembered in the
//! stack's preemption word, and the end of the section enters here by a trap.
//!
//! A loop is not preempted either. What an interrupt finds urgent there may come too late for the loop's choice; then the chosen turn
//! is preempted before its first instruction.
//!
//! What is urgent (`place/urgent.rs`) does not wait for slices: the first interrupt, or the first end of a section, that finds it
//! waiting lends the stack of a turn that is less urgent, or due later.
//!
//! A resident's turn that is to end, and runs nothing long, is not suspended: it is told, here because no section may be in the
//! middle of what is changed for that, and ends by itself between two pieces of work.
//!
//! The bound: a process that never yields holds its core for at most two slices while others wait, plus
//! the longest section with preemption disabled; while something more urgent waits, for that section alone.

use core::ptr::{self, NonNull};

use crate::arch::switch::Frame;
use crate::arch::{append, clock};
use crate::mem::stack::StackBlock;
use crate::sched::cores::calls;
use crate::sched::cores::handover::{Handover, Interrupted, Reason};
use crate::sched::cores::in_turn::Turn;
use crate::sched::cores::preemption::{self, Found};
use crate::sched::cores::roll_call;
use crate::sched::cores::{Core, ThisCore};
use crate::sched::place::{enqueue, global, urgent};
use crate::sched::process::{EndOfPiece, Header, PieceNow, Priority, Runnable};
use crate::sched::run::fresh::FreshStack;
#[cfg(target_os = "none")]
use crate::sched::run::halt;
use crate::sched::run::{
    aside, balance, beneath, crash, due, ending, kill, remains, resume, slice, steal, stop,
};
use crate::sched::spawn::{detached, residents};
use crate::time::{self, comparator};
use crate::trace::Kind;

/// Slice ends a turn may see before it is preempted: the first may come right after its start.
const SLICE_ENDS: u32 = 2;

/// After so long a turn is tried again that could not be suspended for something urgent, or not be told to end.
const TRY_AGAIN_MICROSECONDS: u64 = 2;

/// The end of an interrupt, or of a section that postponed a preemption.
///
/// # Safety
/// Interrupts are masked; `frame` is the complete state of the code that was interrupted on this stack.
pub(crate) unsafe fn consider(frame: *mut Frame) {
    let block = StackBlock::current();
    // SAFETY: preemption cannot happen here, with interrupts masked, and the scheduler runs.
    let core = unsafe { Core::this() };
    let has_judged = core.has_judged.replace(false);
    let masked_at = core.take_masked();
    if block.is_in_reserve() {
        if crash::can_end_overflowed(block) {
            core.begin_masked(masked_at);
            // SAFETY: the section that ran out of stack has ended, and its process must not go on.
            unsafe { crash::end_overflowed(&*frame) };
        }
        // It goes on, shielded, for nobody knows how long: what was chosen before the section ran out of stack does not wait for it, nor what lies beneath.
        if block.preempt().is_enabled() {
            // SAFETY: by contract.
            unsafe {
                take_back_choice(block);
                beneath::put_into_queue_masked(core, block);
            }
        }
        return;
    }
    let process = NonNull::new(block.process().cast::<Header>());
    if let Some(process) = process
        && core.chosen.is_some()
    {
        if !block.preempt().is_enabled() {
            // SAFETY: by contract.
            return unsafe { postpone(core, block, frame) };
        }
        // SAFETY: by contract.
        if unsafe { makes_way(core, block, process, frame, masked_at) } {
            return;
        }
    }
    #[cfg(target_os = "none")]
    if calls::all() & calls::HALT != 0 {
        if !block.process().is_null() && !block.preempt().is_enabled() {
            // SAFETY: by contract.
            return unsafe { postpone(core, block, frame) };
        }
        core.begin_masked(masked_at);
        // SAFETY: by contract. A loop of the core's own stands still if it came for that.
        unsafe { halt::stand_still(core, block, frame) };
    }
    if has_judged {
        return;
    }
    if process.is_some() && beneath::is_overdue(core) {
        // SAFETY: by contract.
        unsafe { end_lying(core, block, frame) };
    }
    // SAFETY: the process runs, so it is alive.
    let mut reason = process.map_or(Reason::NONE, |process| reason(core, block, unsafe { process.as_ref() }));
    let is_wanted = reason != Reason::NONE || (process.is_none() && is_urgent(core));
    let leaves = preemption::decide(block.preempt(), Found { is_turn: process.is_some(), is_wanted });
    if let (true, Some(process)) = (leaves, process) {
        if reason.has(Reason::ASKS) {
            reason = reason.without(Reason::ASKS);
            // SAFETY: by contract; preemption was enabled, so the turn holds no lock, and its process is alive.
            if unsafe { is_to_end(core, block, process) } {
                reason = reason.and(Reason::KILLS);
            }
            if reason == Reason::NONE {
                return;
            }
        }
        if reason.has(Reason::KILLS) {
            core.begin_masked(masked_at);
            // SAFETY: by contract; preemption was enabled, so the turn holds no lock, and its code will not go on.
            unsafe { crash::end_killed(&*frame) };
        }
        if reason.has(Reason::ENDS) {
            // SAFETY: by contract; preemption was enabled, so the turn holds no lock, and its process is alive.
            unsafe { end_turn(core, block, process, frame) };
            if !reason.looks() {
                return block.preempt().clear_request();
            }
        }
        core.begin_masked(if masked_at == 0 { clock::now() } else { masked_at });
        // SAFETY: by contract; preemption was enabled, so the turn holds no lock.
        unsafe { lend_stack(core, block, process, frame, reason) };
    } else if process.is_some() && is_wanted {
        // SAFETY: by contract.
        core.note_postponed(block, unsafe { &*frame });
    }
}

/// The end of a section that postponed a preemption, by a trap.
///
/// # Safety
/// As [`consider`].
pub(crate) unsafe fn end_section(frame: *mut Frame) {
    let block = StackBlock::current();
    if block.preempt().has_noted()
        && let Some(process) = NonNull::new(block.process().cast::<Header>())
    {
        // SAFETY: as in `consider`; the process runs, so it is alive.
        unsafe { Core::this().note_postponement(process.as_ref()) };
    }
    // SAFETY: by contract.
    unsafe { consider(frame) }
}

/// The turn is in a section, whose end comes here again.
///
/// # Safety
/// As [`consider`].
unsafe fn postpone(core: &Core, block: &StackBlock, frame: *mut Frame) {
    block.preempt().request();
    // SAFETY: by contract.
    core.note_postponed(block, unsafe { &*frame });
}

/// What lies beneath the turn comes into its queue, at the end of the section if the turn is in one.
///
/// # Safety
/// As [`consider`].
#[cold]
#[inline(never)]
unsafe fn end_lying(core: &Core, block: &StackBlock, frame: *mut Frame) {
    // SAFETY: by contract.
    unsafe {
        if block.preempt().is_enabled() {
            beneath::put_into_queue_masked(core, block);
        } else {
            postpone(core, block, frame);
        }
    }
}

/// The turn is left for what the handler of an interrupt has chosen, in it or in the section that ends now, unless it is to end besides, or the core is
/// called: then that goes into its queue. Whether it was dealt with.
///
/// # Safety
/// As [`consider`], and the turn of `process` runs on the stack of `block` with preemption enabled.
// By itself, or whatever an interrupt decides would save registers for this.
#[inline(never)]
unsafe fn makes_way(
    core: &'static Core,
    block: &'static StackBlock,
    process: NonNull<Header>,
    frame: *mut Frame,
    masked_at: u64,
) -> bool {
    // SAFETY: its turn was interrupted, so it is alive.
    if calls::all() != 0 || !is_left_alone(unsafe { process.as_ref() }) {
        // SAFETY: by contract.
        unsafe { take_back_choice(block) };
        return false;
    }
    // At a section's end nobody has noted it.
    core.begin_masked(if masked_at == 0 { clock::now() } else { masked_at });
    let reason = if core.in_turn.turn().looks() { Reason::URGENT.and(Reason::LOOKS) } else { Reason::URGENT };
    // SAFETY: by contract; preemption is enabled, so the turn holds no lock.
    unsafe { lend_stack(core, block, process, frame, reason) };
    true
}

/// What was chosen for the next turn goes into its queue, because the turn that was interrupted may go on.
///
/// # Safety
/// As [`consider`], and a turn runs on the stack of `block` with preemption enabled.
#[cold]
#[inline(never)]
unsafe fn take_back_choice(block: &StackBlock) {
    // What it changes it guards, and the end of that must not come here again. What it requests is considered by the caller.
    block.preempt().reset(1);
    // SAFETY: by contract nobody else is in the middle of the core's queues, and preemption is disabled as long as this lives.
    enqueue::queue_chosen(&unsafe { ThisCore::of_loop() });
    block.preempt().reset(0);
}

/// Why the turn of a process on this core is to be left, or something is to become of it.
#[inline(always)]
fn reason(core: &Core, block: &StackBlock, process: &Header) -> Reason {
    if process.run_state().is_killed() && !block.is_shielded() && process.vtable().is_to_end.is_none() {
        // Here, whatever else is to be.
        return Reason::KILLS;
    }
    let turn = core.in_turn.turn();
    // Once, because interrupts are masked, and mostly none is.
    let is_timer_due = is_timer_due(core);
    let may_wake_urgent =
        |core: &Core| (is_timer_due && is_urgent_timer_due(core)) || core.raised.has_urgent();
    let priority = process.priority();
    let is_urgent = ((urgent::preempts(Priority::High, priority) && may_wake_urgent(core))
        || core.queue.has_more_urgent(priority)
        || urgent::may_go_before(core, process, may_wake_urgent))
        && !ending::is_granted(core, process);
    let is_resident = is_resident(process);
    let is_over = || {
        if is_resident {
            turn.is_long()
        } else {
            (turn.slices() >= SLICE_ENDS && (is_timer_due || others_wait_now(core)))
                || aside::is_spent(core, process)
        }
    };
    let mut reason = if is_urgent {
        Reason::URGENT
    } else if is_over() {
        Reason::SUSPENDS
    } else if turn.is_to_end() {
        Reason::ENDS
    } else {
        Reason::NONE
    };
    if turn.looks() {
        reason = reason.and(Reason::LOOKS);
    }
    if is_left_alone(process) { reason } else { reason.and(of_kills(block, process, turn)) }
}

/// Whether nobody is to end in the turn of a process.
#[inline(always)]
fn is_left_alone(process: &Header) -> bool {
    !process.run_state().is_killed_or_ending() && !kill::is_any_pending()
}

/// The rest of [`reason`], where something was killed.
#[cold]
#[inline(never)]
fn of_kills(block: &StackBlock, process: &Header, turn: Turn) -> Reason {
    let state = process.run_state();
    if block.is_shielded() {
        return Reason::NONE;
    }
    // A turn in which what was killed drops what it owns is granted a slice.
    let kills = state.is_killed() || (state.is_ending() && turn.slices() >= SLICE_ENDS);
    if process.vtable().is_to_end.is_none() {
        if kills { Reason::KILLS } else { Reason::NONE }
    } else if kills || kill::is_any_pending() {
        Reason::ASKS
    } else {
        Reason::NONE
    }
}

/// Whether the piece of an executor's work that runs was killed, and can end where it is.
///
/// # Safety
/// As [`consider`], and the turn of `process` runs on the stack of `block` with preemption enabled.
#[cold]
#[inline(never)]
unsafe fn is_to_end(core: &Core, block: &StackBlock, process: NonNull<Header>) -> bool {
    // SAFETY: its turn was interrupted, so it is alive.
    let header = unsafe { process.as_ref() };
    let turn = core.in_turn.turn();
    let is_long = if is_resident(header) { turn.is_long() } else { turn.slices() >= SLICE_ENDS };
    let asked = EndOfPiece { is_killed: header.run_state().is_killed(), is_long };
    // It may take a lock, whose end must not come here again. A request is answered by this.
    block.preempt().reset(1);
    // SAFETY: the process is alive; its turn holds no lock, by contract.
    let is_to_end = header.vtable().is_to_end.is_some_and(|is_to_end| unsafe { is_to_end(process, asked) });
    block.preempt().reset(0);
    is_to_end
}

fn is_resident(process: &Header) -> bool {
    process.vtable().detach.is_some()
}

/// Whether something urgent waits on this core, which preempts any turn that is not: a process, or what a timer that is due wakes, or
/// what an interrupt has raised.
#[inline(always)]
fn is_urgent(core: &Core) -> bool {
    core.queue.has_urgent_waiting() || is_urgent_timer_due(core) || core.raised.has_urgent()
}

/// Whether a timer is due that wakes something urgent.
#[inline(always)]
fn is_urgent_timer_due(core: &Core) -> bool {
    time::next_urgent_deadline(core.id()).is_some_and(|deadline| deadline <= clock::now())
}

/// Whether any timer is due.
#[inline(always)]
fn is_timer_due(core: &Core) -> bool {
    time::next_deadline(core.id()).is_some_and(|deadline| deadline <= clock::now())
}

/// Whether anything would run in the process's place.
#[inline(always)]
pub(crate) fn others_wait(core: &Core) -> bool {
    others_wait_now(core) || is_timer_due(core)
}

/// The same but for timers that are due.
#[inline(always)]
fn others_wait_now(core: &Core) -> bool {
    core.queue.has_any()
        || core.raised.has_any()
        || global::has_work_for(core)
        || balance::is_called_for(core)
        || stop::is_requested()
        || remains::is_wanted(core)
}

/// Has a resident's turn end between two pieces of work. Where it is between two just now it may begin another, and is told again.
///
/// # Safety
/// As [`consider`], and the turn of `process`, a resident, runs on the stack of `block` with preemption enabled.
unsafe fn end_turn(core: &Core, block: &StackBlock, process: NonNull<Header>, frame: *mut Frame) {
    // What it changes it guards, and the end of that must not come here again. A request is answered by this.
    block.preempt().reset(1);
    // SAFETY: by contract.
    let knows = unsafe {
        // What the resident changes, code that was interrupted in a sequence has looked at.
        append::restart(&mut *frame);
        ask_to_end(block, process)
    };
    block.preempt().reset(0);
    if knows {
        core.in_turn.note_told();
    } else {
        try_again_soon();
    }
}

/// Something urgent waits for a turn that cannot be suspended: it is to end by itself as soon as it looks, or between two pieces of work, and is tried
/// again.
///
/// # Safety
/// As [`end_turn`], of any process.
#[cold]
#[inline(never)]
unsafe fn end_soon(block: &StackBlock, process: NonNull<Header>, frame: *mut Frame) {
    // As there.
    block.preempt().reset(1);
    // SAFETY: by contract.
    unsafe {
        append::restart(&mut *frame);
        ask_to_end(block, process);
    }
    block.preempt().reset(0);
    try_again_soon();
}

/// Tells a turn that it is to end. Whether it is a resident's that will, behind the piece of work that runs.
///
/// # Safety
/// The turn of `process` runs on the stack of `block`, and holds no lock; preemption is disabled, and a sequence of instructions that may have been
/// interrupted begins anew.
unsafe fn ask_to_end(block: &StackBlock, process: NonNull<Header>) -> bool {
    block.exhaust();
    // SAFETY: by contract, and alive because its turn runs.
    unsafe { is_resident(process.as_ref()) && residents::end_turn(process) }
}

/// Has the timer interrupt soon.
fn try_again_soon() {
    let soon = TRY_AGAIN_MICROSECONDS * clock::frequency() / 1_000_000;
    comparator::arm_if_earlier(clock::now() + soon);
}

/// # Safety
/// As [`consider`], and the turn of `process` runs on the stack of `block` with preemption enabled.
// By itself, or whatever an interrupt decides would save registers for this.
#[inline(never)]
unsafe fn lend_stack(
    core: &'static Core,
    block: &'static StackBlock,
    process: NonNull<Header>,
    frame: *mut Frame,
    reason: Reason,
) {
    // From here on this is ordinary kernel code that happens to have interrupts masked.
    block.preempt().reset(1);
    let Some(stack) = FreshStack::take(core) else {
        core.statistics.preemptions_without_stack.bump();
        // The next attempt is two slices away, or with the next interrupt.
        core.in_turn.begin_again();
        block.preempt().reset(0);
        // SAFETY: by contract; interrupts are masked.
        unsafe { beneath::put_into_queue_masked(core, block) };
        if reason.is_urgent() {
            // SAFETY: by contract; interrupts are masked.
            unsafe {
                take_back_choice(block);
                end_soon(block, process, frame);
            }
        }
        return;
    };
    debug_assert!(frame == block.saved(), "registers are saved in the block of the stack that is left");
    let turn = core.in_turn.interrupt();
    core.handover.set(Handover::Turn(Interrupted { process, block, reason, turn }));
    // SAFETY: interrupts are masked. The code suspended here holds no lock and nothing of the core's.
    unsafe { stack.begin(core) }
}

/// The rest of a preemption, on the fresh stack and with interrupts unmasked: puts what was interrupted into a queue, or goes on
/// with it if there is nothing to suspend.
///
/// # Safety
/// The caller is the core's loop, keeps nothing that needs dropping, and was just started to go on in the place of that turn.
pub(crate) unsafe fn finish(core: &ThisCore<'_>, interrupted: &Interrupted) {
    let &Interrupted { process, block, reason, mut turn } = interrupted;
    // What is urgent does not wait for the look, unless the turn goes on.
    let looks = reason.looks() && !reason.is_urgent();
    // SAFETY: by contract; the turn holds no lock, because preemption was enabled, and its process is alive.
    let ends =
        looks && unsafe { slice::look_behind(core, process, turn.looks_again()) } && !reason.suspends();
    if ends {
        turn = turn.asked_to_end();
    }
    // SAFETY: as above.
    let handed_over = if reason.suspends() { unsafe { hand_over(core, process) } } else { None };
    let Some((suspended, resident)) = handed_over else {
        if reason.looks() && !looks {
            // SAFETY: as above. The turn is to end anyway.
            unsafe { slice::look_behind(core, process, turn.looks_again()) };
        }
        core.statistics.detachments_refused.add(reason.suspends().into());
        if reason.is_urgent() {
            // SAFETY: as above. What was suspended in a sequence of instructions begins it anew when it goes on.
            unsafe { ask_to_end(block, process) };
        }
        core.in_turn.go_on(turn);
        if reason.suspends() {
            // The next attempt is two slices away.
            core.in_turn.begin_again();
        }
        // The turn goes on, and what was woken for what it let go has to be seen meanwhile.
        enqueue::queue_chosen(core);
        if reason.is_urgent() || ends {
            // By an interrupt it is told that it is to end, and what is urgent is tried again. Last, because the turn must come on until then.
            try_again_soon();
        }
        // SAFETY: by contract; the turn was interrupted on that stack, and is in no queue.
        unsafe { resume::resume(core.core(), NonNull::from(block)) }
    };
    block.set_process(ptr::from_ref::<Header>(&suspended).cast_mut().cast());
    let now = clock::now();
    write_down(core, &suspended, block, now);
    core.statistics.preemptions.bump();
    if suspended.run_state().is_ending() {
        ending::note();
    }
    if reason.is_urgent() {
        core.statistics.urgent_preemptions.bump();
    }
    if let Some(resident) = resident {
        // One whose piece was detached takes its next turn from the queue like everyone.
        core.prefer_bound();
        enqueue::requeue_at(core, resident, now);
        enqueue::requeue_at(core, suspended, now);
    } else if reason.is_urgent() && turn.slices() == 0 {
        // Its time was not over.
        enqueue::requeue_as_next(core, suspended, now);
    } else {
        enqueue::requeue_at(core, suspended, now);
    }
}

/// Writes down that the turn of a process was suspended at `now`, in clock ticks, on the stack of `block`, by which it goes on from then on. The process is in
/// nobody else's hand, and preemption is disabled.
#[inline(always)]
pub(super) fn write_down(core: &Core, process: &Header, block: &StackBlock, now: u64) {
    core.note_broken_turn(process, now, Kind::Suspended, || {
        let (table, process) = (process.vtable(), NonNull::from(process));
        // SAFETY: preemption is disabled, and what is suspended is nobody else's yet.
        let at_work = table.at_work.and_then(|at_work| unsafe { at_work(process) });
        at_work.map_or(table.name, |at_work| at_work.name)
    });
    aside::charge(core, process, now);
    process.suspend_on(ptr::from_ref(block).cast_mut());
    if core.taken_from.get().is_some() {
        steal::judge_theft(core);
    }
}

/// What the fresh loop has to enqueue: the process to suspend and, if that is a detached piece, the
/// resident it came from. `None` if the resident refuses or memory is short.
///
/// # Safety
/// The turn of `process` was interrupted on this core and holds no lock; the caller suspends it.
unsafe fn hand_over(core: &ThisCore<'_>, process: NonNull<Header>) -> Option<(Runnable, Option<Runnable>)> {
    // SAFETY: its turn was interrupted, so it is alive.
    let header = unsafe { process.as_ref() };
    due::note_more_to_do(core, header, clock::now);
    // SAFETY: its turn ends here, so it is nobody's but the caller's.
    let own = || unsafe {
        roll_call::enter(core.core(), process, true);
        Runnable::new(process)
    };
    let Some(detach) = header.vtable().detach else {
        if let Some(piece) = header.vtable().piece {
            // SAFETY: as above.
            unsafe { piece(process, PieceNow::Stops) };
        }
        return Some((own(), None));
    };
    let reservation = detached::Reservation::new(header, core.id())?;
    // SAFETY: its turn was interrupted and holds no lock, as the caller promised.
    let token = unsafe { detach(process) }?;
    let piece = reservation.fill(token, core).into_pointer();
    // SAFETY: just made, and nobody else's.
    let piece = unsafe {
        roll_call::enter(core.core(), piece, true);
        Runnable::new(piece)
    };
    Some((piece, Some(own())))
}
