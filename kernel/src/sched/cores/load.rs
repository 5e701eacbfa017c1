//! Load monitoring: what waits, what each core spends its time on, how long processes wait, how many move.
//!
//! A [`LoadMonitor`] keeps what the counters said when it was last asked, so each [`Load`] is about the time in
//! between; any number of monitors may exist. Lengths are what the queues publish, read without a lock: right
//! when nothing changes, off by what is on its way otherwise. Nothing here slows a scheduler down.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::arch::CoreId;
use crate::mem::OutOfMemory;
use crate::sched::cores::{self, Core};
use crate::sched::process::Priority;
use crate::stats::Activity;
use crate::time::{Instant, of_ticks};

/// What one core was loaded with, during the time of a [`Load`] unless otherwise said.
///
/// ```
/// use magpie::sched::CoreLoad;
/// use magpie::stats::Activity;
/// /// Whether a core has done next to nothing.
/// fn is_bored(load: &CoreLoad) -> bool {
///     load.is_online && load.share(Activity::Idle) > 950
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreLoad {
    /// Which core.
    pub core: CoreId,
    /// Whether it takes work.
    pub is_online: bool,
    /// How many processes wait here now, by priority, the most urgent first.
    pub waiting: [usize; Priority::COUNT],
    /// Whether one runs now.
    pub is_busy: bool,
    /// How its time was spent, in parts per thousand, in the order of [`Activity::ALL`]; about 1000 in all.
    pub utilisation: [u32; Activity::ALL.len()],
    /// Turns that it gave to processes.
    pub turns: u64,
    /// How long those processes had waited in a queue, on average.
    pub mean_latency: Duration,
    /// The longest that one waited since the system started.
    pub longest_latency: Duration,
    /// Processes that it took from other cores, as a thief or by balancing, for each second.
    pub migrations_per_second: u64,
}

impl CoreLoad {
    /// Parts per thousand of its time that it spent so.
    pub fn share(&self, activity: Activity) -> u32 {
        self.utilisation[activity as usize]
    }
}

/// What all cores were loaded with; formats as a table. A [`LoadMonitor`] makes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// The time that it is about.
    pub during: Duration,
    /// Each core, in order.
    pub cores: Vec<CoreLoad>,
}

/// What a core's counters said.
#[derive(Clone, Copy, Default)]
struct Seen {
    ticks: [u64; Activity::ALL.len()],
    turns: u64,
    waits: u64,
    waited_ticks: u64,
    migrations: u64,
}

impl Seen {
    fn now(core: &Core) -> Self {
        let counted = core.statistics;
        Self {
            ticks: Activity::ALL.map(|activity| counted.time.ticks(activity)),
            turns: counted.context_switches(),
            waits: counted.scheduling_latency.count(),
            waited_ticks: counted.scheduling_latency.sum(),
            migrations: counted.processes_stolen.get() + counted.processes_balanced.get(),
        }
    }
}

/// Remembers what the counters said, to tell what has happened since.
///
/// ```
/// # use magpie::{sched, time};
/// use magpie::sched::LoadMonitor;
/// # sched::run_on_threads(2, 1, async {
/// let mut monitor = LoadMonitor::new()?;
/// sched::yield_now().await;
/// assert_eq!(monitor.sample()?.cores.len(), 2);
/// # Ok::<(), magpie::mem::OutOfMemory>(())
/// # }).unwrap().unwrap();
/// ```
pub struct LoadMonitor {
    since: Instant,
    seen: Vec<Seen>,
}

impl LoadMonitor {
    /// A monitor whose first answer is about the time from now on.
    ///
    /// # Errors
    /// When there is no memory for a few numbers of each core.
    pub fn new() -> Result<Self, OutOfMemory> {
        let mut seen = Vec::new();
        seen.try_reserve_exact(cores::count()).map_err(|_| OutOfMemory)?;
        seen.extend(cores::all().map(Seen::now));
        Ok(Self { since: Instant::now(), seen })
    }

    /// What the cores were loaded with since the last call, or since the monitor was made.
    ///
    /// # Errors
    /// When there is no memory for the answer; the next one then covers this time too.
    pub fn sample(&mut self) -> Result<Load, OutOfMemory> {
        let mut found = Vec::new();
        found.try_reserve_exact(self.seen.len()).map_err(|_| OutOfMemory)?;
        let now = Instant::now();
        let during = now - self.since;
        for (core, before) in cores::all().zip(&mut self.seen) {
            let after = Seen::now(core);
            found.push(describe(core, before, &after, during));
            *before = after;
        }
        self.since = now;
        Ok(Load { during, cores: found })
    }
}

/// How many processes wait on a core, by priority.
pub fn waiting(core: CoreId) -> [usize; Priority::COUNT] {
    cores::get(core.index()).map_or([0; Priority::COUNT], |core| core.queue.waiting_by_priority())
}

fn describe(core: &Core, before: &Seen, after: &Seen, during: Duration) -> CoreLoad {
    // Counters are read one by one while their core goes on, so do not rely on one being above another.
    let since = |after: u64, before: u64| after.saturating_sub(before);
    let spent: [u64; Activity::ALL.len()] =
        core::array::from_fn(|index| since(after.ticks[index], before.ticks[index]));
    let all = spent.iter().sum::<u64>().max(1);
    let waits = since(after.waits, before.waits);
    let waited = since(after.waited_ticks, before.waited_ticks);
    let migrations = since(after.migrations, before.migrations);
    CoreLoad {
        core: core.id(),
        is_online: cores::online() & core.mask() != 0,
        waiting: core.queue.waiting_by_priority(),
        is_busy: core.in_turn.is_in(),
        utilisation: spent.map(|ticks| (ticks * 1000 / all) as u32),
        turns: since(after.turns, before.turns),
        mean_latency: of_ticks(waited.checked_div(waits).unwrap_or(0)),
        longest_latency: of_ticks(core.statistics.scheduling_latency.largest()),
        migrations_per_second: migrations.saturating_mul(1_000_000) / microseconds(during).max(1),
    }
}

/// In a word: to divide and to print more takes much code.
fn microseconds(duration: Duration) -> u64 {
    duration.as_micros() as u64
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "load during {} ms", microseconds(self.during) / 1000)?;
        write!(
            f,
            "core    max   high normal    low  busy%  steal%  idle%  irq%     turns  wait-us  longest-us  moved/s"
        )?;
        for core in &self.cores {
            write!(f, "\n{:>4}", core.core.index())?;
            for waiting in core.waiting {
                write!(f, " {waiting:>6}")?;
            }
            let percent = |activity| core.share(activity) / 10;
            write!(
                f,
                " {:>6} {:>7} {:>6} {:>5} {:>9} {:>8} {:>11} {:>8}{}",
                percent(Activity::Running),
                percent(Activity::Stealing),
                percent(Activity::Idle),
                percent(Activity::Interrupt),
                core.turns,
                microseconds(core.mean_latency),
                microseconds(core.longest_latency),
                core.migrations_per_second,
                if core.is_online { "" } else { "  offline" },
            )?;
        }
        Ok(())
    }
}
