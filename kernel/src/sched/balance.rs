//! The balancer: now and then a busy core compares loads and takes from a longer queue.
//!
//! It runs in each core's loop, reads the published lengths of the others without locking anything, and
//! pulls; nobody pushes. Every rule of the migration policy applies, for nothing here is urgent: idle
//! cores steal for themselves.
//!
//! How often: every 10 ms, 5 when more waits than there are cores, 50 when nothing waits anywhere, and
//! after every few spawns and exits. The interval and the load difference it asks for adapt to its
//! success, after the seed's rule: above 80 % it looks more often and asks for less, below 20 % the
//! reverse, each within bounds, in between it goes back towards the settings.
//!
//! A turn that never ends would keep its core from ever coming here while nothing else waits on it. So the end
//! of a slice is also a reason to suspend it when balancing is due and another core has at least two more.

use core::cell::Cell;

use super::cores::{self, Core};
use super::migration::{self, Urgency};
use super::priority::Priority;
use super::settings::{self, Setting};
use crate::arch::clock;

/// Attempts after which the success rate is judged.
const JUDGED_ATTEMPTS: u32 = 16;
/// Spawns and exits on one core after which it looks at once.
const EVENTS: u32 = 64;
/// The interval and the threshold are scaled by this many hundredths; 100 is neutral.
const LEAST_SCALE: u64 = 50;
const MOST_SCALE: u64 = 200;

/// A core's own balancing state; touched by its loop only.
pub(super) struct Balancer {
    next: Cell<u64>,
    attempts: Cell<u32>,
    successes: Cell<u32>,
    scale: Cell<u64>,
    events: Cell<u32>,
}

impl Balancer {
    pub(super) fn new() -> Self {
        Self {
            next: Cell::new(0),
            attempts: Cell::new(0),
            successes: Cell::new(0),
            scale: Cell::new(100),
            events: Cell::new(0),
        }
    }

    /// How the interval and the load difference are scaled now, in hundredths.
    pub(super) fn scale(&self) -> u64 {
        self.scale.get()
    }

    /// A process was spawned or has ended here.
    pub(super) fn note_event(&self) {
        let events = self.events.get() + 1;
        self.events.set(events % EVENTS);
        if events == EVENTS {
            self.next.set(0);
        }
    }

    fn judge(&self, success: bool) {
        let attempts = self.attempts.get() + 1;
        let successes = self.successes.get() + u32::from(success);
        if attempts < JUDGED_ATTEMPTS {
            self.attempts.set(attempts);
            self.successes.set(successes);
            return;
        }
        self.attempts.set(0);
        self.successes.set(0);
        self.scale.set(adapted(self.scale.get(), successes * 100 / attempts));
    }
}

/// The scale after a success rate in per cent.
fn adapted(scale: u64, rate: u32) -> u64 {
    let towards_neutral =
        if scale > 100 { (scale - scale / 10).max(100) } else { (scale + scale / 10).min(100) };
    match rate {
        81.. => (scale - scale / 5).max(LEAST_SCALE),
        20..=80 => towards_neutral,
        _ => (scale + scale / 4).min(MOST_SCALE),
    }
}

/// Balances if it is time.
pub(super) fn run_if_due(core: &Core) {
    let now = clock::now();
    if now < core.balancer.next.get() || cores::count() == 1 {
        return;
    }
    let waiting: u64 = cores::all().map(|other| other.queue.stealable() as u64).sum();
    let interval = match waiting {
        0 => Setting::BalanceQuietMicroseconds,
        waiting if waiting > cores::count() as u64 => Setting::BalanceLoadedMicroseconds,
        _ => Setting::BalanceMicroseconds,
    };
    core.balancer.next.set(now + settings::ticks(interval) * core.balancer.scale() / 100);
    if waiting > 0 && super::dispatch::current() == super::dispatch::Dispatch::Stealing {
        balance(core);
    }
}

/// Whether balancing is due, and a look at the loads says that it may move something here. For the end of a
/// slice.
pub(super) fn is_called_for(core: &Core) -> bool {
    clock::now() >= core.balancer.next.get()
        && cores::online() & core.id().mask() != 0
        && super::dispatch::current() == super::dispatch::Dispatch::Stealing
        && source_for(core).is_some()
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

fn balance(core: &Core) {
    let Some((source, most)) = source_for(core) else { return };
    core.statistics.balance_attempts.bump();
    let mut moved = 0;
    for priority in Priority::ALL {
        source.queue.of(priority).steal(most, |process| {
            // SAFETY: a process in hand is alive.
            let header = unsafe { process.as_ref() };
            match migration::move_process(header, source, core, Urgency::Balance) {
                Ok(()) => {
                    // SAFETY: this is the core's own loop.
                    unsafe { core.queue.push_own(process) };
                    moved += 1;
                }
                // The source may have gone to sleep meanwhile.
                Err(_) => super::enqueue::deliver(process, source),
            }
        });
        if moved > 0 {
            break;
        }
    }
    core.statistics.processes_balanced.add(moved);
    core.balancer.judge(moved > 0);
}

#[cfg(test)]
mod tests {
    use super::{LEAST_SCALE, MOST_SCALE, adapted};

    #[test]
    fn success_makes_it_look_more_often_and_failure_less_often() {
        assert!(adapted(100, 81) < 100);
        assert!(adapted(100, 19) > 100);
        assert_eq!(adapted(100, 50), 100);
    }

    #[test]
    fn it_returns_to_neutral_and_stays_in_bounds() {
        let mut scale = 100;
        for _ in 0..50 {
            scale = adapted(scale, 0);
        }
        assert_eq!(scale, MOST_SCALE);
        for _ in 0..50 {
            scale = adapted(scale, 50);
        }
        assert_eq!(scale, 100);
        for _ in 0..50 {
            scale = adapted(scale, 100);
        }
        assert_eq!(scale, LEAST_SCALE);
    }
}
