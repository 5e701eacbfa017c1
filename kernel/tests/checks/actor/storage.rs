//! Storage: used again, kept, taken, and the user's own.

use alloc::boxed::Box;

use super::{Dropped, Verdict, count, counter, ensure, equal, failed, start};
use crate::actor::{Actor, Addr, Context, ExecutorHandle, NotSpawned, Receive, SendError, StaticActor, stop};
use crate::arch::CoreId;
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::sched;

struct Box1 {
    value: u64,
    seen: &'static AtomicU64,
    _dropped: Dropped,
}

impl Actor for Box1 {}

impl Receive<u64> for Box1 {
    type Reply = ();

    fn receive(&mut self, message: u64, _: &mut Context<Self>) {
        self.value += message;
        self.seen.fetch_add(message, Ordering::Relaxed);
    }
}

fn with(value: u64, seen: &'static AtomicU64, drops: &'static AtomicU64) -> Box1 {
    Box1 { value, seen, _dropped: Dropped(drops) }
}

/// On one worker, so that the cell that is freed is the next to be used.
pub(super) async fn memory_is_used_again_and_old_addresses_are_not(_work: u64) -> Verdict {
    let executor = start()?;
    let (seen, drops) = (counter(), counter());
    let mut old = alloc::vec::Vec::new();
    for _ in 0..100 {
        let actor = executor.handle().spawn_on(CoreId::BOOT, with(0, seen, drops)).map_err(failed)?;
        actor.send(1).map_err(failed)?;
        actor.send(stop::End).map_err(failed)?;
        executor.all_ended().await;
        for former in &old {
            let former: &crate::actor::Addr<Box1> = former;
            ensure!(matches!(former.send(1000), Err(SendError::Ended(1000))), "an old address was answered");
        }
        old.push(actor);
    }
    equal(count(seen), 100, "what was handled")?;
    equal(count(drops), 100, "drops")?;
    executor.stop().await;
    Ok(())
}

pub(super) async fn vacant_storage_has_one_successor(_work: u64) -> Verdict {
    let executor = start()?;
    let handle = executor.handle();
    let (seen, drops) = (counter(), counter());
    let first = handle.spawn(with(0, seen, drops)).map_err(failed)?;
    let Err(NotSpawned::NotFree(early)) = handle.respawn(first, with(0, seen, drops)) else {
        return Err("the storage of a living actor was used again".into());
    };
    drop(early);
    first.send(stop::Vacate).map_err(failed)?;
    executor.all_ended().await;
    equal(count(drops), 2, "drops, of the first and of the one that came too early")?;
    let second = handle.respawn(first, with(0, seen, drops)).map_err(failed)?;
    ensure!(handle.respawn(first, with(0, seen, drops)).is_err(), "the storage was used twice");
    ensure!(matches!(first.send(5), Err(SendError::Ended(5))), "the first actor's address means the second");
    second.send(7).map_err(failed)?;
    sched::out_of_work().await;
    equal(count(seen), 7, "what the second was sent")?;
    second.send(stop::Vacate).map_err(failed)?;
    executor.all_ended().await;
    executor.stop().await;
    equal(count(drops), 4, "drops at the end")?;
    ensure!(!second.is_alive(), "the second is alive after its end");
    Ok(())
}

fn refusal(handle: &ExecutorHandle, old: Addr<Box1>) -> NotSpawned<()> {
    match handle.respawn(old, with(0, counter(), counter())) {
        Ok(_) => NotSpawned::NoSuchWorker(()),
        Err(error) => error.without_actor(),
    }
}

/// For each state that a storage can be in. (That it is used up, below; that its actor has crashed, where actors can.)
pub(super) async fn why_there_is_no_successor(_work: u64) -> Verdict {
    let executor = start()?;
    let handle = executor.handle();
    let spawn = || handle.spawn_on(CoreId::BOOT, with(0, counter(), counter())).map_err(failed);
    // It lives.
    let (ended, retired, vacated) = (spawn()?, spawn()?, spawn()?);
    let whether = |old, is_as_expected: fn(NotSpawned<()>) -> bool, what: &str| match refusal(handle, old) {
        refusal if is_as_expected(refusal) => Ok(()),
        refusal => Err(alloc::format!("the storage {what}: {refusal:?}")),
    };
    let is_in_use: fn(NotSpawned<()>) -> bool = |refusal| matches!(refusal, NotSpawned::NotFree(()));
    let is_given_back: fn(NotSpawned<()>) -> bool = |refusal| matches!(refusal, NotSpawned::GivenBack(()));
    whether(ended, is_in_use, "of one that lives")?;
    ended.send(stop::End).map_err(failed)?;
    retired.send(stop::Retire).map_err(failed)?;
    vacated.send(stop::Vacate).map_err(failed)?;
    executor.all_ended().await;
    whether(ended, is_given_back, "of one that has ended")?;
    whether(retired, is_in_use, "with the state of one that has retired")?;
    ensure!(retired.take().is_some(), "the retired actor's state was not there");
    whether(retired, is_given_back, "of one that was taken")?;
    let successor = handle.respawn(vacated, with(0, counter(), counter())).map_err(failed)?;
    whether(vacated, is_given_back, "that has a successor")?;
    whether(successor, is_in_use, "of a successor")?;
    // The user's own is the user's, however its actor has ended.
    let own = storage_for(3).start(handle, with(0, counter(), counter())).map_err(failed)?;
    own.send(stop::End).map_err(failed)?;
    while own.is_alive() {
        sched::yield_now().await;
    }
    sched::out_of_work().await;
    let second = handle.respawn(own, with(0, counter(), counter())).map_err(failed)?;
    ensure!(second.is_alive(), "what was started in the user's own storage does not live");
    whether(own, is_given_back, "of the user's that has a successor")?;
    let late = handle.clone();
    executor.stop().await;
    match late.respawn(second, with(0, counter(), counter())) {
        Err(NotSpawned::Stopped(_)) => Ok(()),
        other => Err(alloc::format!("an executor that has stopped has a successor: {other:?}")),
    }
}

