//! What the core's loop does after a crash: it says what has happened, writes it down, and tells whoever relies on what has crashed. How the code
//! is stopped, and what may be ended, is in `run/crash.rs`.

use core::ptr::{self, NonNull};

use crate::arch::backtrace::Place;
use crate::arch::clock;
use crate::arch::handlers::Fault;
use crate::crash::{self, Called, CrashKind, Message, Remembered, Scene, Trace, stack_at};
use crate::mem::stack::StackBlock;
use crate::sched::cores::handover::{Cause, Crashed, Report};
use crate::sched::cores::here;
use crate::sched::cores::{Core, ThisCore, population};
use crate::sched::place::enqueue;
use crate::sched::process::{Header, ProcessRef, Runnable};
use crate::sched::run::{aside, crash as ends, ending, remains};
use crate::sched::spawn::telling;
use crate::sync::{Identity, tell_of_crash};
use crate::time;
use crate::trace::Kind;
use crate::watch::Exit;

/// Ends what has crashed, and leaves its stack to be looked at.
///
/// # Safety
/// The caller is `core`'s loop, keeps nothing that needs dropping, and was just started on another stack in the place of that turn.
pub(super) unsafe fn end(core: &ThisCore<'_>, crashed: Crashed) {
    let (process, exit) = write_down(core.core(), crashed);
    // SAFETY: what ran there has crashed, and the scheduler's reference to its process is the loop's.
    unsafe { tell(core, process, exit) };
    remains::leave(core, crashed);
}

/// Ends what has crashed, where no other stack was free.
///
/// # Safety
/// As [`end`], but the caller is the first code on the same stack.
pub(super) unsafe fn end_here(core: &ThisCore<'_>, process: NonNull<Header>, exit: Exit) {
    // SAFETY: by contract.
    unsafe {
        remains::clear_here(StackBlock::current());
        tell(core, process, exit);
    }
    remains::are_gone();
}

/// Says why, unless a report was in progress already, and writes the crash down, before anybody is told. Whose turn it was, and how that ended.
/// With preemption disabled.
pub(super) fn write_down(core: &Core, crashed: Crashed) -> (NonNull<Header>, Exit) {
    let block = crashed.block;
    let Some(process) = NonNull::new(block.process().cast::<Header>()) else {
        panic!("code crashed that is no process's, on core {}: `can_end` was not asked", core.number());
    };
    // SAFETY: the process had its turn until it crashed, and is what the caller ends.
    let names = unsafe { here::names_of(process) };
    let cause = (crashed.cause, core.fault.take());
    let seen = Remembered { scene: scene(block, &cause), message: Message::new() };
    if block.crashes() != 0 {
        crate::text!("and it failed again while that was said");
    } else if crashed.cause != Cause::Panicked {
        say(core, block, &cause, names.innermost());
        crate::text!("{}", Called(seen.scene.pc, &seen.scene.trace));
    }
    block.set_crashes(0);
    let reported = block.remembered().cast::<Remembered>();
    block.remember(ptr::null_mut());
    // SAFETY: it lies on this stack, in the frame of `end_panicked`, which never returns. Whoever was writing to it does not
    // go on, and whatever was written of it makes sense.
    let crash = unsafe { reported.as_ref() }.unwrap_or(&seen);
    let number = crash::note(core.id(), (names.process, names.actor), crash);
    let exit = if crash.scene.kind == CrashKind::Killed { Exit::Killed } else { Exit::Crashed(number) };
    // What follows is the kernel's.
    block.account().set(0);
    block.end_life();
    crate::log::frames::dropped_with(ptr::from_ref(block).cast());
    core.statistics.crashes.bump();
    // SAFETY: as above.
    let header = unsafe { process.as_ref() };
    let now = clock::now();
    core.note_broken_turn(header, now, Kind::Crashed, || header.vtable().name);
    aside::charge(core, header, now);
    let _ = block.end_turn();
    block.forget_yield();
    (process, exit)
}

/// Why a turn has crashed; and if it has faulted, how, and what says so.
type Why = (Cause, Option<(Fault, Report)>);

/// What is seen of code that was stopped, with its registers in its stack's block. What has panicked has looked itself.
fn scene(block: &StackBlock, why: &Why) -> Scene {
    let (kind, address) = match *why {
        (Cause::Panicked, _) => {
            return Scene { kind: CrashKind::Panic, pc: 0, address: None, trace: Trace::EMPTY };
        }
        (Cause::Stopped(kind), _) => (kind, None),
        (Cause::Faulted, fault) => {
            fault.map_or((CrashKind::Other, None), |(fault, _)| (CrashKind::of(&fault), fault.accessed()))
        }
    };
    // SAFETY: the frame is complete, and the code whose it is does not go on.
    let place = Place::stopped_in(unsafe { &*block.saved() });
    // SAFETY: as above; the code was stopped there, and its stack is as it was.
    let trace = unsafe { Trace::from(place, &stack_at(block, place.sp)) };
    Scene { kind, pc: place.pc, address, trace }
}

/// Says why code was stopped that `name` is a part of.
fn say(core: &Core, block: &StackBlock, why: &Why, name: &str) {
    let number = core.number();
    match *why {
        (_, Some((fault, report))) => {
            // SAFETY: the frame is complete, and the code whose it is does not go on.
            report(&fault, unsafe { &*block.saved() }, name);
        }
        (Cause::Stopped(CrashKind::StackOverflow), _) => {
            crate::text!("stack overflow on core {number}, in {name}");
            ends::say_stack();
        }
        _ => crate::text!("killed on core {number}: {name}"),
    }
}

/// Ends a process whose turn has crashed, and tells whoever relies on it; that may be many. So it is done by the core's loop, as for one that
/// has returned: interrupts are not masked.
///
/// # Safety
/// `process` ran on `core` until the crash, and nothing of it goes on; the scheduler's reference to it is handed over.
unsafe fn tell(core: &ThisCore<'_>, process: NonNull<Header>, exit: Exit) {
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
}
