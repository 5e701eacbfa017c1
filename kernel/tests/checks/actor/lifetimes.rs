//! How actors end: each outcome, by message, with their executor; and how the living are counted.

use super::{Dropped, Verdict, count, counter, ensure, equal, failed, start};
use crate::actor::{Actor, Config, Context, Executor, NotSpawned, Receive, SendError, stop};
use crate::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sched;
use alloc::sync::Arc;

struct Mortal {
    _dropped: Dropped,
}

impl Actor for Mortal {}

/// What a behaviour says becomes of its actor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Say {
    Nothing,
    End,
    Vacate,
    Retire,
}

impl Receive<Say> for Mortal {
    type Reply = ();

    fn receive(&mut self, word: Say, context: &mut Context<Self>) {
        // The last word counts.
        if word != Say::Nothing {
            context.end();
            context.retire();
        }
        match word {
            Say::Nothing => {}
            Say::End => context.end(),
            Say::Vacate => context.vacate(),
            Say::Retire => context.retire(),
        }
    }
}

impl Receive<Dropped> for Mortal {
    type Reply = ();

    fn receive(&mut self, _: Dropped, _: &mut Context<Self>) {}
}

pub(super) async fn each_outcome_drops_once(_work: u64) -> Verdict {
    for (word, at_once) in [(Say::Nothing, 0), (Say::End, 1), (Say::Vacate, 1), (Say::Retire, 0)] {
        let executor = start()?;
        let drops = counter();
        let actor = executor.handle().spawn(Mortal { _dropped: Dropped(drops) }).map_err(failed)?;
        actor.send(word).map_err(failed)?;
        sched::out_of_work().await;
        equal(count(drops), at_once, "drops after the behaviour")?;
        equal(actor.is_alive(), word == Say::Nothing, "alive after the behaviour")?;
        equal(executor.handle().live_actors(), u64::from(word == Say::Nothing), "actors that live")?;
        executor.stop().await;
        equal(count(drops), 1, "drops after the executor was stopped")?;
    }
    Ok(())
}

pub(super) async fn stop_messages_end_actors(_work: u64) -> Verdict {
    let executor = start()?;
    let drops = counter();
    let spawn = || executor.handle().spawn(Mortal { _dropped: Dropped(drops) }).map_err(failed);
    spawn()?.send(stop::End).map_err(failed)?;
    spawn()?.send(stop::Vacate).map_err(failed)?;
    let retired = spawn()?;
    retired.send(stop::Retire).map_err(failed)?;
    executor.all_ended().await;
    equal(count(drops), 2, "drops of those that ended and that vacated")?;
    ensure!(retired.take().is_some(), "the retired actor's state was there");
    equal(count(drops), 3, "drops with that of the retired")?;
    executor.stop().await;
    equal(count(drops), 3, "drops after the executor was stopped")
}

/// Keeps its core busy until many messages wait behind the one it handles; then asks for the end.
struct Blocker {
    mail: &'static AtomicU64,
    _dropped: Dropped,
}

impl Actor for Blocker {}

impl Receive<Dropped> for Blocker {
    type Reply = ();

    fn receive(&mut self, message: Dropped, context: &mut Context<Self>) {
        // More comes out of each message than goes in: the mailbox is never empty at the end.
        for _ in 0..2 {
            // Counted whether it is accepted or comes back, for it is dropped once either way.
            self.mail.fetch_add(1, Ordering::Relaxed);
            let _ = context.address().send(Dropped(message.0));
        }
    }
}

pub(super) async fn undelivered_mail_is_dropped_once(_work: u64) -> Verdict {
    let executor = Executor::start(&Config::default().reductions(100)).map_err(failed)?;
    let (made, drops, ends) = (counter(), counter(), counter());
    for _ in 0..10 {
        let blocker = Blocker { mail: made, _dropped: Dropped(ends) };
        let blocker = executor.handle().spawn(blocker).map_err(failed)?;
        made.fetch_add(1, Ordering::Relaxed);
        blocker.send(Dropped(drops)).map_err(failed)?;
    }
    while count(made) < 2000 {
        sched::yield_now().await;
    }
    let left = executor.stop().await;
    ensure!(left > 0, "mail was left when the executor stopped");
    equal(count(drops), count(made), "messages dropped, of those made")?;
    equal(count(ends), 10, "actors dropped")
}

/// Begets others, of which each does the same with less.
struct Parent {
    handled: &'static AtomicU64,
}

impl Actor for Parent {}

impl Receive<u32> for Parent {
    type Reply = ();

    fn receive(&mut self, depth: u32, context: &mut Context<Self>) {
        for _ in 0..2 {
            if depth > 0
                && let Ok(child) = context.spawn(Self { handled: self.handled })
            {
                let _ = child.send(depth - 1);
            }
        }
        self.handled.fetch_add(1, Ordering::Relaxed);
        context.end();
    }
}

pub(super) async fn the_count_of_the_living_is_never_early(_work: u64) -> Verdict {
    let executor = start()?;
    for round in 1..=20_u64 {
        let handled = counter();
        let parent = executor.handle().spawn(Parent { handled }).map_err(failed)?;
        parent.send(8_u32).map_err(failed)?;
        executor.all_ended().await;
        equal(count(handled), (1 << 9) - 1, "actors that had ended when none was left")
            .map_err(|error| alloc::format!("round {round}: {error}"))?;
    }
    executor.stop().await;
    Ok(())
}

pub(super) async fn handles_outlive_their_executor(_work: u64) -> Verdict {
    let executor = start()?;
    let handle = executor.handle().clone();
    let drops = counter();
    let actor = handle.spawn(Mortal { _dropped: Dropped(drops) }).map_err(failed)?;
    executor.stop().await;
    equal(count(drops), 1, "drops with the executor")?;
    // The same mailboxes, for somebody else.
    let next = start()?;
    let neighbour = next.handle().spawn(Mortal { _dropped: Dropped(drops) }).map_err(failed)?;
    ensure!(
        matches!(handle.spawn(Mortal { _dropped: Dropped(counter()) }), Err(NotSpawned::Stopped(_))),
        "a stopped executor refuses to spawn"
    );
    ensure!(matches!(actor.send(Say::End), Err(SendError::Ended(_))), "an actor ends with its executor");
    ensure!(neighbour.is_alive(), "another executor's actor lives");
    next.stop().await;
    equal(count(drops), 2, "drops with the second executor")
}

/// Executors start and stop while all workers are given turns that nobody needs, as a core that is called to steal does:
/// also those of an executor that is only half made.
pub(super) async fn executors_start_while_workers_are_woken(work: u64) -> Verdict {
    let over = Arc::new(AtomicBool::new(false));
    let until = over.clone();
    let waker = sched::spawn(async move {
        while !until.load(Ordering::Relaxed) {
            sched::wake_all_residents();
            sched::yield_now().await;
        }
    });
    let waker = waker.map_err(failed)?;
    for _ in 0..(work / 200).max(2) {
        start()?.stop().await;
    }
    over.store(true, Ordering::Relaxed);
    ensure!(waker.await.is_ok(), "the waker crashed");
    Ok(())
}
