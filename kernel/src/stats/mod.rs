//! Statistics: what each core counted.
//!
//! A core's counters are written by that core alone, without atomic read-modify-writes, read by anyone, and
//! reset by nobody. Names follow the sources: the BEAM seed for processes, C∀ for mailboxes.
//!
//! ```
//! # use magpie::sched;
//! use magpie::arch::CoreId;
//! use magpie::stats::{self, Activity, Histogram};
//! # sched::run_on_threads(2, 1, async {
//! stats::set_timing(true);
//! sched::yield_now().await;
//!
//! // One core, and all.
//! let (core, worker) = (stats::core(CoreId::BOOT), stats::worker(CoreId::BOOT));
//! let turns = core.context_switches();
//! assert!(stats::total(|core| core.context_switches()) >= turns);
//! assert!(stats::worker_total(|worker| worker.messages_handled.get()) == 0);
//!
//! // How long processes wait in a queue, in clock ticks, and what the time goes to.
//! let waiting = &core.scheduling_latency;
//! assert!(waiting.mean() <= waiting.largest() && waiting.sum() >= waiting.count() * waiting.mean());
//! let idle = core.time.ticks(Activity::Idle);
//!
//! // The longest turn so far, and whose it was.
//! if let Some(turn) = core.longest_turn.get() {
//!     magpie::log::text!("{} ns in {}, process {:#x}", turn.nanoseconds(), turn.name, turn.place);
//! }
//! // The longest that it would have taken no interrupt: a thread takes its timer's alone.
//! let masked = core.longest_masked().map_or(0, |stretch| stretch.nanoseconds());
//!
//! // How many gulps took so many messages.
//! for (bucket, count) in worker.gulp_sizes.counts().into_iter().enumerate() {
//!     magpie::log::text!("from {} messages: {count}", Histogram::least(bucket));
//! }
//! # let _ = (idle, masked);
//! # stats::set_timing(false);
//! assert_eq!(stats::collections().finished, 0, "nothing has crashed");
//! # }).unwrap();
//! ```

mod activity;
mod counter;
mod details;
mod longest;
mod per_core;
mod table;
mod worst;

use crate::arch::atomic::{AtomicBool, Ordering};

pub use crate::mem::orphans::{Collections, collections};
pub use activity::{Activity, TimeSheet};
pub use counter::{Counter, Histogram, Summary};
pub use details::Details;
pub(crate) use longest::Name;
pub use longest::{Longest, Stretch};
pub use per_core::{CoreStatistics, WorkerStatistics, core, worker};
pub(crate) use per_core::{core_here, worker_by_number, worker_here};
pub use table::Table;
pub use worst::Worst;

/// Whether the times of single messages are taken, see [`set_timing`].
#[inline(always)]
pub(crate) fn timing() -> bool {
    // Relaxed: a switch for statistics.
    !cfg!(feature = "uncounted") && TIMING.load(Ordering::Relaxed)
}

/// Switches on or off what reads the clock for each gulp: how long mail waits in its mailbox
/// ([`WorkerStatistics::mail_latency`]). Off at the start.
pub fn set_timing(on: bool) {
    // Relaxed: as above.
    TIMING.store(on, Ordering::Relaxed);
}

static TIMING: AtomicBool = AtomicBool::new(false);

/// The sum of one of the schedulers' counters over all cores.
pub fn total(counter: impl Fn(&CoreStatistics) -> u64) -> u64 {
    cores().map(|id| counter(core(id))).sum()
}

/// The sum of one of the workers' counters over all cores.
pub fn worker_total(counter: impl Fn(&WorkerStatistics) -> u64) -> u64 {
    cores().map(|id| counter(worker(id))).sum()
}

fn cores() -> impl Iterator<Item = crate::arch::CoreId> {
    (0..crate::machine::cores()).filter_map(crate::arch::CoreId::new)
}
