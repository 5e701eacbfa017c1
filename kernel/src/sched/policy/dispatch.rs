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

/// The scheme in force.
pub fn current() -> Dispatch {
    match settings::get(Setting::Dispatch) {
        0 => Dispatch::Global,
        1 => Dispatch::PerCore,
        _ => Dispatch::Stealing,
    }
}

/// Changes the scheme. What waits already is still found where it is.
pub fn set(dispatch: Dispatch) {
    // The value is one of the three, so it is in range.
    let _ = settings::set(Setting::Dispatch, dispatch as u64);
}
