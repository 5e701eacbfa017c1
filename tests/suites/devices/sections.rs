//! What an interrupt wakes that has met a section without preemption: it is chosen for the next turn there, and the section may wake others, run out of
//! stack, or be the turn's last. How long it waits is in `urgent.rs`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::internals::sync::PreemptGuard;
use magpie::interrupt::Interrupt;
use magpie::sched::{self, JoinError, JoinHandle, Priority, Spawn};
use magpie::time;
use magpie_tests::{Failure, amount, comes, ensure, ensure_eq, kernel_test};

use crate::interrupts::{ask, cores, line};

/// The first of the lines of these tests.
const LINE: u32 = 10;

/// Who had a turn when.
#[derive(Default)]
struct Order {
    next: AtomicUsize,
}

/// A process that notes when its interrupts were told.
struct Driver {
    process: JoinHandle<()>,
    /// How many were told, above the place of the last in the order.
    seen: Arc<AtomicU64>,
}

impl Driver {
    fn start(index: u32, core: CoreId, priority: Priority, order: &Arc<Order>) -> Result<Self, Failure> {
        let mut interrupt = Interrupt::claim(line(LINE + index))?;
        interrupt.route(core)?;
        let seen = Arc::new(AtomicU64::new(0));
        let (notes, order) = (seen.clone(), order.clone());
        let process = Spawn::new().pinned(core).priority(priority).start(async move {
            while interrupt.wait().await.is_ok() {
                let place = order.next.fetch_add(1, Ordering::Relaxed) as u64;
                let told = (notes.load(Ordering::Relaxed) >> 32) + 1;
                notes.store(told << 32 | place, Ordering::Release);
            }
        })?;
        Ok(Self { process, seen })
    }

    fn told(&self) -> u64 {
        self.seen.load(Ordering::Acquire) >> 32
    }

    fn place(&self) -> u64 {
        self.seen.load(Ordering::Acquire) & 0xffff_ffff
    }

    async fn end(self) -> Result<(), Failure> {
        self.process.process().kill();
        ensure_eq!(self.process.await, Err(JoinError::Killed), "what a driver's handle says");
        Ok(())
    }
}

/// Has the interrupt come that was asked for.
fn let_it_come() {
    for _ in 0..100 {
        hint::spin_loop();
    }
}

kernel_test! {
    /// Something more urgent that comes in the same section goes before what was chosen, and that has its turn behind it.
    async fn what_is_more_urgent_goes_first() -> Outcome {
        let times = amount("interrupts", 100);
        for core in cores() {
            let order = Arc::new(Order::default());
            let high = Driver::start(0, core, Priority::High, &order)?;
            let max = Driver::start(1, core, Priority::Max, &order)?;
            let asks = Spawn::new().pinned(core).start(async move {
                for number in 1..=times {
                    comes(|| high.told() + 1 == number && max.told() + 1 == number, "one was not told").await?;
                    let section = PreemptGuard::new();
                    ask(LINE);
                    let_it_come();
                    ask(LINE + 1);
                    let_it_come();
                    ensure!(high.told() < number && max.told() < number, "one was told in the section");
                    drop(section);
                    ensure!(high.told() == number && max.told() == number, "one was not told at its end");
                    ensure!(max.place() < high.place(), "what is less urgent went first");
                }
                high.end().await?;
                max.end().await
            })?;
            asks.await??;
        }
        Ok(())
    }
}

kernel_test! {
    /// The section wakes somebody urgent itself, behind what was chosen in it: both have their turns at its end, in that order.
    async fn what_the_section_wakes_comes_behind_it() -> Outcome {
        let times = amount("interrupts", 100);
        for core in cores() {
            let order = Arc::new(Order::default());
            let driver = Driver::start(0, core, Priority::High, &order)?;
            let places = Arc::new(AtomicU64::new(0));
            let mut mailbox = ProcessMailbox::<u64>::new(4)?;
            let address = mailbox.address();
            let (noted, orders) = (places.clone(), order.clone());
            let woken = Spawn::new().pinned(core).priority(Priority::High).start(async move {
                while let Some(number @ 1..) = mailbox.receive().await {
                    let place = orders.next.fetch_add(1, Ordering::Relaxed) as u64;
                    noted.store(number << 32 | place, Ordering::Release);
                }
            })?;
            let asks = Spawn::new().pinned(core).start(async move {
                for number in 1..=times {
                    comes(|| driver.told() + 1 == number, "an interrupt was not told").await?;
                    let section = PreemptGuard::new();
                    ask(LINE);
                    let_it_come();
                    ensure!(address.send(number).is_ok(), "there is no room");
                    drop(section);
                    let place = places.load(Ordering::Acquire);
                    ensure_eq!(place >> 32, number, "messages received at the section's end");
                    ensure_eq!(driver.told(), number, "interrupts told at its end");
                    ensure!(driver.place() < place & 0xffff_ffff, "what was chosen went last");
                }
                address.send(0)?;
                driver.end().await
            })?;
            asks.await??;
            woken.await?;
        }
        Ok(())
    }
}

