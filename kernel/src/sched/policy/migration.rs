//! The migration policy: when a process may change cores.
//!
//! There are two kinds of moves. An *idle* core that steals keeps the system work-conserving: only the
//! affinity mask can refuse it. Every other rule exists to save cost, and an idle core is the greater cost (the BEAM
//! had to take back a rule that forgot this). The *balancer* moves work between busy cores, which is never urgent:
//! every rule applies, and each counts its refusals.

use crate::arch::atomic::{AtomicU64, Ordering};
use crate::arch::{CoreId, MAX_CORES};
use crate::sched::policy::settings::{self, Setting};

/// A rule of the migration policy, which may refuse to move a process to another core; in the order in which they are
/// asked. [`CoreStatistics::migrations_refused`](crate::stats::CoreStatistics::migrations_refused) counts by rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Rule {
    /// The process may not run on that core.
    Affinity,
    /// The source has too few processes, counting the one it runs.
    MinimumQueue,
    /// The source's load exceeds the target's by too little.
    LoadDifference,
    /// The process has not waited long enough.
    Age,
    /// The process has not been on its core for long enough.
    Residency,
    /// The process has moved too often in this interval.
    PerProcess,
    /// The target has taken too many in this interval.
    PerCore,
    /// The system has moved too many in this interval.
    SystemWide,
    /// The target has taken from this source too recently.
    Cooling,
}

impl Rule {
    /// How many there are.
    pub const COUNT: usize = 9;

    /// All, in the order in which they are asked.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Affinity,
        Self::MinimumQueue,
        Self::LoadDifference,
        Self::Age,
        Self::Residency,
        Self::PerProcess,
        Self::PerCore,
        Self::SystemWide,
        Self::Cooling,
    ];
}

/// Who wants to move a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Urgency {
    /// A core with nothing to run.
    Idle,
    /// The balancer, between busy cores.
    Balance,
}

/// Moves counted since the current interval began.
pub(crate) struct Window {
    began: AtomicU64,
    moves: AtomicU64,
}

impl Window {
    pub(crate) const fn new() -> Self {
        Self { began: AtomicU64::new(0), moves: AtomicU64::new(0) }
    }

    fn count(&self, now: u64, interval: u64) -> u64 {
        // Relaxed throughout: a rate limit; two cores that open a window at once cost one interval's
        // accuracy.
        if now.saturating_sub(self.began.load(Ordering::Relaxed)) >= interval {
            self.began.store(now, Ordering::Relaxed);
            self.moves.store(0, Ordering::Relaxed);
        }
        self.moves.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.moves.fetch_add(1, Ordering::Relaxed);
    }
}

static SYSTEM: Window = Window::new();

/// What a core remembers for the policy, as the target of moves.
pub(crate) struct TargetHistory {
    window: Window,
    last_from: [AtomicU64; MAX_CORES],
}

impl TargetHistory {
    pub(crate) fn new() -> Self {
        Self { window: Window::new(), last_from: [const { AtomicU64::new(0) }; MAX_CORES] }
    }
}

/// A move that somebody wants to make.
pub(crate) struct Wish {
    pub(crate) urgency: Urgency,
    pub(crate) from: CoreId,
    pub(crate) to: CoreId,
    /// The cores that the process may run on.
    pub(crate) affinity: u64,
    /// Loads, counting what runs, and the process itself at the source.
    pub(crate) source_load: u64,
    pub(crate) target_load: u64,
    /// The target's balancer scales the load difference by this many hundredths.
    pub(crate) scale: u64,
    /// When the process was enqueued, and when it last moved, in clock ticks.
    pub(crate) enqueued_at: u64,
    pub(crate) moved_at: u64,
    /// How often it has moved, ever.
    pub(crate) migrations: u32,
}

/// Asks every rule that applies. What the target remembers is `history`.
pub(crate) fn ask(wish: &Wish, history: &TargetHistory, now: u64) -> Result<(), Rule> {
    if wish.affinity & wish.to.mask() == 0 {
        return Err(Rule::Affinity);
    }
    if wish.urgency == Urgency::Idle {
        return Ok(());
    }
    let interval = settings::ticks(Setting::MigrationIntervalMicroseconds);
    let since_move = now.saturating_sub(wish.moved_at);
    let refuse = |rule: Rule, refused: bool| if refused { Err(rule) } else { Ok(()) };
    let source_load = wish.source_load;
    refuse(Rule::MinimumQueue, source_load < settings::get(Setting::MigrationMinimumQueue))?;
    let wanted = wanted_percent(settings::get(Setting::MigrationLoadDifferencePercent), wish.scale);
    let difference = (source_load - wish.target_load.min(source_load)) * 100;
    refuse(Rule::LoadDifference, difference <= source_load * wanted)?;
    let waited = now.saturating_sub(wish.enqueued_at);
    refuse(Rule::Age, waited < settings::ticks(Setting::MigrationAgeMicroseconds))?;
    let resident =
        wish.migrations == 0 || since_move >= settings::ticks(Setting::MigrationResidencyMicroseconds);
    refuse(Rule::Residency, !resident)?;
    // How often in its current interval, if that began within the last.
    let recent = if wish.moved_at < now.saturating_sub(interval) { 0 } else { u64::from(wish.migrations) };
    refuse(Rule::PerProcess, recent >= settings::get(Setting::MigrationsPerProcess))?;
    refuse(Rule::PerCore, history.window.count(now, interval) >= settings::get(Setting::MigrationsPerCore))?;
    refuse(Rule::SystemWide, SYSTEM.count(now, interval) >= settings::get(Setting::MigrationsSystemWide))?;
    // Relaxed: written by this core alone.
    let last = history.last_from[wish.from.index()].load(Ordering::Relaxed);
    let cooling =
        last != 0 && now.saturating_sub(last) < settings::ticks(Setting::MigrationCoolingMicroseconds);
    refuse(Rule::Cooling, cooling)
}

/// Remembers a move that was made.
pub(crate) fn record(history: &TargetHistory, from: CoreId, now: u64) {
    SYSTEM.add();
    history.window.add();
    // Relaxed: read by this core's own later questions.
    history.last_from[from.index()].store(now, Ordering::Relaxed);
}

/// The load difference asked for, after the balancer's adaptation: never more than half of the way from the
/// setting to 100 %. At 100 % no move is possible, so no success could ever bring the scale down again.
fn wanted_percent(setting: u64, scale: u64) -> u64 {
    // Who sets this wants none, however the balancer has adapted before.
    if setting == NO_MOVE_PERCENT {
        return setting;
    }
    (setting * scale / 100).min((setting + 100) / 2)
}

/// A load difference that there cannot be.
const NO_MOVE_PERCENT: u64 = 100;

#[cfg(test)]
mod tests {
    use super::wanted_percent;

    #[test]
    fn adaptation_never_asks_for_the_impossible() {
        for scale in [50, 100, 125, 200] {
            for setting in 0..100 {
                assert!(wanted_percent(setting, scale) < 100, "{setting} % at {scale}");
            }
        }
        assert_eq!((wanted_percent(50, 50), wanted_percent(50, 100), wanted_percent(50, 200)), (25, 50, 75));
    }

    #[test]
    fn the_setting_itself_may_forbid_every_move() {
        for scale in [50, 100, 200] {
            assert_eq!(wanted_percent(100, scale), 100, "at {scale}");
        }
    }
}
