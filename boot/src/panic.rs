//! Panics and faults: the process that runs ends alone if it can; otherwise the image stops with failure.

use core::panic::PanicInfo;

use magpie::arch::handlers::Fault;
use magpie::arch::{irq, percpu, switch::Frame};
use magpie::log::{console, text};
use magpie::sched::{self, Cause};

use crate::exit::{self, ExitCode};
use crate::pl011::CONSOLE;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let ends_alone = sched::can_end_current();
    irq::disable();
    if !ends_alone {
        console::enter_panic();
    }
    let core = percpu::core_number();
    match info.location() {
        Some(at) => text!("panic on core {core} at {}:{}: {}", at.file(), at.line(), info.message()),
        None => text!("panic on core {core}: {}", info.message()),
    }
    if ends_alone {
        // SAFETY: the panicking code does not go on.
        unsafe { sched::end_current(Cause::Panic) };
    }
    text!("@panic {}", info.message());
    CONSOLE.drain();
    exit::with(ExitCode::Failure)
}

/// A synchronous fault. Returns when the whole system has to stop for it; the machine then panics with the
/// registers.
///
/// # Safety
/// Called by the machine with the frame of the code that faulted.
pub(crate) unsafe fn on_fault(fault: &Fault, frame: *mut Frame) {
    if !sched::can_end_current() {
        console::enter_panic();
        return;
    }
    // SAFETY: by contract.
    let frame = unsafe { &*frame };
    let core = percpu::core_number();
    text!(
        "{:?} on core {core}: address {:#018x}, syndrome {:#010x}\n{frame}",
        fault.reason,
        fault.address,
        fault.syndrome
    );
    // SAFETY: the code that faulted does not go on.
    unsafe { sched::end_current(Cause::Fault) };
}
