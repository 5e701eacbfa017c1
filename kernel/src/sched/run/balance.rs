//! The balancer: now and then a busy core compares loads and takes from a longer queue.
//!
//! It runs in each core's loop, reads the published lengths of the others without locking anything, and
//! pulls; nobody pushes. Every rule of the migration policy applies, because nothing here is urgent: idle cores steal
//! for themselves. How often it runs is in `policy/pace.rs`.
//!
//! A turn that never ends would keep its core from ever coming here while nothing else waits on it. So the end
//! of a slice is also a reason to suspend it when balancing is due and another core has at least two more.

use crate::arch::clock;
use crate::sched::cores::here::is_wanted_urgently;
use crate::sched::cores::{self, Core, ThisCore};
use crate::sched::place::{self, enqueue};
use crate::sched::policy::dispatch::{self, Dispatch};
use crate::sched::policy::migration::Urgency;
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::Priority;
use crate::sched::run::migrate::move_process;
use crate::sched::run::steal::take_in_steps;

/// Balances if it is time.
pub(crate) fn run_if_due(core: &ThisCore<'_>) {
    let now = clock::now();
    if now < core.pace.next() || cores::count() == 1 {
        return;
    }
    let waiting: u64 = cores::all().map(|other| other.queue.stealable() as u64).sum();
    core.pace.begin(now, waiting, cores::count() as u64);
    if waiting > 0 && dispatch::current() == Dispatch::Stealing {
        balance(core);
    }
}

/// Whether balancing is due, and another core has said at the end of a slice that it could give something. For the end of a
/// slice, in an interrupt: what each has is looked at by the loop.
pub(crate) fn is_called_for(core: &Core) -> bool {
    place::others_are_crowded(core)
        && clock::now() >= core.pace.next()
        && cores::online() & core.mask() != 0
        && dispatch::current() == Dispatch::Stealing
}

/// The core with the most load, if it could give something, and how many: half of the difference, so that the
/// next look does not find it the other way round.
fn source_for(core: &Core) -> Option<(&'static Core, usize)> {
    let own = core.load();
    // Each load is read once: it changes all the time.
    let others = cores::all().filter(|other| other.id() != core.id()).map(|other| (other.load(), other));
    let (load, source) = others.max_by_key(|(load, _)| *load)?;
    let most = (load.saturating_sub(own) / 2).min(settings::get(Setting::StealBatch));
    (most > 0).then_some((source, most as usize))
}

fn balance(core: &ThisCore<'_>) {
    let Some((source, most)) = source_for(core) else { return };
    core.statistics.balance_attempts.bump();
    let mut moved = 0;
    for priority in Priority::ALL {
        take_in_steps(core, source, priority, most, &mut |process| {
            match move_process(&process, source, core, Urgency::Balance) {
                Ok(()) => {
                    core.push(process);
                    moved += 1;
                }
                // The source may have gone to sleep meanwhile.
                Err(_) => enqueue::deliver(process, source),
            }
        });
        if moved > 0 || is_wanted_urgently(core.here()) {
            break;
        }
    }
    core.statistics.processes_balanced.add(moved);
    core.pace.judge(moved > 0);
}