pub(super) async fn a_retired_actor_is_taken_once(_work: u64) -> Verdict {
    let executor = start()?;
    let (seen, drops) = (counter(), counter());
    let actor = executor.handle().spawn(with(40, seen, drops)).map_err(failed)?;
    ensure!(actor.take().is_none(), "a living actor was taken");
    actor.send(2).map_err(failed)?.send(stop::Retire).map_err(failed)?;
    executor.all_ended().await;
    let taken = actor.take().ok_or("the retired actor's state was not there")?;
    equal((taken.value, count(drops)), (42, 0), "its state, and drops")?;
    ensure!(actor.take().is_none(), "it was taken twice");
    drop(taken);
    executor.stop().await;
    equal(count(drops), 1, "drops at the end")
}

/// Storage in which so many actors can still live; leaked, for it is used up once.
fn storage_for(actors: u32) -> &'static StaticActor<Box1> {
    Box::leak(Box::new(StaticActor::after_generations(u32::MAX - actors)))
}

/// Of the last two that can be told apart one vacates its storage and the other retires; a third is refused.
pub(super) async fn a_storage_that_is_used_up_says_so(_work: u64) -> Verdict {
    let executor = start()?;
    let handle = executor.handle();
    let (seen, drops) = (counter(), counter());
    let storage = storage_for(2);
    let first = storage.start(handle, with(1, seen, drops)).map_err(failed)?;
    first.send(stop::Vacate).map_err(failed)?;
    executor.all_ended().await;
    let last = handle.respawn(first, with(2, seen, drops)).map_err(failed)?;
    last.send(3).map_err(failed)?.send(stop::Retire).map_err(failed)?;
    executor.all_ended().await;
    ensure!(first.take().is_none(), "the first took what the last has left");
    equal(last.take().map(|taken| taken.value), Some(5), "what the last has left")?;
    equal(count(drops), 2, "drops of those that have lived")?;
    match storage.start(handle, with(0, seen, drops)) {
        Err(NotSpawned::UsedUp(refused)) => drop(refused),
        other => return Err(alloc::format!("a storage that is used up was used again: {other:?}")),
    }
    ensure!(matches!(first.send(1), Err(SendError::Ended(1))), "the first one's address is answered");
    ensure!(matches!(last.send(1), Err(SendError::Ended(1))), "the last one's address is answered");
    executor.stop().await;
    equal(count(drops), 3, "drops at the end")
}

pub(super) async fn the_last_of_a_storage_has_no_successor(_work: u64) -> Verdict {
    let executor = start()?;
    let handle = executor.handle();
    let (seen, drops) = (counter(), counter());
    let last = storage_for(1).start(handle, with(1, seen, drops)).map_err(failed)?;
    last.send(stop::Vacate).map_err(failed)?;
    executor.all_ended().await;
    match handle.respawn(last, with(0, seen, drops)) {
        Err(NotSpawned::UsedUp(refused)) => drop(refused),
        other => return Err(alloc::format!("the last one has a successor: {other:?}")),
    }
    ensure!(matches!(last.send(1), Err(SendError::Ended(1))), "the last one's address is answered");
    executor.stop().await;
    Ok(())
}

static KEPT: StaticActor<Box1> = StaticActor::new();

pub(super) async fn a_static_actor_belongs_to_the_user(_work: u64) -> Verdict {
    let (seen, drops) = (counter(), counter());
    let executor = start()?;
    let actor = KEPT.start(executor.handle(), with(1, seen, drops)).map_err(failed)?;
    ensure!(
        matches!(KEPT.start(executor.handle(), with(0, seen, drops)), Err(NotSpawned::NotFree(_))),
        "two actors were started in one storage"
    );
    equal(count(drops), 1, "drops of the one that was refused")?;
    actor.send(4).map_err(failed)?.send(stop::Retire).map_err(failed)?;
    executor.all_ended().await;
    // It outlives the executor.
    executor.stop().await;
    let taken = KEPT.take().ok_or("the retired actor's state was not there")?;
    equal((taken.value, count(drops)), (5, 1), "its state, and drops")?;
    ensure!(KEPT.take().is_none(), "it was taken twice");
    drop(taken);
    // Again, with another executor, and ended by that executor's end.
    let executor = start()?;
    let second = KEPT.start(executor.handle(), with(0, seen, drops)).map_err(failed)?;
    ensure!(actor.send(1).is_err(), "the first actor's address means the second");
    second.send(1).map_err(failed)?;
    sched::out_of_work().await;
    executor.stop().await;
    equal(count(drops), 3, "drops at the end")?;
    ensure!(KEPT.take().is_none(), "an actor that did not finish was taken");
    Ok(())
}
