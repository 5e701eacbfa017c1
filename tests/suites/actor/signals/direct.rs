//! Urgent actors on cores that sleep: what the interrupt's signal says becomes their worker's batch at once, and so does what a timer sends.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::internals::arch::{gic, second_timer};
use magpie::sched::{self, Priority};
use magpie::time::{self, Instant};
use magpie_tests::{Failure, HANGS_AFTER, HeapExhauster, amount, comes, ensure, ensure_eq, kernel_test};

use super::{Counter, Device, INTERRUPTS, SIGNALS, cores, counter, interrupt, pinned};

fn urgent() -> Result<Executor, Failure> {
    Ok(Executor::start(&Config::default().priority(Priority::High))?)
}

fn on_core(
    executor: &Executor,
    core: CoreId,
    crashes: bool,
) -> Result<(Addr<Counter>, Arc<AtomicU64>), Failure> {
    let sum = Arc::new(AtomicU64::new(0));
    Ok((executor.handle().spawn_pinned(core, Counter { sum: sum.clone(), crashes })?, sum))
}

/// The device interrupts this core so much later, whatever that does then.
async fn arm(core: CoreId, delay: Duration) -> Result<(), Failure> {
    let arms = pinned(core, Priority::Normal, async move {
        gic::enable_own(second_timer::INTERRUPT);
        second_timer::arm((Instant::now() + delay).ticks());
    })?;
    Ok(arms.await?)
}

/// Sleeps until it holds, but for the looks.
async fn slept_until(condition: impl Fn() -> bool, complaint: &'static str) -> Result<(), Failure> {
    let began = Instant::now();
    while !condition() {
        ensure!(began.elapsed() < HANGS_AFTER, "{complaint}");
        time::sleep(Duration::from_micros(300)).await;
    }
    Ok(())
}

kernel_test! {
    /// One interrupt raises four signals, for an actor twice, for its neighbour in the same mailbox, and for one in another.
    async fn several_at_once() -> Outcome {
        let executor = urgent()?;
        let device = Device::raising(0b1111, 1)?;
        for core in cores() {
            let (twice, neighbour) = (on_core(&executor, core, false)?, on_core(&executor, core, false)?);
            let other = counter(&executor, false)?;
            for (signal, (to, value)) in
                SIGNALS.iter().zip([(&twice, 1), (&neighbour, 10), (&other, 100), (&twice, 1000)])
            {
                signal.send_to(to.0.recipient(), value);
            }
            let sum = || [&twice, &neighbour, &other].map(|counter| counter.1.load(Ordering::Acquire)).iter().sum::<u64>();
            for round in 1..=amount("interrupts", 30) {
                arm(core, Duration::from_micros(round * 7)).await?;
                slept_until(|| sum() >= round * 1111, "a signal is lost").await?;
                ensure_eq!(sum(), round * 1111, "what has come");
            }
        }
        drop(device);
        ensure_eq!(executor.stop().await, 0, "messages left over");
        Ok(())
    }
}

kernel_test! {
    /// A behaviour crashes; who is told by the same interrupt, before it or behind it, is told all the same, and so is the next one by the next.
    async fn beside_one_that_crashes() -> Outcome {
        let executor = urgent()?;
        let device = Device::raising(0b11, 1)?;
        for core in cores() {
            let calm = on_core(&executor, core, false)?;
            for round in 1..=amount("interrupts", 20) {
                let crashes = on_core(&executor, core, true)?;
                let first = (round % 2) as usize;
                SIGNALS[first].send_to(crashes.0.recipient(), 1);
                SIGNALS[1 - first].send_to(calm.0.recipient(), 1);
                arm(core, Duration::from_micros(round * 11)).await?;
                let came = || calm.1.load(Ordering::Acquire) == round && crashes.1.load(Ordering::Acquire) == 1;
                slept_until(came, "somebody is not told beside a crash").await?;
                slept_until(|| !crashes.0.is_alive(), "who has crashed goes on").await?;
            }
        }
        drop(device);
        executor.stop().await;
        Ok(())
    }
}

/// Takes longer than a slice, until it is told to take no more.
struct Slow {
    begun: Arc<AtomicU64>,
    ended: Arc<AtomicU64>,
}

impl Actor for Slow {}

impl Receive<u64> for Slow {
    type Reply = ();

    fn receive(&mut self, _: u64, _: &mut Context<Self>) {
        self.begun.fetch_add(1, Ordering::Release);
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(3) {
            core::hint::spin_loop();
        }
        self.ended.fetch_add(1, Ordering::Release);
    }
}

