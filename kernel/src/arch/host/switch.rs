//! Stack switching: absent here. A host core runs everything on its thread's one stack, so nothing is ever
//! suspended and no [`Frame`] ever filled; the functions exist because the scheduler names them.

/// The registers of suspended code: none, on the host.
#[derive(Clone)]
pub struct Frame;

impl Frame {
    /// A frame that holds no code's registers.
    pub const EMPTY: Self = Self;

    /// The instruction at which the code was stopped: none.
    pub(crate) fn place(&self) -> u64 {
        0
    }

    /// Where the code's stack pointer was: there is none.
    pub(crate) fn stack_pointer(&self) -> usize {
        usize::MAX
    }

    /// As on a machine.
    pub(crate) fn set_stack_pointer(&mut self, _: usize) {}
}

/// Starts `entry(arg)` on a fresh stack and abandons the current one.
///
/// # Safety
/// Never called on the host, where no stack is ever lent.
pub unsafe fn start_on(_top: *mut u8, _block: *mut (), _entry: extern "C" fn(usize) -> !, _arg: usize) -> ! {
    unreachable!("the host back end lends no stacks")
}

/// Switches to the stack of `frame`, calls `after(arg)` there, and continues the suspended code.
///
/// # Safety
/// Never called on the host, where no frame exists.
pub unsafe fn resume(_frame: *mut Frame, _block: *mut (), _after: extern "C" fn(usize), _arg: usize) -> ! {
    unreachable!("the host back end lends no stacks")
}

/// Whether the caller runs on a stack of its own, and not in a handler: always, on the host.
pub fn is_on_own_stack() -> bool {
    true
}

/// The caller's stack pointer: none that matters, because nothing is suspended.
#[inline(always)]
pub fn save_registers(_kept: &mut KeptRegisters) -> usize {
    usize::MAX
}

/// The registers that a call leaves as they are: none, on the host.
pub type KeptRegisters = [usize; 0];

/// Enters the preemption handler as an interrupt would: nothing to preempt on the host.
pub fn preempt_trap() {}
