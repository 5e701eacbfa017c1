//! The settings with their types: durations, rules, numbers. By name and as bare numbers, as boot arguments and the serial
//! line have them, they are in `settings.rs`.
//!
//! ```
//! use core::time::Duration;
//! use magpie::sched::{VictimRule, tuning};
//!
//! let before = tuning::SLICE.get();
//! tuning::SLICE.set(Duration::from_micros(200))?;
//! tuning::VICTIM_RULE.set(VictimRule::Load)?;
//! assert!(tuning::SLICE.set(Duration::from_secs(60)).is_err());
//! # tuning::SLICE.set(before)?;
//! # Ok::<(), magpie::sched::SettingError>(())
//! ```

use core::marker::PhantomData;
use core::time::Duration;

use super::dispatch::Dispatch;
use super::settings::{self, Setting, SettingError};
use super::victim::VictimRule;
use super::watchdog::WatchdogAction;

mod sealed {
    pub trait Number: Sized {
        fn into_number(self) -> u64;
        fn from_number(number: u64) -> Self;
    }
}

use sealed::Number;

impl Number for u64 {
    fn into_number(self) -> u64 {
        self
    }

    fn from_number(number: u64) -> Self {
        number
    }
}

impl Number for Duration {
    fn into_number(self) -> u64 {
        u64::try_from(self.as_micros()).unwrap_or(u64::MAX)
    }

    fn from_number(number: u64) -> Self {
        Self::from_micros(number)
    }
}

impl Number for VictimRule {
    fn into_number(self) -> u64 {
        self as u64
    }

    fn from_number(number: u64) -> Self {
        Self::ALL[number as usize % Self::ALL.len()]
    }
}

impl Number for Dispatch {
    fn into_number(self) -> u64 {
        self as u64
    }

    fn from_number(number: u64) -> Self {
        Self::of_number(number)
    }
}

impl Number for WatchdogAction {
    fn into_number(self) -> u64 {
        self as u64
    }

    fn from_number(number: u64) -> Self {
        Self::of_number(number)
    }
}

/// One setting of a type: a [`Duration`] in whole microseconds, a number, a rule.
#[derive(Clone, Copy, Debug)]
pub struct Tunable<T> {
    setting: Setting,
    value: PhantomData<fn() -> T>,
}

impl<T: Number> Tunable<T> {
    const fn of(setting: Setting) -> Self {
        Self { setting, value: PhantomData }
    }

    /// The value now. Another core may change it at any time.
    pub fn get(&self) -> T {
        T::from_number(settings::get(self.setting))
    }

    /// Changes it, from now on.
    ///
    /// # Errors
    /// [`SettingError::OutOfRange`], with the range; then nothing has changed.
    pub fn set(&self, value: T) -> Result<(), SettingError> {
        settings::set(self.setting, value.into_number())
    }
}

/// How long a process may run before the timer may preempt it.
pub const SLICE: Tunable<Duration> = Tunable::of(Setting::SliceMicroseconds);
/// Reductions a process has for one turn.
pub const REDUCTIONS: Tunable<u64> = Tunable::of(Setting::Reductions);
/// How many `Normal` processes run for each `Low` one while both wait.
pub const NORMAL_PER_LOW: Tunable<u64> = Tunable::of(Setting::NormalPerLow);
/// How many times in a row the process woken last may jump the queue.
pub const RUN_NEXT_TURNS: Tunable<u64> = Tunable::of(Setting::RunNextTurns);
/// How many cores may search for work to steal at once; 0 turns stealing off.
pub const THIEVES: Tunable<u64> = Tunable::of(Setting::Thieves);
/// How long an idle core dozes before it sleeps.
pub const DOZE: Tunable<Duration> = Tunable::of(Setting::DozeMicroseconds);
/// The most processes one steal takes.
pub const STEAL_BATCH: Tunable<u64> = Tunable::of(Setting::StealBatch);
/// How a thief chooses its victim.
pub const VICTIM_RULE: Tunable<VictimRule> = Tunable::of(Setting::VictimRule);
/// Where runnable processes wait. What waits already is still found where it is.
pub const DISPATCH: Tunable<Dispatch> = Tunable::of(Setting::Dispatch);
/// The most processes that exist at once.
pub const PROCESSES: Tunable<u64> = Tunable::of(Setting::ProcessLimit);
/// Timers fired, at most, before the core looks at its queues again.
pub const TIMERS_PER_PASS: Tunable<u64> = Tunable::of(Setting::TimersPerPass);
/// How long before its moment an urgent timer has its core make way, so that what it wakes begins on time; zero: it does not.
pub const LEAD: Tunable<Duration> = Tunable::of(Setting::LeadMicroseconds);
/// Over which time the three migration counts run.
pub const MIGRATION_INTERVAL: Tunable<Duration> = Tunable::of(Setting::MigrationIntervalMicroseconds);
/// How often one process may be moved by the balancer in an interval.
pub const MIGRATIONS_PER_PROCESS: Tunable<u64> = Tunable::of(Setting::MigrationsPerProcess);
/// How many processes one core may take in an interval.
pub const MIGRATIONS_PER_CORE: Tunable<u64> = Tunable::of(Setting::MigrationsPerCore);
/// How many processes all cores together may take in an interval.
pub const MIGRATIONS_SYSTEM_WIDE: Tunable<u64> = Tunable::of(Setting::MigrationsSystemWide);
/// Processes, counting the running one, that a core must have for the balancer to take from it.
pub const MIGRATION_MINIMUM_QUEUE: Tunable<u64> = Tunable::of(Setting::MigrationMinimumQueue);
/// By how much of its own load a source must exceed the target.
pub const MIGRATION_LOAD_DIFFERENCE_PERCENT: Tunable<u64> =
    Tunable::of(Setting::MigrationLoadDifferencePercent);
