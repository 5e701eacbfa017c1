//! What the vectors call: interrupts, the preemption trap, and faults.

use aarch64_cpu::registers::{ESR_EL1, FAR_EL1, Readable, SP_EL0, VBAR_EL1, Writeable};

use super::frame::Frame;
use super::switch::PREEMPT_CALL;
use super::{cpu, gic, percpu, timer, vectors};
use crate::arch::CoreId;
use crate::arch::handlers::{self, Fault, FaultReason, Handlers, Verdict};
use crate::arch::stack_layout::{EXCEPTION_STACK_BYTES, FAULT_STACK_BYTES, StackPart, place_in_slot};

/// Points this core's vectors here, and gives it its stacks for exceptions.
///
/// # Safety
/// `top` is 16-byte aligned, and the [`EXCEPTION_STACK_BYTES`] below it
/// are this core's own and used for nothing else.
pub unsafe fn install(top: *mut u8) {
    // SAFETY: only the address is taken.
    VBAR_EL1.set((&raw const vectors::magpie_vectors) as u64);
    // SAFETY: `SP_EL0` is a plain register at EL1; see the head of `aarch64`.
    unsafe {
        core::arch::asm!("msr sp_el0, {}", "isb", in(reg) top, options(nostack, preserves_flags));
    }
}

/// Where this core's stacks for exceptions lie.
pub fn stacks() -> core::ops::Range<usize> {
    let top = SP_EL0.get() as usize;
    top - EXCEPTION_STACK_BYTES..top
}

/// # Safety
/// Called by the vectors with a complete frame.
#[unsafe(no_mangle)]
unsafe extern "C" fn magpie_interrupt(frame: *mut Frame) {
    let Some(table) = handlers::get() else {
        let interrupt = gic::acknowledge();
        if interrupt.number() < gic::SPURIOUS {
            gic::end(interrupt);
        }
        return;
    };
    match take(|| Some(table)) {
        Taken::Handled => {}
        // SAFETY: the frame is complete, interrupts are masked.
        Taken::Stop => unsafe { (table.stop)(frame) },
        Taken::Device(device) => {
            (table.device)(device.number());
            device.end();
        }
    }
    // SAFETY: as above.
    unsafe { (table.interrupt_exit)(frame) };
}

/// What an interrupt was.
enum Taken {
    /// It was handled.
    Handled,
    /// Another core stops the system, or asks where this one is: for who knows what was interrupted.
    Stop,
    /// A device's.
    Device(Device),
}

/// A device's interrupt, which was taken and is not handled yet.
#[must_use = "the controller lets no other through until this has ended"]
pub struct Device {
    interrupt: gic::Interrupt,
    number: u32,
}

impl Device {
    /// Its number.
    #[inline(always)]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// It was handled.
    #[inline(always)]
    pub fn end(self) {
        gic::end(self.interrupt);
    }
}

/// Takes the most urgent interrupt that is pending. One that is no device's is handled by the table.
#[inline(always)]
fn take(table: impl FnOnce() -> Option<&'static Handlers>) -> Taken {
    let interrupt = gic::acknowledge();
    let number = interrupt.number();
    let taken = match number {
        // First, because its handler is the longest.
        _ if gic::is_timer(number) => {
            timer::disarm();
            if let Some(table) = table() {
                (table.timer)();
            }
            Taken::Handled
        }
        gic::FIRST_OF_DEVICE..gic::SPURIOUS => return Taken::Device(Device { interrupt, number }),
        gic::SPURIOUS.. => return Taken::Handled,
        gic::STOP => Taken::Stop,
        // Another core wakes this one: its loop, or what follows the interrupt, looks for what.
        _ => Taken::Handled,
    };
    gic::end(interrupt);
    taken
}

/// Takes an interrupt that is pending, if one is, without what it costs to interrupt: for a core that has waited for one with interrupts
/// masked, and unmasks them next. What follows an interrupt is left out, too: the caller looks at all that an interrupt may have brought. A
/// device's is the caller's to handle.
// In line: the one caller has a device's interrupt to its process in mind.
#[inline(always)]
pub fn take_pending() -> Option<Device> {
    match take(handlers::get) {
        Taken::Device(device) => return Some(device),
        Taken::Handled => {}
        // It says where the core is, so it has to interrupt: once more, as soon as interrupts are unmasked.
        Taken::Stop => {
            if let Some(this) = CoreId::new(percpu::core_number()) {
                gic::send_stop(this);
            }
        }
    }
    None
}

