//! The lock and the announcement: exclusion, and no lost wake-up.

use super::{Check, Cores};
use crate::arch::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sched::cores::idle_flag::{Depth, IdleFlag};
use crate::sync::SpinLock;

pub static ALL: &[Check] = &[
    Check { name: "spin_lock::one_holder", min_cores: 2, body: one_holder },
    Check { name: "idle_flag::no_lost_wake_up", min_cores: 2, body: no_lost_wake_up },
];

fn one_holder(cores: &Cores) {
    let counts = SpinLock::new((0_usize, 0_usize));
    let refused = AtomicUsize::new(0);
    (cores.run)(&|_| {
        for turn in 0..cores.work {
            let guard = if turn % 2 == 0 { Some(counts.lock()) } else { counts.try_lock() };
            let Some(mut guard) = guard else {
                refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            guard.0 += 1;
            assert_eq!(guard.0, guard.1 + 1, "two cores held the lock");
            guard.1 += 1;
        }
    });
    let total = counts.lock().0 + refused.load(Ordering::Relaxed);
    assert_eq!(total, cores.count * cores.work, "an update was lost");
}

/// Core 1 announces, looks and counts its losses; core 0 makes work visible and claims. In each round
/// either the look finds the work or the claim succeeds.
fn no_lost_wake_up(cores: &Cores) {
    let flag = IdleFlag::new();
    let work = AtomicU64::new(0);
    // How many rounds each side has finished, what the waker saw, and whether either gave up.
    let (waker_round, sleeper_round) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let claimed = AtomicU32::new(0);
    let gone = AtomicBool::new(false);
    // Acquire and release: the side that waits for the other's round sees what the other did in it.
    let wait = |round: &AtomicUsize, number| {
        let mut waiting = cores.waiting();
        while round.load(Ordering::Acquire) < number {
            assert!(!gone.load(Ordering::Relaxed), "the other side gave up");
            waiting.again();
        }
    };
    (cores.run)(&|core| {
        if core > 1 {
            return;
        }
        let gone = GoneOnPanic(&gone);
        for round in 1..=cores.work {
            if core == 0 {
                // Relaxed: `claim` brings the fence.
                work.store(round as u64, Ordering::Relaxed);
                claimed.store(u32::from(flag.claim().is_some()), Ordering::Relaxed);
                waker_round.store(round, Ordering::Release);
                wait(&sleeper_round, round);
            } else {
                flag.announce(if round % 2 == 0 { Depth::Doze } else { Depth::Sleep });
                // Relaxed: `announce` brought the fence.
                let found = work.load(Ordering::Relaxed) == round as u64;
                wait(&waker_round, round);
                let woken = claimed.load(Ordering::Relaxed) == 1;
                assert!(found || woken, "round {round}: the look missed the work and the waker the sleeper");
                assert_eq!(flag.retract(), woken, "round {round}: the flag and the waker disagree");
                sleeper_round.store(round, Ordering::Release);
            }
        }
        gone.stayed();
    });
}

/// Tells the other side when this one panics, so that it does not wait for ever.
struct GoneOnPanic<'a>(&'a AtomicBool);

impl GoneOnPanic<'_> {
    fn stayed(self) {
        core::mem::forget(self);
    }
}

impl Drop for GoneOnPanic<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
