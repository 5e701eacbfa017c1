//! The scheduler's settings: named numbers with a default, a range, and one place each.
//!
//! They are read with one relaxed load, so that they can be changed while the system runs: by the
//! application, by boot arguments (`sched.slice_us=500`), or over the serial line. A reader may see a stale value for a
//! while; no rule depends on two settings changing together.

use core::fmt;

use crate::arch::atomic::{AtomicU64, Ordering};
use crate::arch::clock;

/// One setting. What each may be, and is at first, is in `docs/settings.md`; with types the settings are in
/// [`tuning`](crate::sched::tuning).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Setting {
    /// How long a process may run before the timer may preempt it.
    SliceMicroseconds,
    /// Reductions a process has for one turn.
    Reductions,
    /// How many `Normal` processes run for each `Low` one while both wait.
    NormalPerLow,
    /// How many times in a row the process woken last may jump the queue.
    RunNextTurns,
    /// How many cores may search for work to steal at once; 0 turns stealing off.
    Thieves,
    /// How long an idle core dozes before it sleeps.
    DozeMicroseconds,
    /// The most processes one steal takes.
    StealBatch,
    /// The victim rule, by its number in [`VictimRule`](crate::sched::VictimRule).
    VictimRule,
    /// The dispatch scheme, by its number in [`Dispatch`](crate::sched::Dispatch).
    Dispatch,
    /// The most processes that exist at once.
    ProcessLimit,
    /// How many timers a core fires at most before it looks at its queues again.
    TimersPerPass,
    /// How long before its moment an urgent timer has its core make way.
    LeadMicroseconds,
    /// The interval over which the three migration counts run.
    MigrationIntervalMicroseconds,
    /// How often one process may be moved by the balancer in an interval.
    MigrationsPerProcess,
    /// How many processes one core may take in an interval.
    MigrationsPerCore,
    /// How many processes all cores together may take in an interval.
    MigrationsSystemWide,
    /// Processes, counting the running one, that a core must have for the balancer to take from it.
    MigrationMinimumQueue,
    /// By how much of its own load a source must exceed the target.
    MigrationLoadDifferencePercent,
    /// How long a process must have waited before the balancer moves it.
    MigrationAgeMicroseconds,
    /// How long a process that has moved must have stayed.
    MigrationResidencyMicroseconds,
    /// How long a core waits before it takes from the same source again.
    MigrationCoolingMicroseconds,
    /// How often a busy core balances.
    BalanceMicroseconds,
    /// The same while more waits than there are cores.
    BalanceLoadedMicroseconds,
    /// The same while nothing waits anywhere.
    BalanceQuietMicroseconds,
    /// How long work waits before it may leave its core.
    ShareWaitMicroseconds,
    /// A mailbox with more messages than this may leave at once.
    ShareBacklog,
    /// A core where this many processes wait calls a thief at once.
    ShareProcesses,
    /// How often an idle core looks for work that may leave another before it sleeps until it is called.
    ShareLooks,
    /// How long the mail of one mailbox must keep a core busy for its hand-over to have paid.
    ShareWorthMicroseconds,
    /// How long all cores may stand still to find what crashed code owned on the heap; 0 leaves it there.
    CollectMicroseconds,
    /// How long a core may make no progress before the watchdog says so; 0: there is none.
    WatchdogMicroseconds,
    /// What the watchdog does then, by its number in [`WatchdogAction`](crate::sched::WatchdogAction).
    WatchdogAction,
}

/// Narrow numbers, because every image has all rows.
struct Row {
    setting: Setting,
    name: &'static str,
    default: u32,
    least: u32,
    most: u32,
}

const fn row(setting: Setting, name: &'static str, default: u32, least: u32, most: u32) -> Row {
    Row { setting, name, default, least, most }
}

const COUNT: usize = 32;

static ROWS: [Row; COUNT] = [
    row(Setting::SliceMicroseconds, "sched.slice_us", 1_000, 50, 1_000_000),
    // The BEAM's budget since OTP 20 (CONTEXT_REDS).
    row(Setting::Reductions, "sched.reductions", 4_000, 1, u32::MAX),
    // The BEAM's RESCHEDULE_LOW.
    row(Setting::NormalPerLow, "sched.normal_per_low", 8, 1, 1_000),
    row(Setting::RunNextTurns, "sched.run_next_turns", 3, 0, 1_000),
    row(Setting::Thieves, "sched.thieves", 1, 0, 64),
    row(Setting::DozeMicroseconds, "sched.doze_us", 20, 0, 10_000),
    row(Setting::StealBatch, "sched.steal_batch", 32, 1, 128),
    row(Setting::VictimRule, "sched.victim_rule", 3, 0, 4),
    row(Setting::Dispatch, "sched.dispatch", 2, 0, 2),
    // As many as the BEAM allows by default (1,048,576 since OTP 27).
    row(Setting::ProcessLimit, "sched.processes", 1 << 20, 16, 1 << 31),
    row(Setting::TimersPerPass, "sched.timers_per_pass", 64, 1, 100_000),
    row(Setting::LeadMicroseconds, "sched.lead_us", 2, 0, 20),
    row(Setting::MigrationIntervalMicroseconds, "migration.interval_us", 1_000_000, 1_000, 60_000_000),
    row(Setting::MigrationsPerProcess, "migration.per_process", 10, 0, u32::MAX),
    row(Setting::MigrationsPerCore, "migration.per_core", 1_000, 0, u32::MAX),
    row(Setting::MigrationsSystemWide, "migration.system_wide", 10_000, 0, u32::MAX),
    // The seed's threshold, read as the BEAM had to: the running process counts.
    row(Setting::MigrationMinimumQueue, "migration.minimum_queue", 2, 1, 1_000_000),
    // The seed's threshold.
    row(Setting::MigrationLoadDifferencePercent, "migration.load_difference_percent", 50, 0, 100),
    row(Setting::MigrationAgeMicroseconds, "migration.age_us", 500, 0, 60_000_000),
    row(Setting::MigrationResidencyMicroseconds, "migration.residency_us", 5_000, 0, 60_000_000),
    row(Setting::MigrationCoolingMicroseconds, "migration.cooling_us", 1_000, 0, 60_000_000),
    // The seed's three intervals.
    row(Setting::BalanceMicroseconds, "balance.interval_us", 10_000, 100, 60_000_000),
    row(Setting::BalanceLoadedMicroseconds, "balance.loaded_us", 5_000, 100, 60_000_000),
    row(Setting::BalanceQuietMicroseconds, "balance.quiet_us", 50_000, 100, 60_000_000),
    // These five by a sweep, see docs/performance.md.
    row(Setting::ShareWaitMicroseconds, "share.wait_us", 400, 1, 1_000_000),
    row(Setting::ShareBacklog, "share.backlog", 256, 0, u32::MAX),
    row(Setting::ShareProcesses, "share.processes", 16, 1, 1_000_000),
    row(Setting::ShareLooks, "share.looks", 4, 0, 32),
    row(Setting::ShareWorthMicroseconds, "share.worth_us", 50, 0, 1_000_000),
    row(Setting::CollectMicroseconds, "collect.pause_us", 1_000_000, 0, 600_000_000),
    // Looks come often enough for a hardware watchdog of 15 seconds.
    row(Setting::WatchdogMicroseconds, "watchdog.limit_us", 0, 0, 30_000_000),
    row(Setting::WatchdogAction, "watchdog.action", 0, 0, 2),
];

