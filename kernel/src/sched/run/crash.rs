//! The one path of a crash: the end of a process that panicked or faulted. It alone ends, on the path of a preemption.
//!
//! Its stack is abandoned, whatever is on it: destructors do not run, because the code stopped at an unknown point. The crash is
//! written down (`crash/`). The core goes on with a fresh loop on the same stack, and that ends the process: its mailboxes are closed, who watches
//! it is told, and its handle reports the crash.
//!
//! What must hold, and is asked first:
//! - the code that failed runs on the stack of a process, and is no handler of an interrupt or fault;
//! - preemption is enabled there. With preemption disabled the code holds a lock or a half-changed queue of the kernel's
//!   own, and going on would spread the damage. A critical section of the application's disables it, too: that ends with the process.
//!
//! One such section may end all the same: one that has run out of stack goes on in the stack's reserve, and its process ends
//! after it.
//!
//! A panic's message may come from the application's own `Display`: that still runs as the process did. A failure
//! during the report takes this path too, and is not reported again: what is written down is the first. From then on preemption is disabled once, whatever
//! was requested before.

use core::ops::Range;
use core::ptr::NonNull;

use crate::arch::backtrace::Place;
use crate::arch::handlers::Fault;
use crate::arch::switch::{Frame, KeptRegisters};
use crate::arch::{clock, irq, stack_layout, switch};
use crate::crash::{self, Called, CrashKind, Message, Remembered, Scene, Trace, stack_at};
use crate::mem::orphans;
use crate::mem::stack::StackBlock;
use crate::sched::cores::handover::Handover;
use crate::sched::cores::{Core, ThisCore, here, population};
use crate::sched::place::enqueue;
use crate::sched::process::{Header, ProcessRef, Runnable};
use crate::sched::run::{aside, ending, fresh};
use crate::sched::spawn::telling;
#[cfg(not(shuttle))]
use crate::sync::critical_section;
use crate::sync::{Identity, PreemptGuard, tell_of_crash};
use crate::time;
use crate::trace::Kind;
use crate::watch::Exit;

/// Whether the caller, which panicked, is a process that can be ended alone.
pub fn can_end_current() -> bool {
    switch::is_on_own_stack() && can_end(StackBlock::current())
}

/// Whether the code that faulted is a process that can be ended alone.
pub fn can_end_faulted(fault: &Fault) -> bool {
    let block = StackBlock::current();
    // One whose stack ran out behind a shield ends when that does, as at the end of a section.
    let goes_on = fault.in_reserve && block.is_shielded() && !block.is_in_reserve();
    fault.on_own_stack && !goes_on && can_end(block)
}

/// The code that faulted ran out of stack with preemption disabled, or behind a shield: lets it go on to the end of that section. Returns
/// whether it may. For the fault handler.
pub fn lend_reserve(fault: &Fault) -> bool {
    let block = StackBlock::current();
    if !fault.in_reserve || !fault.on_own_stack || block.process().is_null() || block.is_in_reserve() {
        return false;
    }
    // SAFETY: the stack runs here, and nothing is in its reserve yet.
    unsafe { block.map_reserve(true) };
    // The end of the section comes to `preempt::consider`. So does that of the kernel's section in one of the application's, which may go on
    // calling until the reserve is used up.
    block.preempt().request_early();
    true
}

/// Ends the process that was lent its stack's reserve, whose code was interrupted or trapped in `frame`.
///
/// # Safety
/// As [`end_faulted`], in the handler of an interrupt or of the trap at the section's end.
// For the size of the unwind tables: it has one caller.
#[inline(always)]
pub(crate) unsafe fn end_overflowed(frame: &Frame) -> ! {
    // SAFETY: by contract. Where it ran out of stack is not known any more.
    unsafe {
        end_stopped(CrashKind::StackOverflow, None, frame, &|| {
            let name = here::name_here().unwrap_or("the kernel");
            crate::text!("stack overflow on core {}, in {name}", crate::arch::percpu::core_number());
            say_stack();
        })
    }
}

/// Ends the process that was killed, whose code was interrupted or trapped in `frame`.
///
/// # Safety
/// As [`end_overflowed`], with preemption enabled in that code.
pub(crate) unsafe fn end_killed(frame: &Frame) -> ! {
    // SAFETY: by contract.
    unsafe {
        end_stopped(CrashKind::Killed, None, frame, &|| {
            let name = here::name_here().unwrap_or("the kernel");
            crate::text!("killed on core {}: {name}", crate::arch::percpu::core_number());
        })
    }
}

