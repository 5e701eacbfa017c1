//! What the vectors call: interrupts, the preemption trap, and faults.

use aarch64_cpu::registers::{ESR_EL1, FAR_EL1, Readable, VBAR_EL1, Writeable};

use super::frame::Frame;
use super::{gic, timer, vectors};
use crate::arch::handlers::{self, Fault, FaultReason};

/// Bytes of a stack's slot, and of the guard page at its lower end.
pub const STACK_SLOT_BYTES: usize = 64 * 1024;
/// Bytes of the guard page.
pub const GUARD_BYTES: usize = 4 * 1024;

/// Points this core's vectors here, and gives it the stack on which it handles stack overflows.
///
/// # Safety
/// `emergency_top` is the 16-byte aligned top of a stack of this core's own, for nothing else.
pub unsafe fn install(emergency_top: *mut u8) {
    // SAFETY: only the address is taken.
    VBAR_EL1.set((&raw const vectors::magpie_vectors) as u64);
    // SAFETY: `TPIDR_EL0` is a plain register at EL1; see the head of `aarch64`.
    unsafe {
        core::arch::asm!("msr tpidr_el0, {}", "isb", in(reg) emergency_top, options(nostack, preserves_flags));
    }
}

/// # Safety
/// Called by the vectors with a complete frame.
#[unsafe(no_mangle)]
unsafe extern "C" fn magpie_interrupt(frame: *mut Frame) {
    let Some(table) = handlers::get() else {
        gic::end(gic::acknowledge());
        return;
    };
    let interrupt = gic::acknowledge();
    match interrupt.number() {
        gic::SPURIOUS.. => {}
        number => {
            match number {
                gic::WAKE_UP => (table.wake_up)(),
                _ if gic::is_timer(number) => {
                    timer::disarm();
                    (table.timer)();
                }
                number => (table.device)(number),
            }
            gic::end(interrupt);
        }
    }
    // SAFETY: the frame is complete, interrupts are masked.
    unsafe { (table.interrupt_exit)(frame) };
}

/// # Safety
/// Called by the vectors with a complete frame.
#[unsafe(no_mangle)]
unsafe extern "C" fn magpie_synchronous(frame: *mut Frame, overflowed: u64) {
    const SVC: u64 = 0x15;
    let syndrome = ESR_EL1.get();
    if syndrome >> 26 == SVC && overflowed == 0 {
        if let Some(table) = handlers::get() {
            // SAFETY: the frame is complete, interrupts are masked.
            unsafe { (table.preempt_trap)(frame) };
        }
        return;
    }
    // SAFETY: the vectors made the frame.
    let pc = unsafe { (*frame).elr };
    let address = FAR_EL1.get();
    let fault = Fault { reason: reason(syndrome, overflowed != 0), pc, address, syndrome };
    // SAFETY: as above.
    unsafe { report(&fault, frame) }
}

/// # Safety
/// Called by the vectors with a complete frame.
#[unsafe(no_mangle)]
unsafe extern "C" fn magpie_unexpected_exception(frame: *mut Frame, _overflowed: u64) {
    // SAFETY: the vectors made the frame.
    let pc = unsafe { (*frame).elr };
    let fault = Fault { reason: FaultReason::Other, pc, address: FAR_EL1.get(), syndrome: ESR_EL1.get() };
    // SAFETY: as above.
    unsafe { report(&fault, frame) }
}

/// # Safety
/// `frame` is the complete frame of the code that faulted.
unsafe fn report(fault: &Fault, frame: *mut Frame) {
    if let Some(table) = handlers::get() {
        // SAFETY: by contract.
        unsafe { (table.fault)(fault, frame) };
    }
    // SAFETY: by contract.
    let frame = unsafe { &*frame };
    panic!("{:?} at pc {:#x}, address {:#x}\n{frame}", fault.reason, fault.pc, fault.address);
}

fn reason(syndrome: u64, overflowed: bool) -> FaultReason {
    if overflowed {
        return FaultReason::StackOverflow;
    }
    match syndrome >> 26 {
        0x00 | 0x07 | 0x0e => FaultReason::Undefined,
        0x20 | 0x21 => FaultReason::InstructionAbort,
        0x22 | 0x26 => FaultReason::Alignment,
        0x24 | 0x25 if syndrome & 0x3f == 0x21 => FaultReason::Alignment,
        0x24 | 0x25 => FaultReason::DataAbort,
        _ => FaultReason::Other,
    }
}

impl core::fmt::Display for Frame {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (row, values) in self.x.chunks(4).enumerate() {
            for (column, value) in values.iter().enumerate() {
                write!(f, "  x{:<2} {value:016x}", row * 4 + column)?;
            }
            writeln!(f)?;
        }
        write!(f, "  pc  {:016x}  sp  {:016x}  pstate {:08x}", self.elr, self.sp, self.spsr)
    }
}