static VALUES: [AtomicU64; COUNT] = {
    let mut values = [const { AtomicU64::new(0) }; COUNT];
    let mut i = 0;
    while i < COUNT {
        assert!(ROWS[i].setting as usize == i, "rows stand in the order of the enum");
        values[i] = AtomicU64::new(ROWS[i].default as u64);
        i += 1;
    }
    values
};

/// Why a setting was not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SettingError {
    /// No setting has this name.
    Unknown,
    /// The value is outside the setting's range.
    OutOfRange {
        /// The least value allowed.
        least: u64,
        /// The greatest value allowed.
        most: u64,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no setting of that name"),
            Self::OutOfRange { least, most } => write!(f, "the value must be from {least} to {most}"),
        }
    }
}

impl core::error::Error for SettingError {}

/// A setting's value now, in the unit that its name says.
#[inline(always)]
pub fn get(setting: Setting) -> u64 {
    // Relaxed: one number, from which nothing else is inferred.
    VALUES[setting as usize].load(Ordering::Relaxed)
}

/// Changes a setting, from now on.
///
/// # Errors
/// [`SettingError::OutOfRange`]; then nothing has changed.
pub fn set(setting: Setting, value: u64) -> Result<(), SettingError> {
    let row = &ROWS[setting as usize];
    let (least, most) = (u64::from(row.least), u64::from(row.most));
    if !(least..=most).contains(&value) {
        return Err(SettingError::OutOfRange { least, most });
    }
    // Relaxed: as in `get`.
    VALUES[setting as usize].store(value, Ordering::Relaxed);
    Ok(())
}

/// Changes the setting called `name`, such as `sched.slice_us`.
///
/// # Errors
/// [`SettingError::Unknown`], or as [`set`].
pub fn set_by_name(name: &str, value: u64) -> Result<(), SettingError> {
    let row = ROWS.iter().find(|row| row.name == name).ok_or(SettingError::Unknown)?;
    set(row.setting, value)
}

/// Every setting's name and value now.
pub fn all() -> impl Iterator<Item = (&'static str, u64)> {
    ROWS.iter().map(|row| (row.name, get(row.setting)))
}

/// A setting in microseconds, as clock ticks.
// Once in an image: most who ask do not do so often.
#[inline(never)]
pub(crate) fn ticks(setting: Setting) -> u64 {
    ticks_inline(setting)
}

/// The same for interrupts, and what happens in each turn.
#[inline(always)]
pub(crate) fn ticks_inline(setting: Setting) -> u64 {
    get(setting) * clock::frequency() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::{ROWS, Setting, SettingError, all, get, set, set_by_name};

    #[test]
    fn a_setting_refuses_what_is_out_of_range_and_keeps_its_value() {
        let before = get(Setting::StealBatch);
        assert_eq!(set(Setting::StealBatch, 0), Err(SettingError::OutOfRange { least: 1, most: 128 }));
        assert_eq!(get(Setting::StealBatch), before);
    }

    #[test]
    fn settings_are_found_by_name() {
        assert_eq!(set_by_name("sched.nonsense", 1), Err(SettingError::Unknown));
        assert_eq!(set_by_name("sched.timers_per_pass", 65), Ok(()));
        assert!(all().any(|row| row == ("sched.timers_per_pass", 65)));
    }

    /// The guide's page has every setting, in order, with its default and its range, and no other.
    #[test]
    fn the_page_of_settings_has_every_row() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
        let page = std::fs::read_to_string(path).expect("the page is there");
        let shown: std::vec::Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(shown.len(), ROWS.len(), "the page has another number of settings");
        for (row, line) in ROWS.iter().zip(shown) {
            let start = std::format!("| `{}` | {} | {} | {} | ", row.name, row.default, row.least, row.most);
            assert!(line.starts_with(&start), "{line}\nshould begin with {start}");
        }
    }
}
