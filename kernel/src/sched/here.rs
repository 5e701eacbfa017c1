//! What a process can ask about where it runs.

use core::ptr::NonNull;

use super::cores::Core;
use super::process::{Header, ProcessRef};
use crate::arch::CoreId;
use crate::mem::stack::StackBlock;
use crate::sync::PreemptGuard;

/// The core that runs the caller, if a scheduler does. The answer may be outdated at once, unless the
/// caller is pinned.
pub fn current_core() -> Option<CoreId> {
    let here = PreemptGuard::new();
    Core::current(&here).map(Core::id)
}

/// The process whose turn the caller is part of, if it is.
pub fn current_process() -> Option<ProcessRef> {
    let process = NonNull::new(StackBlock::current().process().cast::<Header>())?;
    // SAFETY: a process is kept alive during its turn, which the caller is part of.
    Some(unsafe { ProcessRef::count(process) })
}
