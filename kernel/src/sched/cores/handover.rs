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

/// What is to become of a turn: any of these. One word, because an interrupt decides it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reason(u32);

impl Reason {
    /// Nothing: it goes on.
    pub(crate) const NONE: Self = Self(0);
    /// Its process was killed.
    pub(crate) const KILLS: Self = Self(1);
    /// It works for an executor, and is asked whether it was killed.
    pub(crate) const ASKS: Self = Self(1 << 1);
    /// It is suspended.
    pub(crate) const SUSPENDS: Self = Self(1 << 2);
    /// It is suspended, for something more urgent.
    pub(crate) const URGENT: Self = Self(Self::SUSPENDS.0 | 1 << 3);
    /// What waits behind a resident is looked at.
    pub(crate) const LOOKS: Self = Self(1 << 4);
    /// It is a resident's, and told to end between two pieces of work.
    pub(crate) const ENDS: Self = Self(1 << 5);

    /// All of both.
    #[inline(always)]
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The same without another.
    #[inline(always)]
    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether another is a part of it.
    #[inline(always)]
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// It is suspended, for whatever.
    #[inline(always)]
    pub(crate) fn suspends(self) -> bool {
        self.has(Self::SUSPENDS)
    }

    /// For something more urgent.
    #[inline(always)]
    pub(crate) fn is_urgent(self) -> bool {
        self.has(Self::URGENT)
    }

    /// What waits behind it is looked at.
    #[inline(always)]
    pub(crate) fn looks(self) -> bool {
        self.has(Self::LOOKS)
    }
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
