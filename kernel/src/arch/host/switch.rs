//! Stack switching: absent here. A host core runs all on its thread's one stack, so nothing is ever
//! suspended and no [`Frame`] is ever made; the functions exist because the scheduler names them.

/// The registers of suspended code: never constructed on the host.
pub enum Frame {}

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

/// Enters the preemption handler as an interrupt would: nothing to preempt on the host.
pub fn preempt_trap() {}