/// After an overflow, reports how large the stacks are and where that is set.
pub fn say_stack() {
    let slot = stack_layout::slot_bytes();
    crate::text!(
        "its stack has {} KiB, of {}; the boot argument stack_kib=N makes it larger",
        stack_layout::usable_bytes(slot) / 1024,
        slot / 1024
    );
}

/// Whether a process whose stack ran out in a section, which is over, can be ended there: the interrupt or trap came with no other section of
/// the kernel's.
pub(crate) fn can_end_overflowed(block: &StackBlock) -> bool {
    !block.is_shielded() && can_end(block)
}

/// Once for panics and faults.
#[inline(never)]
fn can_end(block: &StackBlock) -> bool {
    !block.process().is_null() && (block.preempt().is_enabled() || is_in_own_section(block))
}

/// Whether a critical section of the application's is all that disables preemption.
fn is_in_own_section(block: &StackBlock) -> bool {
    #[cfg(shuttle)]
    let is_inside = false;
    #[cfg(not(shuttle))]
    let is_inside = critical_section::is_inside();
    block.preempt().is_held_once() && is_inside
}

/// Ends the process that runs here, which has panicked, after `report` has said why, unless a report was in progress
/// already. What is said may come from the application, for example the `Display` of what it panicked with. That runs
/// in the process like what it did before: it may take long and may be preempted. `report` takes the message on the way, and returns
/// whether it has said anything. `above`: an address in the stack frame of whoever raised the panic, which is no part of the backtrace.
///
/// # Safety
/// The code of the running process will not go on: the caller is the panic handler, and [`can_end_current`].
pub unsafe fn end_panicked(kind: CrashKind, above: usize, report: impl FnOnce(&mut Message) -> bool) -> ! {
    let block = StackBlock::current();
    let scene = Scene { kind, pc: 0, address: None, trace: Trace::EMPTY };
    let mut crash = Remembered { scene, message: Message::new() };
    if block.crashes() == 0 {
        block.set_crashes(1);
        // What follows may run out of stack, too, or fail otherwise. Then this is what is written down.
        let place = &raw mut crash;
        block.remember(place.cast());
        // SAFETY: it stays there; whoever else uses it does so when this has come to its end.
        let crash = unsafe { &mut *place };
        if !block.preempt().is_enabled() {
            // SAFETY: preemption is disabled, and what panicked does not go on.
            unsafe { abandon_section() };
            // What was requested meanwhile the next interrupt sees to, or the next section's end.
            block.preempt().store(0);
        }
        // SAFETY: this is no handler, and no section of the kernel's: the process panicked with preemption enabled, perhaps
        // where only interrupts were masked, which ends here; or in a critical section of its own, which has ended.
        unsafe { irq::enable() };
        // SAFETY: the code of this process runs on this stack, and does not go on.
        let place = unsafe { raised_from(Place::here(), above, &stack_at(block, Place::here().sp)) };
        // The call, as opposed to what follows it.
        crash.scene.pc = place.pc.wrapping_sub(4);
        // SAFETY: as above.
        crash.scene.trace = unsafe { Trace::from(place, &stack_at(block, place.sp)) };
        if report(&mut crash.message) {
            crate::text!("{}", Called(crash.scene.pc, &crash.scene.trace));
        }
        // The report is complete. The stack is the same, whatever core it is on by now.
        block.set_crashes(0);
        let mut kept = KeptRegisters::default();
        note_stack_in_pieces(block, switch::save_registers(&mut kept));
        #[cfg(target_os = "none")]
        // SAFETY: what runs on this stack is this function, and no other of its frames is below this one.
        unsafe {
            block.clear_below(0);
        }
        // SAFETY: the caller promised that the code of this process will not go on.
        unsafe { end_current(None, crash, &|| {}, StackIs::Noted { cleared_below: Place::here().sp }) }
    }
    // SAFETY: as above.
    unsafe { end_current(None, &crash, &|| {}, StackIs::AsItWas) }
}

/// The stack of code that ends.
#[derive(Clone, Copy)]
enum StackIs {
    /// As the code left it.
    AsItWas,
    /// Noted for the collection, and overwritten below this address. Where that is done the process can be preempted: it takes as long as the stack
    /// is large, and what the process has is a root until it has ended.
    Noted { cleared_below: usize },
}