/// How long a process must have waited before the balancer moves it.
pub const MIGRATION_AGE: Tunable<Duration> = Tunable::of(Setting::MigrationAgeMicroseconds);
/// How long a process that has moved must have stayed.
pub const MIGRATION_RESIDENCY: Tunable<Duration> = Tunable::of(Setting::MigrationResidencyMicroseconds);
/// How long a core waits before it takes from the same source again.
pub const MIGRATION_COOLING: Tunable<Duration> = Tunable::of(Setting::MigrationCoolingMicroseconds);
/// How often a busy core balances.
pub const BALANCE: Tunable<Duration> = Tunable::of(Setting::BalanceMicroseconds);
/// The same while more waits than there are cores.
pub const BALANCE_LOADED: Tunable<Duration> = Tunable::of(Setting::BalanceLoadedMicroseconds);
/// The same while nothing waits anywhere.
pub const BALANCE_QUIET: Tunable<Duration> = Tunable::of(Setting::BalanceQuietMicroseconds);
/// How long work waits before it may leave its core.
pub const SHARE_WAIT: Tunable<Duration> = Tunable::of(Setting::ShareWaitMicroseconds);
/// A mailbox with more messages than this may leave at once.
pub const SHARE_BACKLOG: Tunable<u64> = Tunable::of(Setting::ShareBacklog);
/// A core where this many processes wait calls a thief at once.
pub const SHARE_PROCESSES: Tunable<u64> = Tunable::of(Setting::ShareProcesses);
/// How often an idle core looks for work that may leave another before it sleeps until it is called.
pub const SHARE_LOOKS: Tunable<u64> = Tunable::of(Setting::ShareLooks);
/// How long the mail of one mailbox must keep a core busy for its hand-over to have paid.
pub const SHARE_WORTH: Tunable<Duration> = Tunable::of(Setting::ShareWorthMicroseconds);
/// How long all cores may stand still to find what crashed code owned on the heap; zero leaves it there.
pub const COLLECT_PAUSE: Tunable<Duration> = Tunable::of(Setting::CollectMicroseconds);
/// How long a core may make no progress before the watchdog says so; zero: there is none.
pub const WATCHDOG_LIMIT: Tunable<Duration> = Tunable::of(Setting::WatchdogMicroseconds);
/// What the watchdog does then.
pub const WATCHDOG_ACTION: Tunable<WatchdogAction> = Tunable::of(Setting::WatchdogAction);

#[cfg(test)]
mod tests {
    use super::{Dispatch, Duration, Number, VictimRule, WatchdogAction};

    #[test]
    fn every_value_is_what_its_number_says() {
        for rule in VictimRule::ALL {
            assert_eq!(VictimRule::from_number(rule.into_number()), rule);
        }
        for scheme in [Dispatch::Global, Dispatch::PerCore, Dispatch::Stealing] {
            assert_eq!(Dispatch::from_number(scheme.into_number()), scheme);
        }
        for action in [WatchdogAction::Dump, WatchdogAction::Stop, WatchdogAction::Restart] {
            assert_eq!(WatchdogAction::from_number(action.into_number()), action);
        }
        assert_eq!(Duration::from_number(Duration::from_millis(3).into_number()), Duration::from_millis(3));
        assert_eq!(Duration::MAX.into_number(), u64::MAX);
    }
}
