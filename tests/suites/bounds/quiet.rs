//! What idle cores do while others hand lone messages around: next to nothing.
//!
//! What is counted are instructions of the guest's time, wake-ups and searches, in runs that repeat.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::sched::{self, Spawn};
use magpie::{machine, stats, time};
use magpie_tests::{Outcome, ensure, ensure_eq, kernel_test};

use crate::needs_counted_time;

/// Wake-ups of idle cores, and searches of thieves.
#[derive(Clone, Copy)]
struct Unrest {
    wakes: u64,
    searches: u64,
}

impl Unrest {
    fn now() -> Self {
        let searches = stats::total(|core| core.steal_attempts.get())
            + stats::worker_total(|worker| worker.mailbox_steal_attempts.get());
        Self { wakes: stats::total(|core| core.wake_latency.count()), searches }
    }

    /// At most one of each for every 200 messages, and a few at the beginning on each core.
    fn judge(self, messages: u64, what: &str) -> Outcome {
        let now = Self::now();
        let (wakes, searches) = (now.wakes - self.wakes, now.searches - self.searches);
        magpie::log::text!("{what}: {messages} messages, {wakes} wake-ups, {searches} searches");
        let most = messages / 200 + 4 * machine::cores() as u64;
        ensure!(wakes <= most, "{wakes} wake-ups for {messages} messages of {what}; bound {most}");
        ensure!(searches <= most, "{searches} searches for {messages} messages of {what}; bound {most}");
        Ok(())
    }
}

struct Token(u64);
struct Next(Addr<Link>);

struct Link(Option<Addr<Link>>);

impl Actor for Link {}

impl Receive<Next> for Link {
    type Reply = ();

    fn receive(&mut self, Next(next): Next, _: &mut Context<Self>) {
        self.0 = Some(next);
    }
}

impl Receive<Token> for Link {
    type Reply = ();

    fn receive(&mut self, Token(hops): Token, _: &mut Context<Self>) {
        if let Some(next) = self.0.filter(|_| hops > 0) {
            let _ = next.send(Token(hops - 1));
        }
    }
}

impl Receive<u64> for Link {
    type Reply = u64;

    fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        number + 1
    }
}

kernel_test! {
    /// A token goes round a ring with an actor in every mailbox of every worker.
    #[cores(2)]
    async fn a_lone_chain_wakes_nobody() -> Outcome {
        const HOPS: u64 = 20_000;
        needs_counted_time()?;
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let first = handle.spawn(Link(None))?;
        let mut next = first;
        for _ in 1..handle.mailboxes() {
            next = handle.spawn(Link(Some(next)))?;
        }
        first.send(Next(next))?;
        sched::out_of_work().await;
        let before = Unrest::now();
        first.send(Token(HOPS))?;
        sched::out_of_work().await;
        before.judge(HOPS, "a ring")?;
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A process asks one actor after the other, of all workers.
    #[cores(2)]
    async fn a_lone_asker_wakes_nobody() -> Outcome {
        const ASKS: u64 = 5_000;
        needs_counted_time()?;
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle().clone();
        let mut actors = Vec::new();
        for _ in 0..handle.mailboxes() {
            actors.push(handle.spawn(Link(None))?);
        }
        sched::out_of_work().await;
        let before = Unrest::now();
        let asker = Spawn::new().start(async move {
            let mut answers = 0;
            for ask in 0..ASKS {
                if actors[ask as usize % actors.len()].ask(ask).await == Ok(ask + 1) {
                    answers += 1;
                }
            }
            answers
        })?;
        ensure_eq!(asker.await, Ok(ASKS), "answers");
        before.judge(2 * ASKS, "an asker")?;
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// With nothing to do but for one core that is busy for long, the others look a few times and then sleep.
    #[cores(2)]
    async fn idle_cores_beside_a_busy_one_execute_nothing() -> Outcome {
        const BUSY: Duration = Duration::from_millis(50);
        needs_counted_time()?;
        let slept = || stats::total(|core| core.sleeps.get() + core.dozes.get());
        let stop = Arc::new(AtomicBool::new(false));
        let over = stop.clone();
        let hog = Spawn::new().start(async move {
            while !over.load(Ordering::Relaxed) {
                core::hint::spin_loop();
            }
        })?;
        // Whoever watches has stopped by then.
        time::sleep(BUSY).await;
        let before = slept();
        time::sleep(BUSY).await;
        let times = slept() - before;
        stop.store(true, Ordering::Relaxed);
        ensure!(hog.await.is_ok(), "the hog crashed");
        // This process's own core goes to sleep, and is woken when the time is over; it may then look a few times.
        let most = 16;
        magpie::log::text!("beside a busy core the others went to sleep {times} times in {} ms", BUSY.as_millis());
        ensure!(times <= most, "the others went to sleep {times} times; bound {most}");
        Ok(())
    }
}
