//! Waits for a lock that is held for long, as where a host has suspended the core that holds it: who waits sleeps in between, and neither
//! the lock's release nor a timer is missed.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::internals::arch::irq;
use magpie::internals::sync::{PreemptGuard, SpinLock, SpinWait};
use magpie::sched::{Priority, Spawn};
use magpie::time::{self, Instant};
use magpie::{machine, sched};
use magpie_tests::{ensure, ensure_eq, kernel_test};

const HELD: Duration = Duration::from_millis(5);

fn others() -> impl Iterator<Item = CoreId> {
    (1..machine::cores()).filter_map(CoreId::new)
}

fn pass(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        spin_loop();
    }
}

/// What several wait for.
#[derive(Default)]
struct Shared {
    arrived: AtomicUsize,
    is_over: AtomicBool,
}

impl Shared {
    /// For a caller on the first core: waits until so many have come, and then for a while.
    fn hold(&self, comers: usize) {
        while self.arrived.load(Ordering::Acquire) < comers {
            spin_loop();
        }
        pass(HELD);
        self.is_over.store(true, Ordering::Release);
    }
}

kernel_test! {
    /// It looks again and again, and soon only some times every 15 microseconds, unless an interrupt comes.
    #[cores(2)]
    #[machine("sleep, where the host lets others run")]
    async fn who_waits_for_long_sleeps_in_between() -> Outcome {
        const AT_ONCE: u128 = 400;
        const LOOKS_AGAIN: u128 = 32;
        const SLEEP_MICROSECONDS: u128 = 15;
        let shared = Arc::new(Shared::default());
        let mut waiters = Vec::new();
        for core in others() {
            let shared = shared.clone();
            waiters.push(Spawn::new().pinned(core).start(async move {
                let _here = PreemptGuard::new();
                shared.arrived.fetch_add(1, Ordering::Release);
                let (began, mut wait, mut looks) = (Instant::now(), SpinWait::default(), 0);
                while !shared.is_over.load(Ordering::Acquire) {
                    wait.pause();
                    looks += 1;
                }
                (looks, began.elapsed())
            })?);
        }
        let comers = waiters.len();
        Spawn::new().pinned(CoreId::BOOT).start(async move { shared.hold(comers) })?.await?;
        for waiter in waiters {
            let (looks, time) = waiter.await?;
            // Twice as many sleeps, for those that an interrupt has ended.
            let most = AT_ONCE + 2 * LOOKS_AGAIN * (1 + time.as_micros() / SLEEP_MICROSECONDS);
            ensure!(looks <= most, "{looks} looks in {time:?}, not {most}");
        }
        Ok(())
    }
}

kernel_test! {
    /// All other cores wait for the same lock, one with interrupts masked, and have timers that become due meanwhile, and afterwards.
    #[cores(2)]
    async fn all_have_the_lock_in_the_end_and_no_timer_is_missed() -> Outcome {
        static LOCK: SpinLock<usize> = SpinLock::new(0);
        let before = *LOCK.lock();
        let shared = Arc::new(Shared::default());
        let (mut waiters, mut sleepers) = (Vec::new(), Vec::new());
        for core in others() {
            for length in [HELD / 5, HELD / 2, HELD + HELD / 2, 4 * HELD] {
                let sleeper = Spawn::new().pinned(core).priority(Priority::High);
                sleepers.push(sleeper.start(async move {
                    let began = Instant::now();
                    time::sleep(length).await;
                    began.elapsed() >= length
                })?);
            }
            let shared = shared.clone();
            waiters.push(Spawn::new().pinned(core).start(async move {
                // They get to sleep first.
                sched::yield_now().await;
                let _here = PreemptGuard::new();
                let is_deaf = cfg!(target_os = "none") && core.index() == 1;
                if is_deaf {
                    // SAFETY: unmasked below, in the same section.
                    unsafe { irq::disable() };
                }
                shared.arrived.fetch_add(1, Ordering::Release);
                *LOCK.lock() += 1;
                if is_deaf {
                    // SAFETY: masked above.
                    unsafe { irq::enable() };
                }
            })?);
        }
        let comers = waiters.len();
        let hold = async move {
            let held = LOCK.lock();
            shared.hold(comers);
            drop(held);
        };
        Spawn::new().pinned(CoreId::BOOT).start(hold)?.await?;
        for waiter in waiters {
            waiter.await?;
        }
        for sleeper in sleepers {
            ensure!(sleeper.await?, "a sleep ended early");
        }
        ensure_eq!(*LOCK.lock(), before + comers, "had the lock");
        Ok(())
    }
}

kernel_test! {
    /// All cores want a lock that is free for a moment only, for longer than anybody looks without a sleep: each has it as often as it wants, and nobody
    /// who has slept is left behind for good.
    async fn a_lock_that_is_hardly_ever_free_comes_to_all() -> Outcome {
        const TIMES: usize = 50;
        const EACH: Duration = Duration::from_micros(30);
        static WANTED: SpinLock<usize> = SpinLock::new(0);
        let before = *WANTED.lock();
        let mut all = Vec::new();
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            all.push(Spawn::new().pinned(core).start(async {
                for _ in 0..TIMES {
                    let mut wanted = WANTED.lock();
                    pass(EACH);
                    *wanted += 1;
                }
            })?);
        }
        let wanted = all.len() * TIMES;
        for one in all {
            one.await?;
        }
        ensure_eq!(*WANTED.lock(), before + wanted, "had the lock");
        Ok(())
    }
}
