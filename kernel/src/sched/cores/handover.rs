//! What a core's loop that begins on a fresh stack finds to do first.

use core::ptr::NonNull;

use crate::mem::stack::StackBlock;
use crate::sched::process::{Header, Runnable};

/// Left by an interrupt, or by the end of what has crashed.
#[derive(Default)]
pub(crate) enum Handover {
    /// Nothing.
    #[default]
    Nothing,
    /// A resident is to go on, whose turn has crashed.
    Resident(Runnable),
    /// A turn was interrupted, and is to be suspended.
    Turn(Interrupted),
}

/// A turn that was interrupted, with the core's loop gone from its stack.
pub(crate) struct Interrupted {
    /// Whose turn it was.
    pub process: NonNull<Header>,
    /// The stack that it runs on.
    pub block: &'static StackBlock,
    /// For something more urgent.
    pub is_urgent: bool,
}
