//! Runs a closure on every core at the same time, as the checks ask of their harness.
//!
//! One process is pinned to each core but the caller's; the caller's own core runs its share itself. The
//! caller must be pinned too, or it could be moved to a core whose process it then keeps waiting. A process
//! that spins is preempted like any other, so a core is never lost to one.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicUsize, Ordering};

use magpie::arch::CoreId;
use magpie::checks::{Body, Check, Cores};
use magpie::internals::arch::cpu;
use magpie::sched::Spawn;
use magpie::{log::text, machine, sched};
use magpie_tests::Outcome;

/// The seed of a run: from the boot arguments (`seed=N`), else 1, so that a run can be repeated.
pub fn seed() -> u64 {
    machine::argument("seed").and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Counts a core's share as ended, also when it panics.
struct Ended(&'static AtomicUsize);

impl Drop for Ended {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `on_each`: what a share did is seen by what runs after all.
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// Runs `body` on cores `0..count` at once; returns when all have returned. Called on core 0.
fn on_each(count: usize, body: &Body) {
    // SAFETY: the reference is used by the processes started below alone, each of which counts itself as ended
    // when it is done with it, and this function does not return before all have.
    let body: &'static Body<'static> = unsafe { core::mem::transmute(body) };
    // A few bytes a run are left behind: a process that is about to end still touches its count.
    let ended: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
    let mut handles = alloc::vec::Vec::new();
    for core in (1..count).filter_map(CoreId::new) {
        let share = async move {
            let _ended = Ended(ended);
            assert_eq!(sched::current_core(), Some(core), "a pinned process is on another core");
            body(core.index());
        };
        let Ok(handle) = Spawn::new().pinned(core).start(share) else {
            panic!("a pinned process was not started on core {}: raise the process limit", core.index());
        };
        handles.push(handle);
    }
    body(0);
    // Acquire: pairs with `Ended`.
    while ended.load(Ordering::Acquire) < count - 1 {
        give_way();
    }
}

/// Sleeps until the next interrupt, which is the slice's end at the latest. An emulator's core that spins takes the
/// host's processor from the one that it waits for, and `YIELD` and `WFE` do nothing about that where each core has a
/// thread of its own.
fn give_way() {
    cpu::wait_for_interrupt();
}

/// Runs the checks whose names begin with `prefix` on every core, `work` operations each.
pub async fn run(prefix: &'static str, work: usize) -> Outcome {
    let handle = Spawn::new().pinned(CoreId::BOOT).start(async move {
        let count = machine::cores();
        let mut ran = 0;
        for check in magpie::checks::all().into_iter().filter(|check| check.name.starts_with(prefix)) {
            ran += usize::from(run_one(check, count, work));
        }
        ran
    });
    let Ok(handle) = handle else { return Err("the checks were not started".into()) };
    match handle.await {
        Ok(0) if machine::cores() > 1 => Err("no check has that name".into()),
        Ok(_) => Ok(()),
        Err(_) => Err("a check panicked: its message is above".into()),
    }
}

/// Whether there were cores enough.
fn run_one(check: &Check, count: usize, work: usize) -> bool {
    if count < check.min_cores {
        return false;
    }
    text!("{} on {count}, work {work}, seed {}", check.name, seed());
    (check.body)(&Cores {
        count,
        work,
        seed: seed(),
        run: &|body| on_each(count, body),
        give_way: &give_way,
    });
    true
}
