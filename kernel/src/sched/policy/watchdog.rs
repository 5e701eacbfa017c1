//! What is done about a core that is stuck. When one is taken to be is in `suspicion.rs`; who looks, and at what, in `run/watchdog.rs`.

/// What the watchdog does when a core is stuck.
///
/// ```
/// use core::time::Duration;
/// use magpie::sched::{WatchdogAction, tuning};
///
/// tuning::WATCHDOG_ACTION.set(WatchdogAction::Stop)?;
/// tuning::WATCHDOG_LIMIT.set(Duration::from_secs(5))?;
/// # tuning::WATCHDOG_LIMIT.set(Duration::ZERO)?;
/// # tuning::WATCHDOG_ACTION.set(WatchdogAction::Dump)?;
/// # Ok::<(), magpie::sched::SettingError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WatchdogAction {
    /// It says where each core is, once, and all that can go on does.
    Dump = 0,
    /// The kernel panics.
    Stop = 1,
    /// The kernel panics, and the machine starts again.
    Restart = 2,
}

impl WatchdogAction {
    pub(crate) fn of_number(number: u64) -> Self {
        match number {
            0 => Self::Dump,
            1 => Self::Stop,
            _ => Self::Restart,
        }
    }
}
