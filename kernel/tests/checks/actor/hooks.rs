//! Hooks: an actor starts before its first message, and stops once, before its state is dropped.

use super::{Dropped, Verdict, count, counter, ensure, equal, failed, start};
use crate::actor::{
    Actor, Addr, Bound, Config, Context, Executor, Hook, Receive, StaticActor, WhenFull, stop,
};
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::sched;
use alloc::boxed::Box;

/// What has happened to actors, all together.
#[derive(Clone, Copy)]
struct Seen {
    started: &'static AtomicU64,
    stopped: &'static AtomicU64,
    handled: &'static AtomicU64,
    wrong: &'static AtomicU64,
    drops: &'static AtomicU64,
}

impl Seen {
    fn new() -> Self {
        let (started, stopped, handled) = (counter(), counter(), counter());
        Self { started, stopped, handled, wrong: counter(), drops: counter() }
    }

    /// Of actors: that started, stopped, were dropped.
    fn lives(&self) -> (u64, u64, u64) {
        (count(self.started), count(self.stopped), count(self.drops))
    }
}

struct Careful {
    seen: Seen,
    is_started: bool,
    is_stopped: bool,
    _dropped: Dropped,
}

impl Careful {
    fn new(seen: Seen) -> Self {
        Self { seen, is_started: false, is_stopped: false, _dropped: Dropped(seen.drops) }
    }

    fn expect(&self, is_right: bool) {
        self.seen.wrong.fetch_add(u64::from(!is_right), Ordering::Relaxed);
    }
}

impl Actor for Careful {
    fn started() -> Option<Hook<Self>> {
        Some(|actor, context| {
            actor.expect(!actor.is_started && context.address().is_alive());
            actor.is_started = true;
            actor.seen.started.fetch_add(1, Ordering::Relaxed);
        })
    }

    fn stopped() -> Option<Hook<Self>> {
        Some(|actor, context| {
            actor.expect(!actor.is_stopped && !context.address().is_alive());
            // It is too late for a word.
            context.retire();
            actor.is_stopped = true;
            actor.seen.stopped.fetch_add(1, Ordering::Relaxed);
        })
    }
}

impl Receive<u64> for Careful {
    type Reply = ();

    fn receive(&mut self, number: u64, _: &mut Context<Self>) {
        self.expect(self.is_started && !self.is_stopped);
        self.seen.handled.fetch_add(number, Ordering::Relaxed);
    }
}

/// Begets a careful actor and sends it messages at once.
impl Receive<()> for Careful {
    type Reply = Option<Addr<Self>>;

    fn receive(&mut self, (): (), context: &mut Context<Self>) -> Option<Addr<Self>> {
        let child = context.spawn_beside(Self::new(self.seen)).ok()?;
        child.send(1).ok()?.send(2).ok().copied()
    }
}

pub(super) async fn an_actor_starts_and_stops_once(_work: u64) -> Verdict {
    let executor = start()?;
    let handle = executor.handle();
    let seen = Seen::new();
    let first = handle.spawn(Careful::new(seen)).map_err(failed)?;
    first.send(1).map_err(failed)?.send(stop::Vacate).map_err(failed)?;
    executor.all_ended().await;
    sched::out_of_work().await;
    equal(seen.lives(), (1, 1, 1), "started, stopped, dropped after the first")?;
    let second = handle.respawn(first, Careful::new(seen)).map_err(failed)?;
    second.send(1).map_err(failed)?.send(stop::Retire).map_err(failed)?;
    sched::out_of_work().await;
    equal(seen.lives(), (2, 2, 1), "started, stopped, dropped after the second")?;
    let taken = second.take().ok_or("the second left no state")?;
    ensure!(taken.is_stopped, "the second was taken before it had stopped");
    drop(taken);
    let storage: &'static StaticActor<Careful> = Box::leak(Box::new(StaticActor::new()));
    let third = storage.start(handle, Careful::new(seen)).map_err(failed)?;
    let child = third.ask(()).await.map_err(failed)?.ok_or("there was no memory for a child")?;
    child.send(stop::End).map_err(failed)?;
    third.send(stop::End).map_err(failed)?;
    sched::out_of_work().await;
    equal(seen.lives(), (4, 4, 4), "started, stopped, dropped after the child")?;
    let last = handle.spawn(Careful::new(seen)).map_err(failed)?;
    last.send(1).map_err(failed)?;
    sched::out_of_work().await;
    equal(executor.stop().await, 0, "messages left over")?;
    equal(seen.lives(), (5, 5, 5), "started, stopped, dropped after the executor")?;
    equal((count(seen.handled), count(seen.wrong)), (6, 0), "what was handled, and what was out of order")
}

/// Fills its mailbox, and has a neighbour begin in it.
struct Crowding(Seen);

impl Actor for Crowding {}

impl Receive<u64> for Crowding {
    type Reply = ();

    fn receive(&mut self, number: u64, context: &mut Context<Self>) {
        if number == 0 {
            let neighbour = context.spawn_beside(Careful::new(self.0));
            for number in 1..=10 {
                let _ = context.address().send(number);
                if let Ok(neighbour) = &neighbour {
                    let _ = neighbour.send(1);
                }
            }
        }
    }
}

pub(super) async fn no_bound_forgets_a_beginning(_work: u64) -> Verdict {
    for when_full in [WhenFull::Refuse, WhenFull::DropNewest, WhenFull::DropOldest] {
        let bound = Bound::new(2, when_full);
        let executor = Executor::start(&Config::default().bound(bound)).map_err(failed)?;
        let seen = Seen::new();
        let crowding = executor.handle().spawn(Crowding(seen)).map_err(failed)?;
        crowding.send(0).map_err(failed)?;
        sched::out_of_work().await;
        equal((count(seen.started), count(seen.wrong)), (1, 0), "beginnings, and what was out of order")?;
        equal(executor.stop().await, 0, "messages left over")?;
        equal(seen.lives(), (1, 1, 1), "started, stopped, dropped")?;
    }
    Ok(())
}

pub(super) async fn what_had_no_time_to_start_is_no_lost_message(_work: u64) -> Verdict {
    for _ in 0..20 {
        let executor = start()?;
        let seen = Seen::new();
        for _ in 0..20 {
            executor.handle().spawn(Careful::new(seen)).map_err(failed)?;
        }
        equal(executor.stop().await, 0, "messages left over")?;
        let (started, stopped, drops) = seen.lives();
        equal((stopped, drops), (20, 20), "actors that stopped, and were dropped")?;
        ensure!(started <= 20, "{started} actors started");
        equal(count(seen.wrong), 0, "what was out of order")?;
    }
    Ok(())
}
