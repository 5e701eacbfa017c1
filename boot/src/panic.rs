//! Panics and faults: the process that runs ends alone if it can; otherwise the image stops with failure.

use core::panic::PanicInfo;

use magpie::internals::arch::handlers::{Fault, Verdict};
use magpie::internals::arch::{irq, percpu, switch::Frame};
use magpie::internals::console;
use magpie::internals::sched;
use magpie::log::text;

use crate::exit::{self, ExitCode};
use crate::pl011::CONSOLE;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if sched::can_end_current() {
        // SAFETY: the panicking code does not go on.
        unsafe { sched::end_panicked(|| say(info)) }
    }
    // SAFETY: nothing goes on: the image ends.
    unsafe { irq::disable() };
    console::enter_panic();
    say(info);
    console::notice(format_args!("@panic {}", info.message()));
    CONSOLE.drain();
    exit::with(ExitCode::Failure)
}

fn say(info: &PanicInfo<'_>) {
    let core = percpu::core_number();
    match info.location() {
        Some(at) => text!("panic on core {core} at {}:{}: {}", at.file(), at.line(), info.message()),
        None => text!("panic on core {core}: {}", info.message()),
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
        return Verdict::Stop;
    }
    // SAFETY: by contract.
    let frame = unsafe { &*frame };
    let core = percpu::core_number();
    let report = || {
        text!(
            "{:?} on core {core}: address {:#018x}, syndrome {:#010x}\n{frame}",
            fault.reason,
            fault.address,
            fault.syndrome
        );
    };
    // SAFETY: the code that faulted does not go on.
    unsafe { sched::end_current(Some(frame), report) }
}
