//! Signals: messages that an interrupt sends. The device is the second timer of the core that the test's process is on, whose handler
//! raises what it is told to, as often as it is told to.

mod direct;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Addr, Bound, Config, Context, Executor, Receive, Signal, WhenFull};
use magpie::arch::CoreId;
use magpie::internals::arch::{gic, second_timer};
use magpie::sched::{self, ExternalSource, JoinHandle, Priority, Spawn};
use magpie::time::Instant;
use magpie::{machine, stats};
use magpie_boot::claim;
use magpie_tests::{Changed, Failure, HANGS_AFTER, amount, comes, ensure, ensure_eq, kernel_test};

/// What the device raises: all of those that are told of.
static SIGNALS: [Signal<u64>; 4] = [const { Signal::new() }; 4];
/// Which of them, as a mask.
static RAISED: AtomicU64 = AtomicU64::new(0);
/// How often each in one interrupt.
static TIMES: AtomicU64 = AtomicU64::new(0);
/// How many interrupts have come.
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);

fn on_interrupt() {
    second_timer::disarm();
    for _ in 0..TIMES.load(Ordering::Relaxed) {
        for (number, signal) in SIGNALS.iter().enumerate() {
            if RAISED.load(Ordering::Relaxed) >> number & 1 == 1 {
                signal.raise();
            }
        }
    }
    INTERRUPTS.fetch_add(1, Ordering::Release);
}

/// The right to interrupt. Dropped, nobody is told of anything.
struct Device(ExternalSource);

impl Device {
    /// That raises these signals, so many times at once.
    fn raising(mask: u64, times: u64) -> Result<Self, Failure> {
        ensure!(claim::claim(second_timer::INTERRUPT, on_interrupt), "somebody else has claimed a device");
        RAISED.store(mask, Ordering::Relaxed);
        TIMES.store(times, Ordering::Relaxed);
        Ok(Self(ExternalSource::new()))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        SIGNALS.iter().for_each(Signal::send_to_nobody);
        let _no_work = &self.0;
    }
}

/// Has this core interrupted at once, and waits until it was. For a process that is pinned to it.
fn interrupt() -> Result<(), Failure> {
    gic::enable_own(second_timer::INTERRUPT);
    let before = INTERRUPTS.load(Ordering::Acquire);
    second_timer::arm(Instant::now().ticks());
    holds(|| INTERRUPTS.load(Ordering::Acquire) != before, "the interrupt does not come")
}

/// Spins until it does.
fn holds(condition: impl Fn() -> bool, complaint: &'static str) -> Result<(), Failure> {
    let began = Instant::now();
    while !condition() {
        ensure!(began.elapsed() < HANGS_AFTER, "{complaint}");
        core::hint::spin_loop();
    }
    Ok(())
}

/// Adds up what it gets.
struct Counter {
    sum: Arc<AtomicU64>,
    crashes: bool,
}

impl Actor for Counter {}

impl Receive<u64> for Counter {
    type Reply = ();

    fn receive(&mut self, number: u64, _: &mut Context<Self>) {
        self.sum.fetch_add(number, Ordering::Release);
        if black_box(self.crashes) {
            panic!("on purpose");
        }
    }
}

fn counter(executor: &Executor, crashes: bool) -> Result<(Addr<Counter>, Arc<AtomicU64>), Failure> {
    let sum = Arc::new(AtomicU64::new(0));
    Ok((executor.handle().spawn(Counter { sum: sum.clone(), crashes })?, sum))
}

fn cores() -> impl Iterator<Item = CoreId> {
    (0..machine::cores()).filter_map(CoreId::new)
}

fn pinned<T: Send + 'static>(
    core: CoreId,
    priority: Priority,
    body: impl Future<Output = T> + Send + 'static,
) -> Result<JoinHandle<T>, Failure> {
    Ok(Spawn::new().pinned(core).priority(priority).start(body)?)
}

kernel_test! {
    /// Each interrupt of each core reaches the actor, whose worker is urgent or not, and whose core is asleep or not.
    async fn each_interrupt_sends_one_message() -> Outcome {
        for priority in [Priority::Normal, Priority::High] {
            let executor = Executor::start(&Config::default().priority(priority))?;
            let (address, sum) = counter(&executor, false)?;
            let device = Device::raising(1, 1)?;
            SIGNALS[0].send_to(address.recipient(), 3);
            let missed = SIGNALS[0].missed();
            for core in cores() {
                let sum = sum.clone();
                let interrupts = pinned(core, Priority::Normal, async move {
                    for _ in 0..amount("interrupts", 50) {
                        let before = sum.load(Ordering::Acquire);
                        interrupt()?;
                        comes(|| sum.load(Ordering::Acquire) == before + 3, "no message, or another").await?;
                    }
                    Ok::<_, Failure>(())
                })?;
                interrupts.await??;
            }
            ensure_eq!(SIGNALS[0].missed(), missed, "interrupts without a message of their own");
            drop(device);
            ensure_eq!(executor.stop().await, 0, "messages left over");
        }
        Ok(())
    }
}

