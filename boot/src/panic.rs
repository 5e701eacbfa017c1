//! Panics and faults: the process that runs ends alone if it can; otherwise all cores stop, and the image ends with failure.

use core::fmt;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use magpie::crash::CrashKind;
use magpie::internals::arch::handlers::{Fault, FaultReason, Verdict};
use magpie::internals::arch::{irq, percpu, switch::Frame};
use magpie::internals::console;
use magpie::internals::crash::Message;
use magpie::internals::mem::heap::HEAP;
use magpie::internals::mem::limit;
use magpie::internals::sched;
use magpie::log::text;

use crate::exhaustion::{self, Exhaustion};
use crate::exit::{self, ExitCode};
use crate::pl011::CONSOLE;

/// The address of the device tree that is being read, or zero.
pub(crate) static LOOKING_AT: AtomicUsize = AtomicUsize::new(0);

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if sched::can_end_current() {
        // SAFETY: the panicking code does not go on.
        unsafe {
            sched::end_panicked(kind(info), ptr::from_ref(info).addr(), |message| say_crash(info, message))
        }
    }
    // SAFETY: nothing goes on: the image ends.
    unsafe { irq::disable() };
    console::enter_panic();
    let message = info.message();
    let say = || {
        say_unsaid();
        say(info, &message, None);
        // Relaxed: written by this core, the only one so far.
        let tree = LOOKING_AT.load(Ordering::Relaxed);
        if tree != 0 {
            text!(
                "that was about the device tree at {tree:#x}: the address that the loader handed over in x0"
            );
        }
    };
    // SAFETY: this is the panic handler, with interrupts masked, and nothing goes on.
    unsafe { sched::stop_the_system(ptr::from_ref(info).addr(), &message, say) };
    console::notice(format_args!("@panic {}", info.message()));
    CONSOLE.drain();
    if sched::watchdog::restarts() {
        exit::start_again();
    }
    exit::with(ExitCode::Failure)
}

static EXHAUSTION: Exhaustion = Exhaustion::new();

/// What an application learns of the panic.
fn kind(info: &PanicInfo<'_>) -> CrashKind {
    if exhaustion::is_at(info.location()) { CrashKind::OutOfMemory } else { CrashKind::Panic }
}

/// Only what runs here ends because of it. Takes the message on the way; whether it was said.
fn say_crash(info: &PanicInfo<'_>, taken: &mut Message) -> bool {
    let name = sched::name_here();
    let message = info.message();
    let message = taken.take(&message);
    if !exhaustion::is_at(info.location()) {
        say(info, &message, name);
        return true;
    }
    let Some(number) = EXHAUSTION.note() else {
        message.take_unsaid();
        return false;
    };
    say(info, &message, name);
    if let Some((used, limit)) = limit::limit_here() {
        text!("{number} ended for want of memory; its limit is {limit} bytes, of which {used} are in use");
        return true;
    }
    let (used, free) = HEAP.usage();
    text!(
        "{number} ended for want of memory; the heap has {} KiB in use, {} free, {} in caches",
        used / 1024,
        free / 1024,
        HEAP.kept() / 1024
    );
    true
}

/// Reports how many have ended because memory ran out, if not each of them was reported.
pub(crate) fn say_unsaid() {
    if let Some(number) = EXHAUSTION.unsaid() {
        text!("in all {number} ended for want of memory");
    }
}

/// `name`: what ends because of it, if that is not the image.
fn say(info: &PanicInfo<'_>, message: &dyn fmt::Display, name: Option<&str>) {
    let core = percpu::core_number();
    let (before, name) = if let Some(name) = name { (", in ", name) } else { ("", "") };
    match info.location() {
        Some(at) => {
            text!("panic on core {core}{before}{name} at {}:{}: {}", at.file(), at.line(), message);
        }
        None => text!("panic on core {core}{before}{name}: {message}"),
    }
}

/// A synchronous fault. Returns when the code may go on for now, or when the whole system has to stop for it; the machine
/// then panics with the registers.
///
/// # Safety
/// Called by the machine with the frame of the code that faulted.
pub(crate) unsafe fn on_fault(fault: &Fault, frame: *mut Frame) -> Verdict {
    exit::end_if_nobody_listens();
    if !sched::can_end_faulted(fault) {
        if sched::lend_reserve(fault) {
            return Verdict::Retry;
        }
        console::enter_panic();
        sched::note_fault(frame);
        return Verdict::Stop;
    }
    // SAFETY: the machine promised the frame of the code that faulted.
    let frame = unsafe { &*frame };
    // SAFETY: the code that faulted does not go on.
    unsafe { sched::end_faulted(fault, frame, say_fault) }
}

/// Only what `name` says ends because of it.
fn say_fault(fault: &Fault, frame: &Frame, name: &str) {
    text!(
        "{} on core {}, in {name}: address {:#018x}, syndrome {:#010x}\n{frame}",
        fault.reason.words(),
        percpu::core_number(),
        fault.address,
        fault.syndrome
    );
    if fault.reason == FaultReason::StackOverflow {
        sched::say_stack();
    }
}
