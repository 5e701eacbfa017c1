//! Timers that come again and again, used badly: periods of nothing and of for ever, more than a core can serve, more than there is
//! memory for, given up by those whom they call, sent to oneself and to mailboxes that are full.
#![forbid(unsafe_code)]

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::message::{SendError, SendInterval};
use magpie::sched::{self, JoinError, Priority, Spawn};
use magpie::time::{self, Instant, Missed};
use magpie_tests::{Failure, HeapExhauster, amount, ensure, ensure_eq, kernel_test};

use crate::not_started;
use crate::stacks::all_cores_are_well;

const LONGEST: Duration = Duration::MAX;
const SHORTEST: Duration = Duration::from_nanos(1);

/// Counts what it gets.
struct Counter(Arc<AtomicU64>);

impl Actor for Counter {}

impl Receive<u64> for Counter {
    type Reply = ();

    fn receive(&mut self, _: u64, _: &mut Context<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counter(executor: &Executor) -> Result<(Addr<Counter>, Arc<AtomicU64>), Failure> {
    let count = Arc::new(AtomicU64::new(0));
    Ok((executor.handle().spawn(Counter(count.clone()))?, count))
}

kernel_test! {
    /// A period of nothing is refused, and harms only who asks for it.
    async fn a_period_of_nothing_ends_who_asks() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let (address, count) = counter(&executor)?;
        for round in 0..3 {
            let asks = sched::spawn(async move {
                match round {
                    0 => drop(time::interval(Duration::ZERO)),
                    1 => drop(time::interval_at(Instant::now(), Duration::ZERO)),
                    _ => drop(address.send_interval(Duration::ZERO, 1)),
                }
            });
            ensure_eq!(asks.map_err(not_started)?.await, Err(JoinError::Crashed), "what the handle says");
        }
        executor.stop().await;
        ensure_eq!(count.load(Ordering::Relaxed), 0, "messages of such an interval");
        all_cores_are_well().await
    }
}

kernel_test! {
    /// The longest period never ends, the shortest leaves others their turns; and moments that have passed long ago come at once.
    async fn periods_of_every_size() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let (address, count) = counter(&executor)?;
        let longest = address.send_interval(LONGEST, 1)?;
        let mut ticking = time::interval(LONGEST);
        ensure!(time::timeout(Duration::from_micros(500), ticking.tick()).await.is_err(), "for ever is over");
        drop(ticking);
        ensure!(!longest.has_ended() && longest.missed() == 0, "the longest period has ended");
        longest.cancel();
        ensure_eq!(count.load(Ordering::Relaxed), 0, "messages after for ever");
        let began = Instant::now();
        time::sleep(Duration::from_millis(2)).await;
        let mut burst = time::interval_at(began, SHORTEST).when_missed(Missed::Burst);
        for number in 0..2_000 {
            ensure_eq!(burst.tick().await, began + SHORTEST * number, "when a tick of a burst was due");
        }
        let mut skip = time::interval_at(began, SHORTEST);
        ensure_eq!(skip.tick().await, began, "when the first of those that were missed was due");
        ensure!(skip.missed() >= 1_000_000, "{} ticks left out in two milliseconds", skip.missed());
        let past = address.send_at(began, 1)?;
        sched::out_of_work().await;
        ensure!(!past.is_pending(), "a message for a moment that has passed waits");
        ensure_eq!(count.load(Ordering::Relaxed), 1, "messages for a moment that has passed");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Always due: to a worker that is urgent, and to one that is not, beside whose messages everybody has turns.
    async fn the_shortest_period_leaves_turns_to_others() -> Outcome {
        for priority in [Priority::Normal, Priority::High] {
            let executor = Executor::start(&Config::default().priority(priority))?;
            let (address, count) = counter(&executor)?;
            // As urgent as what it gives up.
            let tries = Spawn::new().pinned(CoreId::BOOT).priority(priority).start(async move {
                let interval = address.send_interval(SHORTEST, 1)?;
                for _ in 0..500 {
                    sched::yield_now().await;
                }
                time::sleep(Duration::from_micros(300)).await;
                while count.load(Ordering::Relaxed) < 100 {
                    sched::yield_now().await;
                }
                interval.cancel();
                Ok::<_, Failure>(())
            })?;
            tries.await??;
            // It is over, though nothing said so to the receiver.
            sched::out_of_work().await;
            ensure_eq!(time::pending(), 0, "timers that are pending");
            ensure_eq!(executor.stop().await, 0, "messages left over");
        }
        all_cores_are_well().await
    }
}

/// Sends to itself again and again, and gives that up by the third message.
struct Oneself {
    interval: Option<SendInterval>,
    ticks: Arc<AtomicU64>,
    ends: bool,
}

impl Actor for Oneself {}

struct Begin(Duration);

impl Receive<Begin> for Oneself {
    type Reply = ();