kernel_test! {
    /// The core sleeps when the interrupt comes, and nobody else does anything.
    async fn an_interrupt_wakes_a_core_that_sleeps() -> Outcome {
        for priority in [Priority::Normal, Priority::High] {
            let executor = Executor::start(&Config::default().priority(priority))?;
            let (address, sum) = counter(&executor, false)?;
            let device = Device::raising(1, 1)?;
            SIGNALS[0].send_to(address.recipient(), 1);
        for core in cores() {
            for round in 1..20_u32 {
                let before = sum.load(Ordering::Acquire);
                let arms = pinned(core, Priority::Normal, async move {
                    gic::enable_own(second_timer::INTERRUPT);
                    let due = Instant::now() + core::time::Duration::from_micros(u64::from(round) * 7);
                    second_timer::arm(due.ticks());
                })?;
                arms.await?;
                // Sleeps, too, but for the looks.
                let began = Instant::now();
                while sum.load(Ordering::Acquire) == before {
                    ensure!(began.elapsed() < HANGS_AFTER, "the interrupt wakes nobody");
                    magpie::time::sleep(core::time::Duration::from_millis(1)).await;
                }
                ensure_eq!(sum.load(Ordering::Acquire), before + 1, "messages of one interrupt");
            }
        }
            drop(device);
            executor.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// Raised again and again in one interrupt, it is sent once; the others are counted.
    async fn a_storm_is_sent_once_and_counted() -> Outcome {
        const TIMES: u64 = 1000;
        let executor = Executor::start(&Config::default())?;
        let (address, sum) = counter(&executor, false)?;
        let device = Device::raising(1, TIMES)?;
        SIGNALS[0].send_to(address.recipient(), 1);
        for core in cores() {
            let sum = sum.clone();
            let interrupts = pinned(core, Priority::Normal, async move {
                for _ in 0..10 {
                    let (before, missed) = (sum.load(Ordering::Acquire), SIGNALS[0].missed());
                    interrupt()?;
                    comes(|| sum.load(Ordering::Acquire) != before, "no message").await?;
                    ensure_eq!(SIGNALS[0].missed() - missed, TIMES as u32 - 1, "those without a message");
                    ensure_eq!(sum.load(Ordering::Acquire), before + 1, "messages of one interrupt");
                }
                Ok::<_, Failure>(())
            })?;
            interrupts.await??;
        }
        drop(device);
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// What finds no room in the mailbox is left out and counted, whatever the mailbox's rule is, and what has come in order stays.
    async fn what_finds_no_room_is_counted() -> Outcome {
        let _long = Changed::no_preemption()?;
        for rule in [WhenFull::Refuse, WhenFull::DropNewest, WhenFull::DropOldest] {
            let config = Config::default().workers(1).mailboxes(1).bound(Bound::new(4, rule));
            let executor = Executor::start(&config)?;
            let (address, sum) = counter(&executor, false)?;
            let device = Device::raising(1, 1)?;
            SIGNALS[0].send_to(address.recipient(), 1_000_000);
            // More urgent than the worker, which has no turn meanwhile.
            let fills = pinned(CoreId::BOOT, Priority::Max, async move {
                let missed = SIGNALS[0].missed();
                for _ in 0..4 {
                    address.send(1)?;
                }
                for number in 1..5 {
                    interrupt()?;
                    sched::yield_now().await;
                    ensure_eq!(SIGNALS[0].missed() - missed, number, "messages that found no room");
                }
                Ok::<_, Failure>(())
            })?;
            fills.await??;
            drop(device);
            comes(|| sum.load(Ordering::Acquire) >= 4, "what had room does not come").await?;
            ensure_eq!(executor.stop().await, 0, "messages left over");
            ensure_eq!(sum.load(Ordering::Acquire), 4, "what came");
        }
        Ok(())
    }
}

kernel_test! {
    /// An actor that has ended, or that crashes when it is told, is told no more; the next one is.
    async fn who_has_ended_is_forgotten() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let device = Device::raising(1, 1)?;
        for round in 0..20 {
            let crashes = round % 2 == 0;
            let (address, sum) = counter(&executor, crashes)?;
            SIGNALS[0].send_to(address.recipient(), 1);
            let core = cores().nth(round % machine::cores()).ok_or("there is no such core")?;
            let told = pinned(core, Priority::Normal, async move {
                interrupt()?;
                comes(|| sum.load(Ordering::Acquire) == 1, "no message").await?;
                if !crashes {
                    address.send(magpie::actor::stop::End)?;
                }
                comes(|| !address.is_alive(), "the actor goes on").await?;
                ensure!(SIGNALS[0].has_recipient(), "it was forgotten before the next interrupt");
                interrupt()?;
                comes(|| !SIGNALS[0].has_recipient(), "who has ended is told").await?;
                interrupt()?;
                sched::yield_now().await;
                ensure_eq!(sum.load(Ordering::Acquire), 1, "messages that came");
                Ok::<_, Failure>(())
            })?;
            told.await??;
        }
        drop(device);
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// An urgent actor is told at once beside a process that never yields.
    #[machine("preemption")]
    async fn the_urgent_is_told_at_once() -> Outcome {
        let _long = Changed::no_preemption()?;
        let executor = Executor::start(&Config::default().priority(Priority::High))?;
        let device = Device::raising(1, 1)?;
        for core in cores() {
            let sum = Arc::new(AtomicU64::new(0));
            let address = executor.handle().spawn_pinned(core, Counter { sum: sum.clone(), crashes: false })?;
            SIGNALS[0].send_to(address.recipient(), 1);
            let spins = pinned(core, Priority::Normal, async move {
                let before = stats::total(|core| core.urgent_preemptions.get());
                for number in 1..=20 {
                    interrupt()?;
                    holds(|| sum.load(Ordering::Acquire) == number, "it is not told while this spins")?;
                }
                Ok::<_, Failure>(stats::total(|core| core.urgent_preemptions.get()) - before)
            })?;
            let preemptions = spins.await??;
            ensure!(preemptions >= 20, "{preemptions} preemptions for twenty messages");
        }
        drop(device);
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// One that is not urgent is told beside a process that never yields when the slice is over.
    #[machine("preemption")]
    async fn another_is_told_after_the_slice() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let device = Device::raising(1, 1)?;
        for core in cores() {
            let sum = Arc::new(AtomicU64::new(0));
            let address = executor.handle().spawn_pinned(core, Counter { sum: sum.clone(), crashes: false })?;
            SIGNALS[0].send_to(address.recipient(), 1);
            let spins = pinned(core, Priority::Normal, async move {
                for number in 1..=5 {
                    interrupt()?;
                    holds(|| sum.load(Ordering::Acquire) == number, "it is not told while this spins")?;
                }
                Ok::<_, Failure>(())
            })?;
            spins.await??;
        }
        drop(device);
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// From all cores at once, several signals each, whose recipients change meanwhile: each time it was raised a message came, or it
    /// was counted.
    async fn from_all_cores_at_once_none_is_lost() -> Outcome {
        let normal = Executor::start(&Config::default().bound(Bound::new(3, WhenFull::Refuse)))?;
        let urgent = Executor::start(&Config::default().priority(Priority::High))?;
        let mut counters = Vec::new();
        for signal in &SIGNALS {
            for executor in [&normal, &urgent] {
                counters.push(counter(executor, false)?);
            }
            signal.send_to(counters[counters.len() - 1].0.recipient(), 1);
        }
        let missed = || SIGNALS.iter().map(|signal| u64::from(signal.missed())).sum::<u64>();
        let (missed_before, interrupts_before) = (missed(), INTERRUPTS.load(Ordering::Acquire));
        let device = Device::raising(0b1111, 3)?;
        let addresses: Arc<Vec<_>> = Arc::new(counters.iter().map(|counter| counter.0).collect());
        let mut trying = Vec::new();
        for core in cores() {
            let addresses = addresses.clone();
            trying.push(pinned(core, Priority::Normal, async move {
                for round in 0..amount("interrupts", 200) as usize {
                    interrupt()?;
                    let place = (round + core.index()) % addresses.len();
                    SIGNALS[place / 2].send_to(addresses[place].recipient(), 1);
                    if round % 3 == 0 {
                        sched::yield_now().await;
                    }
                }
                Ok::<_, Failure>(())
            })?);
        }
        for process in trying {
            process.await??;
        }
        let raised = (INTERRUPTS.load(Ordering::Acquire) - interrupts_before) * 3 * SIGNALS.len() as u64;
        let received = || counters.iter().map(|counter| counter.1.load(Ordering::Acquire)).sum::<u64>();
        comes(|| received() + missed() - missed_before == raised, "one is lost, or came twice").await?;
        drop(device);
        ensure_eq!(normal.stop().await + urgent.stop().await, 0, "messages left over");
        ensure_eq!(received() + missed() - missed_before, raised, "messages, and what was counted");
        Ok(())
    }
}

kernel_test! {
    /// Raised by a process, it is sent at once; and nobody need be told.
    async fn raised_by_a_process() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let (address, sum) = counter(&executor, false)?;
        SIGNALS[3].raise();
        ensure!(!SIGNALS[3].has_recipient(), "somebody is told");
        SIGNALS[3].send_to(address.recipient(), 5);
        for _ in 0..100 {
            SIGNALS[3].raise();
        }
        comes(|| sum.load(Ordering::Acquire) == 500, "a message for each").await?;
        SIGNALS[3].send_to_nobody();
        SIGNALS[3].raise();
        executor.stop().await;
        ensure_eq!(sum.load(Ordering::Acquire), 500, "messages that came");
        Ok(())
    }
}
