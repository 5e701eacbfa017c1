//! The number of a core, as a type of its own so that it cannot be confused with a worker's or a
//! mailbox's number.

use core::fmt;

/// The most cores one kernel schedules; a set of them has 64 bits.
pub const MAX_CORES: usize = 64;

/// A core's number: 0 for the core that boots, below [`MAX_CORES`] for all.
///
/// ```
/// use magpie::arch::{CoreId, MAX_CORES};
///
/// assert_eq!(CoreId::new(0), Some(CoreId::BOOT));
/// assert_eq!(CoreId::new(3).map(CoreId::index), Some(3));
/// assert_eq!(CoreId::new(MAX_CORES), None);
/// ```
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

    /// The bit that stands for this core in a mask.
    pub(crate) const fn mask(self) -> u64 {
        1 << self.0
    }
}

/// A set of cores: where a process may run.
///
/// ```
/// use magpie::arch::{CoreId, CoreSet};
///
/// let even: CoreSet = (0..8).step_by(2).filter_map(CoreId::new).collect();
/// assert!(even.contains(CoreId::BOOT));
/// assert_eq!(even.len(), 4);
///
/// let other = even.without(CoreId::BOOT);
/// assert_eq!(other.iter().map(CoreId::index).collect::<Vec<_>>(), [2, 4, 6]);
/// assert_eq!(other.with(CoreId::BOOT), even);
/// assert!(CoreSet::of(CoreId::BOOT).without(CoreId::BOOT).is_empty());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CoreSet(u64);

impl CoreSet {
    /// Every core, also those that come into service later.
    pub const ALL: Self = Self(u64::MAX);
    /// None.
    pub const NONE: Self = Self(0);

    pub(crate) const fn of_mask(mask: u64) -> Self {
        Self(mask)
    }

    pub(crate) const fn mask(self) -> u64 {
        self.0
    }

    /// One core alone.
    pub const fn of(core: CoreId) -> Self {
        Self(core.mask())
    }

    /// These, and one more.
    #[must_use]
    pub const fn with(self, core: CoreId) -> Self {
        Self(self.0 | core.mask())
    }

    /// These, without one.
    #[must_use]
    pub const fn without(self, core: CoreId) -> Self {
        Self(self.0 & !core.mask())
    }

    /// Whether a core is one of them.
    pub const fn contains(self, core: CoreId) -> bool {
        self.0 & core.mask() != 0
    }

    /// How many they are.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether they are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each, in order.
    pub fn iter(self) -> impl Iterator<Item = CoreId> {
        (0..MAX_CORES).filter_map(CoreId::new).filter(move |core| self.contains(*core))
    }
}

impl fmt::Debug for CoreSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(CoreId::index)).finish()
    }
}

impl From<CoreId> for CoreSet {
    fn from(core: CoreId) -> Self {
        Self::of(core)
    }
}

impl FromIterator<CoreId> for CoreSet {
    fn from_iter<I: IntoIterator<Item = CoreId>>(cores: I) -> Self {
        cores.into_iter().fold(Self::NONE, Self::with)
    }
}
