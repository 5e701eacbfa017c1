//! The three dispatch schemes of the Sophie note, to choose from and to compare.

use crate::sched::policy::settings::{self, Setting};

/// Where runnable processes wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispatch {
    /// One queue for all cores, behind one lock.
    Global = 0,
    /// A queue for each core, and no stealing.
    PerCore = 1,
    /// A queue for each core; idle cores steal.
    Stealing = 2,
}

impl Dispatch {
    pub(super) fn of_number(number: u64) -> Self {
        match number {
            0 => Self::Global,
            1 => Self::PerCore,
            _ => Self::Stealing,
        }
    }
}

/// The scheme in force.
pub(crate) fn current() -> Dispatch {
    Dispatch::of_number(settings::get(Setting::Dispatch))
}
