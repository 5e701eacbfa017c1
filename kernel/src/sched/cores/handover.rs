//! What a core's loop that begins on a fresh stack finds to do first.

use core::ptr::NonNull;

use super::in_turn::Turn;
use crate::arch::handlers::Fault;
use crate::arch::switch::Frame;
use crate::crash::CrashKind;
use crate::mem::stack::StackBlock;
use crate::sched::process::Header;
use crate::watch::Exit;

/// Left by an interrupt, or by the end of what has crashed.
#[derive(Default)]
pub(crate) enum Handover {
    /// Nothing.
    #[default]
    Nothing,
    /// A process's turn has crashed.
    Crashed(Crashed),
    /// The same, on the stack that the loop goes on with; it is written down.
    WrittenDown(NonNull<Header>, Exit),
    /// A turn was interrupted, and is to be suspended.
    Turn(Interrupted),
}

/// A turn that has crashed, with the core's loop gone from its stack.
#[derive(Clone, Copy)]
pub(crate) struct Crashed {
    /// The stack that it ran on. In its block are whose turn it was, and the registers that it was stopped with; where it panicked, the stack
    /// pointer alone.
    pub block: &'static StackBlock,
    /// Why.
    pub cause: Cause,
}

/// Why a turn has crashed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It panicked. What that has written down lies on its stack, where the block says.
    Panicked,
    /// It was stopped from outside, or at the end of a section.
    Stopped(CrashKind),
    /// It has faulted, as its core's block says: [`Core::fault`](super::Core::fault).
    Faulted,
}

/// Says that code has faulted: why, with which registers, in what.
pub(crate) type Report = fn(&Fault, &Frame, &str);

/// What is to become of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reason {
    /// Its process was killed.
    pub kills: bool,
    /// It works for an executor, and is asked whether it was killed.
    pub asks: bool,
    /// It is suspended.
    pub suspends: bool,
    /// For something more urgent.
    pub is_urgent: bool,
    /// What waits behind a resident is looked at.
    pub looks: bool,
    /// It is a resident's, and told to end between two pieces of work.
    pub ends: bool,
}

impl Reason {
    /// It goes on.
    pub(crate) const NONE: Self =
        Self { kills: false, asks: false, suspends: false, is_urgent: false, looks: false, ends: false };
    /// It is suspended for something more urgent, and nothing else.
    pub(crate) const URGENT: Self = Self { suspends: true, is_urgent: true, ..Self::NONE };
}

/// A turn that was interrupted, with the core's loop gone from its stack.
pub(crate) struct Interrupted {
    /// Whose turn it was.
    pub process: NonNull<Header>,
    /// The stack that it runs on.
    pub block: &'static StackBlock,
    /// What is to become of it.
    pub reason: Reason,
    /// What was known of the turn.
    pub turn: Turn,
}
