//! The four priorities, named as in the BEAM.

use crate::arch::atomic::{AtomicBool, Ordering};

/// Whether there ever was a process of priority `Max`.
static MAX_IS_USED: AtomicBool = AtomicBool::new(false);

/// How urgent a process is. `Max` and `High` are strict; while both wait, `Low` runs once for every eight `Normal`, or as
/// often as [`tuning::NORMAL_PER_LOW`](crate::sched::tuning::NORMAL_PER_LOW) says.
///
/// ```
/// use magpie::sched::Priority;
///
/// assert!(Priority::Max < Priority::Low, "the most urgent comes first");
/// assert!(Priority::High.is_urgent() && !Priority::Normal.is_urgent());
/// for priority in Priority::ALL {
///     assert_eq!(Priority::ALL[priority.index()], priority);
///     assert_eq!(priority.bit(), 1 << priority.index());
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Priority {
    /// Before everything else; meant for the system's own urgent work.
    Max = 0,
    /// Before `Normal` and `Low`, always.
    High = 1,
    /// The default.
    Normal = 2,
    /// Behind `Normal`, but never starved by it.
    Low = 3,
}

impl Priority {
    /// How many there are.
    pub const COUNT: usize = 4;

    /// All, most urgent first.
    pub const ALL: [Self; Self::COUNT] = [Self::Max, Self::High, Self::Normal, Self::Low];

    /// Its place in [`Priority::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether it comes before everything else at once, rather than at the end of a slice.
    #[inline(always)]
    pub const fn is_urgent(self) -> bool {
        (self as u8) < Self::Normal as u8
    }

    /// A process of this priority begins.
    #[inline(always)]
    pub(crate) fn note_use(self) {
        if self == Self::Max {
            // Relaxed: it says whether it pays to look at a timer that is due. Before one can be armed for that process it is runnable, and its
            // queue publishes this.
            MAX_IS_USED.store(true, Ordering::Relaxed);
        }
    }

    /// Whether what is urgent may be `Max`: there was such a process.
    pub(crate) fn is_max_used() -> bool {
        // Relaxed: as above.
        MAX_IS_USED.load(Ordering::Relaxed)
    }

    /// Its bit in a mask of non-empty queues.
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }
}
