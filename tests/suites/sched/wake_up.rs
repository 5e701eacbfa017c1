//! No wake-up is lost, and the end of work is noticed, neither early nor late.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Poll, Waker};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::internals::arch::{cpu, ipi};
use magpie::internals::sync::SpinLock;
use magpie::sched::{self, Priority, Spawn, yield_now};
use magpie::{machine, time};
use magpie_tests::{Outcome, amount, ensure, ensure_eq, kernel_test};

/// A counter that can be awaited.
struct Signal {
    value: AtomicU64,
    waiting: SpinLock<Option<Waker>>,
}

impl Signal {
    fn new() -> Arc<Self> {
        Arc::new(Self { value: AtomicU64::new(0), waiting: SpinLock::new(None) })
    }

    fn raise(&self, value: u64) {
        self.value.store(value, Ordering::Release);
        let waker = self.waiting.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    async fn reaches(&self, value: u64) {
        poll_fn(|context| {
            let mut waiting = self.waiting.lock();
            if self.value.load(Ordering::Acquire) >= value {
                return Poll::Ready(());
            }
            *waiting = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Two processes on two cores wake each other so many times.
async fn back_and_forth(rounds: u64) -> Outcome {
    let (there, back) = (Signal::new(), Signal::new());
    let Some(far) = CoreId::new(machine::cores() - 1) else { return Err("no such core".into()) };
    let (a, b) = (there.clone(), back.clone());
    let ponger = Spawn::new().pinned(far).start(async move {
        for round in 1..=rounds {
            a.reaches(round).await;
            b.raise(round);
        }
    })?;
    let pinger = Spawn::new().pinned(CoreId::BOOT).start(async move {
        for round in 1..=rounds {
            there.raise(round);
            back.reaches(round).await;
        }
    })?;
    for handle in [ponger, pinger] {
        ensure!(handle.await.is_ok(), "a process crashed");
    }
    Ok(())
}

kernel_test! {
    /// Each core goes idle in between, so the wake-up hits the moment of going idle again and again.
    #[cores(2)]
    async fn no_wake_up_is_lost_between_two_cores() -> Outcome {
        back_and_forth(amount("wakeups", 50_000)).await
    }
}

/// The same among interrupts sent twice and for nothing, and events that end a doze early, from every core all the time.
async fn back_and_forth_in_a_storm(rounds: u64) -> Outcome {
    let stop = Arc::new(AtomicU64::new(0));
    let mut storms = Vec::new();
    for core in (0..machine::cores()).filter_map(CoreId::new) {
        let seen = stop.clone();
        let storm = Spawn::new().pinned(core).priority(Priority::Low).start(async move {
            let mut next = core.index();
            while seen.load(Ordering::Relaxed) == 0 {
                next = (next * 5 + 3) % machine::cores();
                if let Some(target) = CoreId::new(next) {
                    ipi::send(target);
                    ipi::send(target);
                }
                cpu::send_event();
                time::sleep(Duration::from_micros(50)).await;
            }
        });
        storms.push(storm?);
    }
    let outcome = back_and_forth(rounds).await;
    stop.store(1, Ordering::Relaxed);
    for storm in storms {
        ensure!(storm.await.is_ok(), "a storm crashed");
    }
    outcome
}

kernel_test! {
    /// Nor among wake-ups that nobody asked for.
    #[cores(2)]
    async fn no_wake_up_is_lost_in_a_storm_of_them() -> Outcome {
        back_and_forth_in_a_storm(amount("wakeups", 50_000) / 5).await
    }
}

#[cfg(feature = "forced-failure")]
kernel_test! {
    /// Nor when interrupts come late, with and without a storm, and stores fail besides: by then the core may have been
    /// woken otherwise, have worked, and sleep again.
    #[cores(2)]
    async fn no_wake_up_is_lost_when_interrupts_come_late() -> Outcome {
        use magpie::internals::arch::forced_failure;
        let rounds = amount("wakeups", 50_000) / 10;
        let before = (forced_failure::lingered(), forced_failure::forced());
        forced_failure::set_period(5);
        let mut outcome = Ok(());
        for most in [100, 10_000] {
            forced_failure::set_lingering(most);
            outcome = outcome.and(back_and_forth(rounds).await);
            outcome = outcome.and(back_and_forth_in_a_storm(rounds).await);
        }
        forced_failure::set_lingering(0);
        forced_failure::set_period(0);
        outcome?;
        ensure!(forced_failure::lingered() != before.0, "no interrupt was late");
        ensure!(forced_failure::forced() != before.1, "no store failed");
        Ok(())
    }
}

kernel_test! {
    /// `out_of_work` resolves when all that was started has ended, including what sleeps.
    async fn out_of_work_is_never_early() -> Outcome {
        for round in 0..20 {
            let left = Arc::new(AtomicU64::new(0));
            let mut handles = Vec::new();
            for i in 0..50u64 {
                left.fetch_add(1, Ordering::Relaxed);
                let left = left.clone();
                let handle = sched::spawn(async move {
                    yield_now().await;
                    if i % 10 == 0 {
                        time::sleep(Duration::from_millis(2)).await;
                    }
                    left.fetch_sub(1, Ordering::Relaxed);
                });
                let Ok(handle) = handle else { return Err("a process was not started".into()) };
                handles.push(handle);
            }
            sched::out_of_work().await;
            ensure_eq!(left.load(Ordering::Relaxed), 0, "processes left in round {round}");
        }
        Ok(())
    }
}

kernel_test! {
    /// A sleeper is not woken early, and sleepers on every core are all woken.
    async fn sleepers_wake_in_time() -> Outcome {
        let mut handles = Vec::new();
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            for milliseconds in [1u64, 3, 7] {
                let handle = Spawn::new().pinned(core).start(async move {
                    let begin = time::Instant::now();
                    time::sleep(Duration::from_millis(milliseconds)).await;
                    begin.elapsed() >= Duration::from_millis(milliseconds)
                });
                let Ok(handle) = handle else { return Err("a process was not started".into()) };
                handles.push(handle);
            }
        }
        for handle in handles {
            ensure_eq!(handle.await, Ok(true), "whether the sleeper slept long enough");
        }
        Ok(())
    }
}
