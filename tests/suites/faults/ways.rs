//! The ways in which something ends here, and what is told of each.

use alloc::vec::Vec;
use core::hint::black_box;

use magpie::crash::{self, CrashKind};
use magpie::internals::Random;
use magpie::watch::Exit;

/// How something ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Panic,
    DataAbort,
    InstructionAbort,
    Undefined,
    Overflow,
    OutOfMemory,
    /// From outside, whatever it does then.
    Kill,
    /// By an error that it returns.
    Error,
    /// As it should.
    Return,
}

/// The exits that a watch may tell, as a set.
pub type Exits = u32;

pub const NORMAL: Exits = 1;
pub const STOPPED: Exits = 1 << 1;
pub const KILLED: Exits = 1 << 2;
pub const GONE: Exits = 1 << 3;
pub const FAILED: Exits = 1 << 4;
/// It crashed, and its record is kept no more.
pub const FORGOTTEN: Exits = 1 << 5;
const FIRST_KIND: u32 = 6;

const KINDS: [CrashKind; 6] = [
    CrashKind::Panic,
    CrashKind::DataAbort,
    CrashKind::InstructionAbort,
    CrashKind::Undefined,
    CrashKind::StackOverflow,
    CrashKind::OutOfMemory,
];
/// A kind that nothing here has.
const OTHER: Exits = 1 << (FIRST_KIND + KINDS.len() as u32);

fn of_kind(kind: CrashKind) -> Exits {
    KINDS.iter().position(|known| *known == kind).map_or(OTHER, |place| 1 << (FIRST_KIND + place as u32))
}

/// A crash for want of memory.
pub fn out_of_memory() -> Exits {
    of_kind(CrashKind::OutOfMemory) | FORGOTTEN
}

/// What a watch has told; of a crash its kind, as long as that is written down.
pub fn exits_of(exit: Exit) -> Exits {
    match exit {
        Exit::Normal => NORMAL,
        Exit::Stopped => STOPPED,
        Exit::Killed => KILLED,
        Exit::Gone => GONE,
        Exit::Failed => FAILED,
        Exit::Crashed(number) => crash::record(number).map_or(FORGOTTEN, |record| of_kind(record.kind)),
        _ => OTHER,
    }
}

impl Way {
    /// Those in which code ends itself by a fault.
    pub const CRASHES: [Self; 6] = [
        Self::Panic,
        Self::DataAbort,
        Self::InstructionAbort,
        Self::Undefined,
        Self::Overflow,
        Self::OutOfMemory,
    ];

    /// Any, for a process under a supervisor.
    pub fn of_child(random: &Random) -> Self {
        match random.below(10) {
            place @ 0..6 => Self::CRASHES[place],
            6 => Self::Kill,
            7 => Self::Error,
            _ => Self::Return,
        }
    }

    /// A crash, or a kill.
    pub fn of_victim(random: &Random) -> Self {
        Self::CRASHES.get(random.below(8)).copied().unwrap_or(Self::Kill)
    }

    /// Whether code of its own does it.
    pub fn is_crash(self) -> bool {
        Self::CRASHES.contains(&self)
    }

    pub fn is_failure(self) -> bool {
        self != Self::Return
    }

    /// What is told of it.
    pub fn exits(self) -> Exits {
        let kind = match self {
            Self::Panic => CrashKind::Panic,
            Self::DataAbort => CrashKind::DataAbort,
            Self::InstructionAbort => CrashKind::InstructionAbort,
            Self::Undefined => CrashKind::Undefined,
            Self::Overflow => CrashKind::StackOverflow,
            Self::OutOfMemory => CrashKind::OutOfMemory,
            Self::Kill => return KILLED,
            Self::Error => return FAILED,
            Self::Return => return NORMAL,
        };
        of_kind(kind) | FORGOTTEN
    }

    /// Crashes, if it is a crash.
    #[inline(never)]
    pub fn crash(self) -> u64 {
        match self {
            Self::Panic if black_box(true) => panic!("on purpose"),
            Self::DataAbort => {
                let nowhere = black_box(8_usize) as *const u64;
                // SAFETY: deliberately not: nothing is mapped there, and who reads it is to be ended for it.
                unsafe { nowhere.read_volatile() }
            }
            Self::InstructionAbort => {
                let nowhere = black_box(0x20_usize);
                // SAFETY: deliberately not: there is no code, and who jumps there is to be ended for it.
                (unsafe { core::mem::transmute::<usize, extern "C" fn() -> u64>(nowhere) })()
            }
            Self::Undefined => {
                // SAFETY: an instruction that does not exist does nothing but fault.
                unsafe { core::arch::asm!("udf #7") };
                0
            }
            Self::Overflow => descend(black_box(0)),
            Self::OutOfMemory => black_box(Vec::<u8>::with_capacity(black_box(1 << 45))).len() as u64,
            Self::Panic | Self::Kill | Self::Error | Self::Return => 0,
        }
    }
}

fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if black_box(depth) == u64::MAX { 0 } else { descend(depth + 1) + frame[(depth % 64) as usize] }
}
