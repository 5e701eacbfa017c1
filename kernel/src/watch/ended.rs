//! What a watcher is told, and who may be one.

use core::num::NonZeroU64;

use super::node::{Act, Data, Node};
use crate::sync::CrashNumber;

/// The number of a watch; no other has had the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WatchId(NonZeroU64);

impl WatchId {
    /// The one that follows so many others.
    pub(crate) const fn after(others: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(others))
    }

    /// The number: from one on, in the order in which watches began.
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

/// How an actor or a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Exit {
    /// As it wanted: the process returned, the actor said so.
    Normal,
    /// With its executor, which was stopped.
    Stopped,
    /// It panicked, or faulted; [`crash::record`](crate::crash::record) has what is known, if it is one of the last 32.
    Crashed(CrashNumber),
    /// It was killed: [`ProcessRef::kill`](crate::sched::ProcessRef::kill), [`Addr::kill`](crate::actor::Addr::kill).
    Killed,
    /// It had ended before it was watched.
    Gone,
    /// As it wanted, and as a failure: a [supervisor](crate::supervise) gave up, a supervisor's child returned an error.
    Failed,
}

/// In the lowest bits of an exit's: it crashed, and the others are the crash's number; zero, which no crash has, if it was killed.
const CRASHED: u64 = 3;
/// With lowest bits that no crash has.
const FAILED: u64 = 4;
const NUMBER_SHIFT: u32 = 2;

impl Exit {
    pub(crate) const fn bits(self) -> u64 {
        match self {
            Self::Normal => 0,
            Self::Stopped => 1,
            Self::Gone => 2,
            Self::Killed => CRASHED,
            Self::Failed => FAILED,
            Self::Crashed(number) => CRASHED | number.get() << NUMBER_SHIFT,
        }
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        match bits {
            0 => Self::Normal,
            1 => Self::Stopped,
            2 => Self::Gone,
            CRASHED => Self::Killed,
            FAILED => Self::Failed,
            bits => Self::Crashed(CrashNumber::new(bits >> NUMBER_SHIFT)),
        }
    }

    /// Whether one that is linked to it is killed for it.
    pub(crate) const fn ends_linked(self) -> bool {
        self.is_failure() || matches!(self, Self::Gone)
    }

    /// Whether it crashed or was killed.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Crashed(_) | Self::Killed | Self::Failed)
    }
}

/// The message: what was watched has ended. Two words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    watch: WatchId,
    exit: u64,
}

impl Ended {
    /// What the watch in `node` tells when it is asked to, with those bits.
    pub(crate) fn of(node: &Node, exit_bits: u64) -> Self {
        Self { watch: WatchId::after(node.number() - 1), exit: exit_bits }
    }

    /// Which watch tells this.
    pub const fn watch(&self) -> WatchId {
        self.watch
    }

    /// How it ended.
    pub const fn exit(&self) -> Exit {
        Exit::from_bits(self.exit)
    }
}

/// How a watcher is told: memory for that, and what its function needs to know.
#[derive(Debug)]
pub struct Means {
    pub(crate) memory: core::ptr::NonNull<Node>,
    pub(crate) act: Act,
    pub(crate) data: Data,
}

/// Who may be told: an actor with a behaviour for [`Ended`] (its `Recipient<Ended>`), or a process with a mailbox for it (its
/// `&ProcessAddr<Ended>`).
///
/// ```
/// use magpie::watch::{Ended, Watch, Watcher};
/// // Whoever watches a process for somebody need not know who that is.
/// fn watch_here(watcher: &impl Watcher) -> Option<Watch> {
///     magpie::sched::current_process()?.watch(watcher).ok()
/// }
/// ```
pub trait Watcher: sealed::Sealed {}

pub(crate) mod sealed {
    use super::Means;

    /// Only the kernel knows how somebody is told.
    pub trait Sealed {
        /// Memory for the message, and how to send it; `None` if there is none.
        fn means(&self) -> Option<Means>;
    }
}

impl<W: sealed::Sealed> Watcher for W {}

#[cfg(test)]
mod tests {
    use super::{CrashNumber, Exit};

    #[test]
    fn an_exit_fits_into_a_word() {
        let crashes = [1, 2, u64::MAX >> 2].map(|number| Exit::Crashed(CrashNumber::new(number)));
        let others = [Exit::Normal, Exit::Stopped, Exit::Gone].map(|exit| (exit, false));
        let failures = [Exit::Killed, Exit::Failed].into_iter().chain(crashes).map(|exit| (exit, true));
        for (exit, is_failure) in others.into_iter().chain(failures) {
            assert_eq!(Exit::from_bits(exit.bits()), exit);
            assert_eq!(exit.is_failure(), is_failure);
        }
    }
}