/// The class of a supervisor call, in the syndrome's upper bits.
pub(super) const SVC: u64 = 0x15;

/// # Safety
/// Called by the vectors with a complete frame: a supervisor call's is in the block of the stack that it was made on.
#[unsafe(no_mangle)]
unsafe extern "C" fn magpie_synchronous(frame: *mut Frame) {
    let syndrome = ESR_EL1.get();
    if syndrome >> 26 == SVC && syndrome & 0xffff == PREEMPT_CALL {
        if let Some(table) = handlers::get() {
            debug_assert!(
                // SAFETY: the vectors made the frame.
                !stacks().contains(&unsafe { (*frame).sp as usize }),
                "a section of a handler's ended with a preemption"
            );
            // SAFETY: the frame is complete, interrupts are masked.
            unsafe { (table.preempt_trap)(frame) };
        }
        return;
    }
    // SAFETY: the vectors made the frame.
    unsafe { report(reason(syndrome), frame) }
}

/// # Safety
/// Called by the vectors with a complete frame.
#[unsafe(no_mangle)]
unsafe extern "C" fn magpie_unexpected_exception(frame: *mut Frame) {
    // SAFETY: the vectors made the frame.
    unsafe { report(FaultReason::Other, frame) }
}

/// # Safety
/// `frame` is the complete frame of the code that faulted.
unsafe fn report(reason: FaultReason, frame: *mut Frame) {
    // SAFETY: the caller promised a complete frame.
    let frame = unsafe { &mut *frame };
    give_up_if_nested(frame);
    let address = FAR_EL1.get();
    let block = percpu::stack_block() as usize;
    let place = place_in_slot(block, frame.sp as usize);
    let touched = match reason {
        FaultReason::DataAbort | FaultReason::Alignment if place != StackPart::Outside => {
            place_in_slot(block, address as usize)
        }
        _ => place,
    };
    let is_beyond = place == StackPart::Guard || touched == StackPart::Guard;
    let overflowed = is_beyond || touched == StackPart::Reserve;
    let fault = Fault {
        reason: if overflowed { FaultReason::StackOverflow } else { reason },
        pc: frame.elr,
        address,
        syndrome: ESR_EL1.get(),
        in_reserve: overflowed && !is_beyond,
        on_own_stack: place != StackPart::Outside,
    };
    if let Some(table) = handlers::get() {
        // SAFETY: the caller promised the complete frame of the code that faulted.
        if unsafe { (table.fault)(&fault, frame) } == Verdict::Retry {
            return;
        }
    }
    panic!("{} at pc {:#x}, address {:#x}\n{frame}", fault.reason.words(), fault.pc, fault.address);
}

/// A fault while a fault is handled, again and again, would run off the fault stack. With less than a quarter of it
/// left the core stops without a report. A supervisor call's frame is on none of the core's stacks for exceptions.
fn give_up_if_nested(frame: &Frame) {
    const MOST: u64 = FAULT_STACK_BYTES as u64 / 4 * 3;
    let top = SP_EL0.get();
    let used = top.wrapping_sub(core::ptr::from_ref(frame) as u64);
    if (MOST + 1..=EXCEPTION_STACK_BYTES as u64).contains(&used) {
        loop {
            cpu::wait_for_interrupt();
        }
    }
}

fn reason(syndrome: u64) -> FaultReason {
    match syndrome >> 26 {
        0x00 | 0x07 | 0x0e | 0x15 => FaultReason::Undefined,
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
            write_row(f, row, values)?;
        }
        write!(f, "  pc  {:016x}  sp  {:016x}  pstate {:08x}", self.elr, self.sp, self.spsr)
    }
}

/// By itself, or the compiler writes it out for each register: 2 KiB of an image.
#[inline(never)]
fn write_row(f: &mut core::fmt::Formatter<'_>, row: usize, values: &[u64]) -> core::fmt::Result {
    for (column, value) in values.iter().enumerate() {
        write!(f, "  x{:<2} {value:016x}", row * 4 + column)?;
    }
    writeln!(f)
}
