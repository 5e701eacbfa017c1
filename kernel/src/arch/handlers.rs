//! The one way upwards: what the machine calls when an interrupt or a fault arrives.
//!
//! `sched` and `boot` register a table once, before interrupts are first unmasked.

use spin::Once;

use super::switch::Frame;

/// What the machine calls. All run with interrupts masked, on the core's own stack for interrupts or for faults, and on
/// behalf of the interrupted stack: its block is the current one.
#[cfg_attr(
    not(target_os = "none"),
    expect(dead_code, reason = "a host core has no interrupts but its timer's")
)]
pub struct Handlers {
    /// The core's timer reached its deadline. The timer is already disarmed.
    pub timer: fn(),
    /// Another core stops the system, or asks where this one is. With the complete frame of the interrupted code, in its block. Returns
    /// if the core goes on.
    #[cfg(target_os = "none")]
    pub stop: unsafe fn(*mut Frame),
    /// A device interrupt, by its interrupt number (SPIs; already acknowledged, ended on return).
    pub device: fn(u32),
    /// Called last, after the interrupt was ended, with the complete frame of the interrupted code, in its block.
    /// May leave that code suspended by switching to another stack, and then does not return.
    pub interrupt_exit: unsafe fn(*mut Frame),
    /// [`super::switch::preempt_trap`] was called. As `interrupt_exit`.
    pub preempt_trap: unsafe fn(*mut Frame),
    /// A synchronous fault. Returns when the code may try again, or when nothing that can be ended alone caused the
    /// fault; in the second case the machine then prints the registers and stops.
    pub fault: unsafe fn(&Fault, *mut Frame) -> Verdict,
}

/// What happens to the code that faulted, if it was not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It goes on with the same instruction.
    Retry,
    /// The system stops.
    Stop,
}

/// What kind of fault stopped the running code, and where.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// What happened, in words.
    pub reason: FaultReason,
    /// Address of the instruction.
    pub pc: u64,
    /// The address that was accessed, where the reason has one.
    pub address: u64,
    /// The raw syndrome register.
    pub syndrome: u64,
    /// A stack overflow that did not get beyond the reserve.
    pub in_reserve: bool,
    /// The code that faulted ran on its own stack, and was not a handler.
    pub on_own_stack: bool,
}

impl Fault {
    /// The address that was accessed, if the fault is about one.
    pub(crate) fn accessed(&self) -> Option<usize> {
        /// A misaligned stack pointer, with which the address register has nothing to do.
        const STACK_POINTER: u64 = 0x26;
        let is_about_one = match self.reason {
            FaultReason::StackOverflow | FaultReason::DataAbort | FaultReason::InstructionAbort => true,
            FaultReason::Alignment => self.syndrome >> 26 != STACK_POINTER,
            FaultReason::Undefined | FaultReason::Other => false,
        };
        is_about_one.then_some(self.address as usize)
    }
}

/// Causes of a fault, as far as the kernel distinguishes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultReason {
    /// The stack ran into its reserve or guard.
    StackOverflow,
    /// A load or store to an address that is not mapped or not permitted.
    DataAbort,
    /// A jump to an address that is not mapped or not executable.
    InstructionAbort,
    /// An instruction that does not exist.
    Undefined,
    /// A misaligned program counter, stack pointer or access.
    Alignment,
    /// Anything else; see the syndrome.
    Other,
}

impl FaultReason {
    /// What it is called in reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::StackOverflow => "stack overflow",
            Self::DataAbort => "data abort",
            Self::InstructionAbort => "instruction abort",
            Self::Undefined => "undefined instruction",
            Self::Alignment => "misalignment",
            Self::Other => "fault",
        }
    }
}

static HANDLERS: Once<Handlers> = Once::new();

/// Registers the table; later calls change nothing.
pub fn register(handlers: Handlers) {
    HANDLERS.call_once(|| handlers);
}

/// The table, once registered.
pub fn get() -> Option<&'static Handlers> {
    HANDLERS.get()
}