kernel_test! {
    /// A behaviour outruns its slice, and is suspended; what comes for it meanwhile waits for it, and what comes for its neighbour does not.
    #[machine("preemption")]
    async fn beside_one_that_is_suspended() -> Outcome {
        let executor = urgent()?;
        let device = Device::raising(0b11, 1)?;
        for core in cores() {
            let calm = on_core(&executor, core, false)?;
            let (begun, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let slow =
                executor.handle().spawn_pinned(core, Slow { begun: begun.clone(), ended: ended.clone() })?;
            SIGNALS[0].send_to(slow.recipient(), 1);
            SIGNALS[1].send_to(calm.0.recipient(), 1);
            let rounds = amount("interrupts", 10);
            for round in 1..=rounds {
                let before = INTERRUPTS.load(Ordering::Acquire);
                arm(core, Duration::from_micros(round * 13)).await?;
                slept_until(|| INTERRUPTS.load(Ordering::Acquire) > before, "the interrupt does not come").await?;
            }
            slept_until(|| ended.load(Ordering::Acquire) == rounds, "a slow one is lost").await?;
            slept_until(|| calm.1.load(Ordering::Acquire) == rounds, "a calm one is lost").await?;
            ensure_eq!(begun.load(Ordering::Acquire), rounds, "slow ones that have begun");
        }
        drop(device);
        ensure_eq!(executor.stop().await, 0, "messages left over");
        Ok(())
    }
}

kernel_test! {
    /// Its executor is asked to stop while the interrupt comes: it ends, and the message was handled, is left over, or was not sent, and is never two of these.
    async fn while_its_executor_stops() -> Outcome {
        for core in cores() {
            for round in 0..amount("stops", 20) {
                let executor = urgent()?;
                let told = on_core(&executor, core, false)?;
                let device = Device::raising(1, 1)?;
                SIGNALS[0].send_to(told.0.recipient(), 1);
                let before = INTERRUPTS.load(Ordering::Acquire);
                arm(core, Duration::from_micros(20 + round * 5)).await?;
                if round % 4 == 3 {
                    time::sleep(Duration::from_micros(round * 5)).await;
                }
                let left = executor.stop().await;
                slept_until(|| INTERRUPTS.load(Ordering::Acquire) > before, "the interrupt does not come").await?;
                // Behind the loop's look at what was raised, or the next round's actor would be sent this message.
                pinned(core, Priority::Normal, async {})?.await?;
                let handled = told.1.load(Ordering::Acquire);
                ensure!(handled + left <= 1, "{handled} handled and {left} left over of one");
                ensure!(!told.0.is_alive(), "its actor outlives the executor");
                drop(device);
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// With memory used up each interrupt is told of all the same, by the segment that the mailbox keeps.
    async fn with_memory_used_up() -> Outcome {
        let executor = urgent()?;
        let device = Device::raising(1, 1)?;
        for core in cores() {
            let told = on_core(&executor, core, false)?;
            // The mailbox has a segment to keep from its first batch on.
            told.0.send(1000)?;
            slept_until(|| told.1.load(Ordering::Acquire) == 1000, "it does not begin").await?;
            SIGNALS[0].send_to(told.0.recipient(), 1);
            let missed = SIGNALS[0].missed();
            let interrupts = pinned(core, Priority::Normal, async move {
                let used_up = HeapExhauster::everything(16);
                for round in 1..=amount("interrupts", 50) {
                    interrupt()?;
                    comes(|| told.1.load(Ordering::Acquire) == 1000 + round, "no message").await?;
                }
                drop(used_up);
                Ok::<_, Failure>(())
            })?;
            interrupts.await??;
            ensure_eq!(SIGNALS[0].missed(), missed, "interrupts without a message");
        }
        drop(device);
        ensure_eq!(executor.stop().await, 0, "messages left over");
        Ok(())
    }
}

kernel_test! {
    /// What timers send comes beside what others send, each in its order, and all of it.
    async fn timers_beside_senders() -> Outcome {
        let executor = urgent()?;
        for core in cores() {
            let (address, sum) = on_core(&executor, core, false)?;
            let rounds = amount("rounds", 200);
            let sends = sched::spawn(async move {
                for round in 0..rounds {
                    address.send(1)?;
                    if round % 5 == 0 {
                        time::sleep(Duration::from_micros(20)).await;
                    }
                }
                Ok::<_, Failure>(())
            })?;
            for round in 0..rounds {
                // Its handle is dropped, which changes nothing.
                drop(address.send_after(Duration::from_micros(round % 50), 1000)?);
                if round % 10 == 0 {
                    time::sleep(Duration::from_micros(60)).await;
                }
            }
            sends.await??;
            slept_until(|| sum.load(Ordering::Acquire) >= rounds * 1001, "a message is lost").await?;
            ensure_eq!(sum.load(Ordering::Acquire), rounds * 1001, "what has come");
        }
        ensure_eq!(executor.stop().await, 0, "messages left over");
        Ok(())
    }
}