    fn receive(&mut self, Begin(period): Begin, context: &mut Context<Self>) {
        self.interval = context.address().send_interval(period, ()).ok();
    }
}

impl Receive<()> for Oneself {
    type Reply = ();

    fn receive(&mut self, (): (), context: &mut Context<Self>) {
        let ticks = self.ticks.fetch_add(1, Ordering::Relaxed) + 1;
        if ticks == 3 {
            if let Some(interval) = self.interval.take() {
                interval.cancel();
            }
            if self.ends {
                context.end();
            }
        }
    }
}

kernel_test! {
    /// Given up by the behaviour that it calls, by an actor that goes on and by one that ends: nothing is left of it.
    async fn given_up_by_whom_it_calls() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for round in 0..60_u64 {
            let ticks = Arc::new(AtomicU64::new(0));
            let ends = round % 2 == 0;
            let actor = executor.handle().spawn(Oneself { interval: None, ticks: ticks.clone(), ends })?;
            actor.send(Begin(Duration::from_nanos(1 + round * 397)))?;
            sched::out_of_work().await;
            let had = ticks.load(Ordering::Relaxed);
            ensure!(had >= 3, "{had} ticks, and nothing goes on");
            ensure_eq!(time::pending(), 0, "timers that are pending");
            ensure_eq!(actor.is_alive(), !ends, "whether the actor lives");
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// To its own mailbox, which is full: what finds no room is left out and counted, takes no memory, and harms nobody.
    async fn to_a_mailbox_that_is_full() -> Outcome {
        let mut mailbox = ProcessMailbox::<u64>::new(1)?;
        ensure_eq!(mailbox.try_receive(), None, "what nobody has sent");
        let intervals: Vec<_> =
            (1..50).map(|number| mailbox.address().send_interval(Duration::from_micros(number), number))
                .collect::<Result<_, SendError<u64>>>()?;
        ensure!(mailbox.receive().await.is_some(), "the mailbox is closed");
        while intervals.iter().any(|interval| interval.missed() == 0) {
            sched::yield_now().await;
        }
        ensure!(mailbox.waiting() <= 1, "{} wait in a mailbox for one", mailbox.waiting());
        drop(mailbox);
        // They find nobody any more.
        sched::out_of_work().await;
        ensure!(intervals.iter().all(SendInterval::has_ended), "one goes on without a receiver");
        Ok(())
    }
}

kernel_test! {
    /// So many that the core cannot serve them: all are late all the time, and others have their turns and can give them up. Half of
    /// the handles are dropped, and the receiver ends those.
    async fn more_than_a_core_can_serve() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let (address, count) = counter(&executor)?;
        let (other, dropped) = counter(&executor)?;
        let number = amount("intervals", 5_000);
        let tries = Spawn::new().pinned(CoreId::BOOT).start(async move {
            let mut intervals = Vec::new();
            for place in 0..number {
                let period = Duration::from_nanos(1_000 + place % 1_000);
                intervals.push(address.send_interval(period, place)?);
                drop(other.send_interval(period, place)?);
            }
            for _ in 0..200 {
                sched::yield_now().await;
            }
            while count.load(Ordering::Relaxed) < number || dropped.load(Ordering::Relaxed) < number {
                sched::yield_now().await;
            }
            other.send(magpie::actor::stop::End)?;
            for interval in intervals {
                interval.cancel();
            }
            Ok::<_, Failure>(())
        })?;
        tries.await??;
        sched::out_of_work().await;
        ensure_eq!(time::pending(), 0, "timers that are pending");
        executor.stop().await;
        all_cores_are_well().await
    }
}

kernel_test! {
    /// Until memory is used up, again and again: the message comes back, those that were set can be given up, and give their memory
    /// back.
    async fn until_memory_is_used_up() -> Outcome {
        const MOST: usize = 50_000;
        let executor = Executor::start(&Config::default())?;
        let (address, count) = counter(&executor)?;
        let mut numbers = Vec::new();
        for _ in 0..3 {
            let tries = Spawn::new().pinned(CoreId::BOOT).start(async move {
                let mut intervals = Vec::new();
                if intervals.try_reserve_exact(MOST).is_err() {
                    return Err(Failure("there is no memory for a list".into()));
                }
                let exhauster = HeapExhauster::everything(1 << 14);
                while intervals.len() < MOST {
                    match address.send_interval(LONGEST, 7) {
                        Ok(interval) => intervals.push(interval),
                        Err(SendError::OutOfMemory(7)) => break,
                        Err(error) => return Err(Failure::from(error)),
                    }
                }
                let number = intervals.len();
                for interval in intervals {
                    interval.cancel();
                }
                drop(exhauster);
                Ok(number)
            })?;
            let number = tries.await??;
            ensure!(number < MOST, "memory was never used up");
            numbers.push(number);
            ensure_eq!(time::pending(), 0, "timers that are pending");
        }
        magpie::log::text!("intervals until memory was used up: {numbers:?}");
        ensure_eq!(count.load(Ordering::Relaxed), 0, "messages after for ever");
        executor.stop().await;
        all_cores_are_well().await
    }
}

kernel_test! {
    /// Set, dropped, given up and outlived by processes on all cores at once, while they fire.
    async fn from_every_core_at_once() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut trying = Vec::new();
        for number in 0..2 * magpie::machine::cores() as u64 {
            let (address, _) = counter(&executor)?;
            let stop = stop.clone();
            trying.push(Spawn::new().priority(if number % 2 == 0 { Priority::High } else { Priority::Low }).start(
                async move {
                    let mut kept = Vec::new();
                    for round in 0..200 {
                        let mut mailbox = ProcessMailbox::<u64>::new(2)?;
                        let period = Duration::from_nanos(1 + (round * 7919 + number * 31) % 50_000);
                        kept.push(address.send_interval(period, round)?);
                        drop(mailbox.address().send_interval(period, round)?);
                        if round % 3 == 0 {
                            ensure_eq!(mailbox.receive().await, Some(round), "what comes");
                        }
                        if round % 5 == 0 {
                            sched::yield_now().await;
                        }
                        if kept.len() > 3 {
                            kept.remove((round % 3) as usize).cancel();
                        }
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                    // The rest ends with its receiver.
                    address.send(magpie::actor::stop::End)?;
                    Ok::<_, Failure>(())
                },
            ).map_err(not_started)?);
        }
        let mut first = Ok(());
        for process in trying {
            let outcome = process.await.map_err(|_| Failure("one that tries crashed".into())).flatten();
            if outcome.is_err() && first.is_ok() {
                stop.store(true, Ordering::Relaxed);
                first = outcome;
            }
        }
        sched::out_of_work().await;
        first?;
        ensure_eq!(time::pending(), 0, "timers that are pending");
        executor.stop().await;
        all_cores_are_well().await
    }
}