/// [`end_current`] has written to so much of a stack at most since it was overwritten. Were it more, a collection might take what is left for pointers.
const WRITTEN_SINCE: usize = 4096;

/// The first of the callers of the code at `place` whose stack frame is beyond `above`; if there is none, that place.
///
/// # Safety
/// As [`Place::caller`].
pub(super) unsafe fn raised_from(place: Place, above: usize, stack: &Range<usize>) -> Place {
    let mut caller = place;
    while caller.sp <= above {
        // SAFETY: by contract.
        let Some(next) = (unsafe { caller.caller(stack) }) else { return place };
        caller = next;
    }
    caller
}

/// Ends the process that runs here, whose code has faulted, after `report` has said why, unless a report was in progress already.
///
/// # Safety
/// The code of the running process will not go on: the caller is the fault handler, with the frame of that code, and
/// [`can_end_faulted`]. `report` is the kernel's own, and short.
pub unsafe fn end_faulted(fault: &Fault, frame: &Frame, report: impl Fn()) -> ! {
    let kind = CrashKind::of(fault);
    // SAFETY: by contract.
    unsafe { end_stopped(kind, fault.accessed(), frame, &report) }
}

/// # Safety
/// As [`end_faulted`].
unsafe fn end_stopped(kind: CrashKind, address: Option<usize>, frame: &Frame, report: &dyn Fn()) -> ! {
    let place = Place::stopped_in(frame);
    // SAFETY: by contract; the code was stopped there, and stays.
    let trace = unsafe { Trace::from(place, &stack_at(StackBlock::current(), place.sp)) };
    let scene = Scene { kind, pc: place.pc, address, trace };
    let report = || {
        report();
        crate::text!("{}", Called(place.pc, &trace));
    };
    // SAFETY: by contract.
    unsafe {
        end_current(Some(frame), &Remembered { scene, message: Message::new() }, &report, StackIs::AsItWas)
    }
}

/// Ends the process that runs here, after `report` has said why, unless a report was in progress already: then `crash` is not
/// what it ends of, either. `frame` is where its code stopped, unless that is the caller. Interrupts are masked only for the end, unless the
/// caller is a handler.
///
/// # Safety
/// As [`end_faulted`] or [`end_panicked`].
unsafe fn end_current(frame: Option<&Frame>, crash: &Remembered, report: &dyn Fn(), stack: StackIs) -> ! {
    let mut kept = KeptRegisters::default();
    let here = switch::save_registers(&mut kept);
    let block = StackBlock::current();
    // From here on interrupts leave it alone. Forgets a request, too.
    block.preempt().reset(1);
    block.end_shields();
    // SAFETY: preemption is disabled by the line above, and what failed does not go on.
    unsafe { abandon_section() };
    // SAFETY: preemption is disabled by the line above, and a process runs, so the scheduler does.
    let core = unsafe { Core::this() };
    if frame.is_some() {
        // It is a handler of a fault or of an interrupt.
        core.begin_masked(clock::now());
    } else {
        // SAFETY: no handler, and what has masked them on this stack does not go on.
        unsafe { irq::enable() };
    }
    block.set_crashes(block.crashes() + 1);
    match block.crashes() {
        1 => report(),
        2 => crate::text!("and it failed again while that was said"),
        _ => {}
    }
    block.set_crashes(0);
    // What follows is the kernel's.
    block.account().set(0);
    let exit = write_down(core, block, crash);
    block.end_life();
    crate::log::frames::dropped_with(core::ptr::from_ref(block).cast());
    core.statistics.crashes.bump();
    let remains = match stack {
        StackIs::Noted { cleared_below } => cleared_below.saturating_sub(WRITTEN_SINCE),
        StackIs::AsItWas => {
            note_stack(block, frame, here);
            0
        }
    };
    irq::disable();
    if frame.is_none() {
        core.begin_masked(clock::now());
    }
    let has_noted = block.preempt().has_noted();
    if let Some(process) = NonNull::new(block.end_turn()[0].cast::<Header>()) {
        // SAFETY: the process ran here until now, so its reference is alive.
        unsafe {
            if has_noted {
                // An interrupt was postponed since preemption was disabled, and finds nothing left to preempt.
                core.note_postponement(process.as_ref());
            }
            let now = clock::now();
            core.note_broken_turn(process.as_ref(), now, Kind::Crashed, || process.as_ref().vtable().name);
            aside::charge(core, process.as_ref(), now);
        }
        core.handover.set(Handover::Crashed(process, exit));
    }
    // SAFETY: nothing on this stack is used again, by contract.
    unsafe { fresh::abandon_turn(remains) }
}