/// Needs some of the stack.
#[inline(never)]
fn descend(levels: u32) -> u32 {
    let room = hint::black_box([0_u8; 32]);
    if levels == 0 { u32::from(room[0]) } else { descend(levels - 1) + u32::from(hint::black_box(room)[1]) }
}

/// Asks in one section after another, each deeper in the stack, until one has no room.
#[inline(never)]
fn asks_in_sections(level: u32) -> u32 {
    let section = PreemptGuard::new();
    ask(LINE);
    let_it_come();
    let used = descend(30);
    drop(section);
    let deeper = if hint::black_box(level) < u32::MAX { asks_in_sections(level + 1) } else { 0 };
    used + hint::black_box(deeper)
}

kernel_test! {
    /// The section runs out of stack, and its process ends behind it: what was chosen has its turn all the same, and what comes afterwards.
    #[machine("stacks of its own")]
    async fn comes_though_the_stack_overflows_in_the_section() -> Outcome {
        let times = amount("overflows", 20);
        for core in cores() {
            let driver = Driver::start(0, core, Priority::High, &Arc::default())?;
            for _ in 0..times {
                let before = driver.told();
                let digs = Spawn::new().pinned(core).start(async { asks_in_sections(0) })?;
                ensure_eq!(digs.await, Err(JoinError::Crashed), "what its handle says");
                comes(|| driver.told() > before + 10, "too few interrupts were told").await?;
                // Whatever came last is told, too.
                let mut told = before;
                while driver.told() != told {
                    told = driver.told();
                    time::sleep(Duration::from_millis(1)).await;
                }
                ask(LINE);
                comes(|| driver.told() > told, "an interrupt was not told afterwards").await?;
            }
            driver.end().await?;
        }
        Ok(())
    }
}

/// Begins short processes and sends messages, most of which is done in sections, until it is told. What the sum is of what was sent.
async fn begins_and_sends(
    core: CoreId,
    address: ProcessAddr<u64>,
    is_over: Arc<AtomicBool>,
) -> Result<u64, Failure> {
    let mut sent = 0;
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let mut begun = Vec::new();
        for step in 0..number % 5 {
            let priority = if step % 2 == 0 { Priority::Max } else { Priority::Normal };
            begun.push(Spawn::new().pinned(core).priority(priority).start(async move { number + step })?);
            address.send(step + 1)?;
            sent += step + 1;
        }
        for (step, begun) in (0..).zip(begun) {
            ensure_eq!(begun.await, Ok(number + step), "what a short process says");
        }
        sched::yield_now().await;
    }
    address.send(0)?;
    Ok(sent)
}

kernel_test! {
    /// Interrupts for which another core asks come anywhere in turns that wake, begin and end others: each is told, and nobody is forgotten.
    #[cores(2)]
    async fn none_is_lost_among_wake_ups() -> Outcome {
        let times = amount("interrupts", 300);
        for core in cores() {
            let driver = Driver::start(0, core, Priority::High, &Arc::default())?;
            let mut mailbox = ProcessMailbox::<u64>::new(64)?;
            let address = mailbox.address();
            let echo = Spawn::new().pinned(core).priority(Priority::High).start(async move {
                let mut sum = 0;
                while let Some(number @ 1..) = mailbox.receive().await {
                    sum += number;
                }
                sum
            })?;
            let is_over = Arc::new(AtomicBool::new(false));
            let busy = Spawn::new().pinned(core).start(begins_and_sends(core, address, is_over.clone()))?;
            let other = cores().find(|other| *other != core).ok_or("there is one core")?;
            let asks = Spawn::new().pinned(other).start(async move {
                for number in 1..=times {
                    comes(|| driver.told() + 1 == number, "an interrupt was not told").await?;
                    for _ in 0..number * 37 % 400 {
                        hint::spin_loop();
                    }
                    ask(LINE);
                }
                comes(|| driver.told() == times, "the last interrupt was not told").await?;
                driver.end().await
            })?;
            let asked = asks.await;
            is_over.store(true, Ordering::Relaxed);
            let sent = busy.await??;
            asked??;
            ensure_eq!(echo.await, Ok(sent), "the sum of what was sent");
        }
        Ok(())
    }
}
