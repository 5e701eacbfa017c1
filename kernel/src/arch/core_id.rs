//! The number of a core, as a type of its own so that it cannot be confused with a worker's or a
//! mailbox's number.

/// The most cores one kernel schedules; affinity masks are 64 bits wide.
pub const MAX_CORES: usize = 64;

/// A core's number: 0 for the core that boots, below [`MAX_CORES`] for all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CoreId(u8);

impl CoreId {
    /// The core that boots the others.
    pub const BOOT: Self = Self(0);

    /// The core with this number, or `None` at or above [`MAX_CORES`].
    pub const fn new(number: usize) -> Option<Self> {
        if number < MAX_CORES { Some(Self(number as u8)) } else { None }
    }

    /// Its number, always below [`MAX_CORES`], so that it indexes per-core arrays.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The affinity mask with this core's bit alone.
    pub const fn mask(self) -> u64 {
        1 << self.0
    }
}