/// # Safety
/// As [`critical_section::abandon`].
unsafe fn abandon_section() {
    #[cfg(not(shuttle))]
    // SAFETY: by contract.
    unsafe {
        critical_section::abandon();
    }
}

/// Writes the crash down, before anybody is told: what the code on this stack was reporting, if it was, and else `crash`. How the process
/// ended.
fn write_down(core: &Core, block: &StackBlock, crash: &Remembered) -> Exit {
    let reported = block.remembered().cast::<Remembered>();
    block.remember(core::ptr::null_mut());
    // SAFETY: it lies on this stack, in the frame of `end_panicked`, which never returns. Whoever was writing to it does not
    // go on, and whatever was written of it makes sense.
    let crash = unsafe { reported.as_ref() }.unwrap_or(crash);
    let number = crash::note(core.id(), here::names_here().unwrap_or(("the kernel", None)), crash);
    if crash.scene.kind == CrashKind::Killed { Exit::Killed } else { Exit::Crashed(number) }
}

/// Notes what was in use of the stack of code that crashed, and its registers: those that it was stopped with, or those that
/// the caller has saved on this stack, above `here`.
fn note_stack(block: &StackBlock, frame: Option<&Frame>, here: usize) {
    if let Some(frame) = frame {
        // SAFETY: it is complete, and nobody writes to it.
        unsafe { orphans::note(core::ptr::from_ref(frame).cast(), size_of::<Frame>()) };
    }
    let (bytes, length) = block.in_use(frame.map_or(here, Frame::stack_pointer));
    // SAFETY: that part of the stack is mapped; what this core writes there meanwhile counts one way or the other.
    unsafe { orphans::note(bytes, length) };
}

/// So much is noted with preemption disabled: some 700 instructions.
const PIECE_BYTES: usize = 256;

/// The same while the process that runs on the stack, with its stack pointer at `here`, can still be preempted between two pieces.
fn note_stack_in_pieces(block: &StackBlock, here: usize) {
    let (bytes, length) = block.in_use(here);
    for offset in (0..length).step_by(PIECE_BYTES) {
        // A word is noted in two steps, between which no collection may come.
        let _whole = PreemptGuard::new();
        // SAFETY: as above, and within it.
        unsafe { orphans::note(bytes.wrapping_add(offset), PIECE_BYTES.min(length - offset)) };
    }
}

/// Ends a process whose turn has crashed, and tells whoever relies on it; that may be many. So it is done by the core's loop, as for one that
/// has returned: interrupts are not masked.
///
/// # Safety
/// `process` ran on `core` until the crash, and nothing of it goes on; the scheduler's reference to it is handed over.
pub(super) unsafe fn end(core: &ThisCore<'_>, process: NonNull<Header>, exit: Exit) {
    crate::mutex::tell_of_crash();
    // SAFETY: the caller handed the reference over, so the process is alive.
    let header = unsafe { process.as_ref() };
    let resident = header.vtable().detach.is_some();
    if !resident {
        // Before whoever joins it is told, because they may rely at once on this: its mailbox is closed from here on.
        if header.run_state().finish_crashed() {
            ending::note_end(header);
        }
        time::take_out_of_crashed(header.timers());
        tell_of_crash(Identity::Process(process.addr().get()));
        telling::tell_of_process(header, exit);
    }
    // SAFETY: the turn has ended, by contract.
    unsafe { (header.vtable().crash)(process, exit) };
    if resident {
        // The resident itself lives on; only the piece it was carrying out has crashed.
        core.prefer_bound();
        // SAFETY: its turn has ended, by contract.
        enqueue::requeue(core, unsafe { Runnable::new(process) });
    } else {
        population::note_end(header);
        // SAFETY: the scheduler's reference, which ends with the process.
        drop(unsafe { ProcessRef::from_counted(process) });
    }
    #[cfg(target_os = "none")]
    crate::sched::run::collect::after_crash();
}
