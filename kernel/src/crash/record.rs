//! What is known of one crash.

use core::fmt;

use super::message::Message;
use super::trace::{Called, Trace};
use crate::arch::handlers::{Fault, FaultReason};
use crate::arch::{CoreId, clock};
use crate::sync::CrashNumber;
use crate::time::{Instant, of_ticks};

/// How something has crashed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CrashKind {
    /// A panic, whose message the record has.
    Panic,
    /// A load or store where it is not permitted.
    DataAbort,
    /// A jump to where there is no code.
    InstructionAbort,
    /// An instruction that does not exist.
    Undefined,
    /// It used up its stack.
    StackOverflow,
    /// It asked for memory in a way that cannot be refused, and there was none. The record has a message, as for a panic.
    OutOfMemory,
    /// A misaligned access, jump or stack pointer.
    Alignment,
    /// Another fault.
    Other,
    /// It was killed while it ran, or was suspended: that is where it was.
    Killed,
}

impl CrashKind {
    /// That of a fault.
    pub(crate) fn of(fault: &Fault) -> Self {
        match fault.reason {
            FaultReason::StackOverflow => Self::StackOverflow,
            FaultReason::DataAbort => Self::DataAbort,
            FaultReason::InstructionAbort => Self::InstructionAbort,
            FaultReason::Undefined => Self::Undefined,
            FaultReason::Alignment => Self::Alignment,
            FaultReason::Other => Self::Other,
        }
    }
}

impl fmt::Display for CrashKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Panic => "panic",
            Self::DataAbort => FaultReason::DataAbort.words(),
            Self::InstructionAbort => FaultReason::InstructionAbort.words(),
            Self::Undefined => FaultReason::Undefined.words(),
            Self::StackOverflow => FaultReason::StackOverflow.words(),
            Self::OutOfMemory => "out of memory",
            Self::Alignment => FaultReason::Alignment.words(),
            Self::Other => FaultReason::Other.words(),
            Self::Killed => "kill",
        })
    }
}

/// What was seen of a crash where it happened.
#[derive(Clone, Copy)]
pub(crate) struct Scene {
    pub kind: CrashKind,
    pub pc: usize,
    pub address: Option<usize>,
    pub trace: Trace,
}

/// A crash that is being reported: what was seen, and as much of the message as was printed.
pub(crate) struct Remembered {
    pub scene: Scene,
    pub message: Message,
}

/// What is known of one crash.
///
/// ```
/// use magpie::crash::{self, CrashKind};
/// use magpie::log::text;
///
/// if let Some(last) = crash::last() {
///     text!("{} {} on core {} by a {}", last.name(), last.number, last.core.index(), last.kind);
///     match (last.kind, last.address) {
///         (CrashKind::Panic, _) => text!("it said: {}", last.message()),
///         (_, Some(address)) => text!("at {:#x}, about {address:#x}", last.pc),
///         (_, None) => text!("at {:#x}", last.pc),
///     }
///     for address in last.backtrace() {
///         text!("called before {address:#x}");
///     }
/// }
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct CrashRecord {
    /// Which one it is of all crashes.
    pub number: CrashNumber,
    /// When it was written down.
    pub at: Instant,
    /// On which core.
    pub core: CoreId,
    /// How.
    pub kind: CrashKind,
    /// The type of the process that crashed, or in which an actor did.
    pub process: &'static str,
    /// The type of the actor whose behaviour crashed, if it was one.
    pub actor: Option<&'static str>,
    /// The instruction. Of a panic, and where memory was used up, the call that led to it.
    pub pc: usize,
    /// The address that was accessed, if the crash is about one.
    pub address: Option<usize>,
    trace: Trace,
    message: Message,
    /// The number of the event that came next on its core.
    #[cfg_attr(not(target_os = "none"), expect(dead_code, reason = "a host has no commands that show it"))]
    next_event: u64,
}

impl CrashRecord {
    /// That of what is seen here, which the ring gives its number.
    pub(super) fn new(
        number: CrashNumber,
        core: CoreId,
        names: (&'static str, Option<&'static str>),
        crash: &Remembered,
    ) -> Self {
        let Scene { kind, pc, address, trace } = crash.scene;
        let (process, actor) = names;
        Self {
            number,
            at: Instant::now(),
            core,
            kind,
            process,
            actor,
            pc,
            address,
            trace,
            message: crash.message,
            next_event: crate::trace::ring(core).written(),
        }
    }

    /// What crashed: the actor's type, or else the process's.
    pub fn name(&self) -> &'static str {
        self.actor.unwrap_or(self.process)
    }

    /// The beginning of what was said, up to 120 bytes; nothing for a fault. If saying it failed, what was said until then.
    pub fn message(&self) -> &str {
        self.message.text()
    }

    /// Where the crashed code was called from, the innermost first: return addresses, 16 at most; fewer if the stack was
    /// damaged. The host tool shows the functions and lines to them.
    pub fn backtrace(&self) -> &[usize] {
        self.trace.addresses()
    }
}

/// How many events before a crash are said.
#[cfg(target_os = "none")]
const EVENTS: u64 = 4;

impl CrashRecord {
    /// Says what the flight recorder still has of what came before it on its core.
    #[cfg(target_os = "none")]
    #[doc(hidden)]
    pub fn tell_events(&self) {
        crate::trace::tell(self.core, self.next_event, EVENTS, self.at.ticks());
    }
}

impl fmt::Display for CrashRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = of_ticks(self.at.ticks().saturating_sub(clock::ZERO));
        write!(f, "crash {} after {}.{:06} s", self.number, since.as_secs(), since.subsec_micros())?;
        write!(f, " on core {}: {} in {}", self.core.index(), self.kind, self.name())?;
        if let Some(address) = self.address {
            write!(f, ", address {address:#x}")?;
        }
        match self.message() {
            "" => {}
            message => write!(f, ": {message}")?,
        }
        write!(f, "\n{}", Called(self.pc, &self.trace))
    }
}

impl fmt::Debug for CrashRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
