//! Links: a failure ends whoever is linked, wherever it is, and nobody else.

use alloc::vec::Vec;
use core::future::pending;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Hook, Receive, stop};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::sched::{self, JoinError, JoinHandle, Spawn};
use magpie::watch::{Ended, Exit, link};
use magpie::{machine, time};
use magpie_tests::{Failure, HANGS_AFTER, amount, ensure, ensure_eq, kernel_test};

use crate::not_started;
use crate::ways::Way;

async fn end_of<T>(handle: JoinHandle<T>) -> Result<Option<JoinError>, Failure> {
    match time::background_timeout(HANGS_AFTER, handle).await {
        Ok(result) => Ok(result.err()),
        Err(_) => Err(Failure("one that was linked goes on".into())),
    }
}

/// Crashes as it is told.
struct Fragile;

impl Actor for Fragile {}

impl Receive<Way> for Fragile {
    type Reply = ();

    fn receive(&mut self, way: Way, _: &mut Context<Self>) {
        way.crash();
    }
}

/// Spins.
struct Hold;

impl Receive<Hold> for Fragile {
    type Reply = ();

    fn receive(&mut self, _: Hold, _: &mut Context<Self>) {
        loop {
            spin_loop();
        }
    }
}

fn waiting() -> Result<JoinHandle<()>, Failure> {
    sched::spawn(pending()).map_err(not_started)
}

kernel_test! {
    /// A failure goes along a chain of links in both directions, from its middle; who is not linked goes on.
    async fn a_failure_goes_along_a_chain() -> Outcome {
        let length = amount("links", 1000) as usize;
        let chain = (0..length).map(|_| waiting()).collect::<Result<Vec<_>, _>>()?;
        for pair in chain.windows(2) {
            link(pair[0].process(), pair[1].process())?;
            // Once more the other way round, which changes nothing.
            link(pair[1].process(), pair[0].process())?;
        }
        let bystander = waiting()?;
        chain[length / 2].process().kill();
        for process in chain {
            ensure_eq!(end_of(process).await?, Some(JoinError::Killed), "how it ended");
        }
        ensure!(!bystander.process().is_done(), "somebody has ended who was not linked");
        bystander.process().kill();
        Ok(())
    }
}

kernel_test! {
    /// An end that is no failure, and a link that was given up, leave the other alone; one that has ended kills who is linked to it.
    async fn only_a_failure_ends_others() -> Outcome {
        let one = waiting()?;
        let mut start = ProcessMailbox::<()>::new(1)?;
        let go = start.address();
        let other = sched::spawn(async move { start.receive().await })?;
        let process = other.process().clone();
        let linked = link(one.process(), &process)?;
        go.send(())?;
        ensure_eq!(end_of(other).await?, None, "how it ended");
        for _ in 0..100 {
            sched::yield_now().await;
        }
        ensure!(!one.process().is_done(), "it has ended with one that returned");
        ensure!(!linked.cancel(), "the link was there after the end of one");
        one.process().kill();
        end_of(one).await?;

        let (one, other) = (waiting()?, waiting()?);
        ensure!(link(one.process(), other.process())?.cancel(), "a link between two that wait could not be given up");
        other.process().kill();
        end_of(other).await?;
        for _ in 0..100 {
            sched::yield_now().await;
        }
        ensure!(!one.process().is_done(), "it has ended for a link that was given up");
        link(one.process(), &process)?;
        ensure_eq!(end_of(one).await?, Some(JoinError::Killed), "what became of one that was linked to one that has ended");
        Ok(())
    }
}

kernel_test! {
    /// Each sort of crash, on each core, ends one that waits and one that spins on another.
    #[machine("preemption")]
    async fn every_crash_ends_the_linked() -> Outcome {
        for (number, way) in Way::ALL.into_iter().cycle().take(3 * machine::cores()).enumerate() {
            let core = |offset| CoreId::new((number + offset) % machine::cores()).unwrap_or(CoreId::BOOT);
            let mut start = ProcessMailbox::<()>::new(1)?;
            let go = start.address();
            let crashes = Spawn::new().pinned(core(0)).start(async move {
                start.receive().await;
                way.crash();
            })?;
            let waits = waiting()?;
            let spins = Spawn::new().pinned(core(1)).start(async {
                loop {
                    spin_loop();
                }
            })?;
            let bystander = waiting()?;
            link(crashes.process(), waits.process())?;
            link(spins.process(), crashes.process())?;
            go.send(())?;
            ensure_eq!(end_of(crashes).await?, Some(JoinError::Crashed), "how it ended");
            ensure_eq!(end_of(waits).await?, Some(JoinError::Killed), "how one that waits ended");
            ensure_eq!(end_of::<()>(spins).await?, Some(JoinError::Killed), "how one that spins ended");
            ensure!(!bystander.process().is_done(), "somebody has ended who was not linked");
            bystander.process().kill();
        }
        Ok(())
    }
}

kernel_test! {
    /// Pairs are linked while one of the two is killed: the other always ends, and each end is told once.
    async fn none_escapes_in_a_race() -> Outcome {
        let pairs = amount("linked_pairs", 1000);
        let mut ends = ProcessMailbox::<Ended>::new(10)?;
        let mut helpers = Vec::new();
        for number in 0..pairs {
            let (one, other) = (waiting()?, waiting()?);
            for process in [&one, &other] {
                process.process().watch(&ends.address())?;
            }
            let (killed, linked) = (one.process().clone(), [one.process().clone(), other.process().clone()]);
            helpers.push(sched::spawn(async move {
                for _ in 0..number % 5 {
                    sched::yield_now().await;
                }
                killed.kill();
                true
            })?);
            helpers.push(sched::spawn(async move {
                for _ in 0..number % 3 {
                    sched::yield_now().await;
                }
                let [one, other] = linked;
                link(&one, &other).is_ok()
            })?);
        }
        for helper in helpers {
            ensure!(helper.await?, "there was no memory for a link");
        }
        for told in 0..2 * pairs {
            let Ok(ended) = time::background_timeout(HANGS_AFTER, ends.receive()).await else {
                return Err(Failure(alloc::format!("only {told} of {} have ended", 2 * pairs)));
            };
            ensure_eq!(ended.map(|ended| ended.exit()), Some(Exit::Killed), "how one of a pair ended");
        }
        Ok(())
    }
}

kernel_test! {
    /// Actors and processes in one chain: each sort of crash of the actor in its middle ends all of them, and nobody else.
    async fn actors_and_processes_end_together() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        for way in Way::ALL {
            let mut ends = ProcessMailbox::<Ended>::new(10)?;
            let (first, last) = (waiting()?, waiting()?);
            let actors = (0..21).map(|_| handle.spawn(Fragile)).collect::<Result<Vec<_>, _>>()?;
            let bystander = handle.spawn(Fragile)?;
            link(first.process(), &actors[0])?;
            for pair in actors.windows(2) {
                link(&pair[0], &pair[1])?;
            }
            link(&actors[20], last.process())?;
            for actor in &actors {
                actor.watch(&ends.address())?;
            }
            actors[10].send(way)?;
            ensure_eq!(end_of(first).await?, Some(JoinError::Killed), "how the first process ended");
            ensure_eq!(end_of(last).await?, Some(JoinError::Killed), "how the last process ended");
            let mut killed = 0;
            for told in 0..21 {
                let Ok(Some(ended)) = time::background_timeout(HANGS_AFTER, ends.receive()).await else {
                    return Err(Failure(alloc::format!("only {told} actors of 21 have ended")));
                };
                killed += u32::from(ended.exit() == Exit::Killed);
            }
            ensure_eq!(killed, 20, "how many actors were killed");
            ensure!(bystander.is_alive(), "an actor has ended that was not linked");
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// An actor that ends as it wants leaves the other alone; one that spins ends with who is linked to it.
    #[machine("preemption")]
    async fn links_of_actors_are_as_those_of_processes() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let (ends, stays) = (handle.spawn(Fragile)?, handle.spawn(Fragile)?);
        let mut told = ProcessMailbox::<Ended>::new(10)?;
        ends.watch(&told.address())?;
        let linked = link(&ends, &stays)?;
        ends.send(stop::End)?;
        ensure_eq!(told.receive().await.map(|ended| ended.exit()), Some(Exit::Normal), "how it ended");
        ensure!(stays.is_alive() && !linked.cancel(), "an end that is no failure was passed on, or the link is still there");

        let spins = handle.spawn(Fragile)?;
        let other = waiting()?;
        spins.watch(&told.address())?;
        link(other.process(), &spins)?;
        spins.send(Hold)?;
        other.process().kill();
        end_of(other).await?;
        let Ok(Some(ended)) = time::background_timeout(HANGS_AFTER, told.receive()).await else {
            return Err("one that spins goes on".into());
        };
        ensure_eq!(ended.exit(), Exit::Killed, "how one that spins ended");

        let late = handle.spawn(Fragile)?;
        late.watch(&told.address())?;
        link(&ends, &late)?;
        ensure_eq!(told.receive().await.map(|ended| ended.exit()), Some(Exit::Killed), "how one that was linked too late ended");
        ensure!(stays.is_alive(), "somebody has ended who was not linked");
        executor.stop().await;
        Ok(())
    }
}

static ENDS: AtomicBool = AtomicBool::new(false);
static MAY_END: AtomicBool = AtomicBool::new(false);

/// Takes long to end.
struct Slow;

impl Actor for Slow {
    fn stopped() -> Option<Hook<Self>> {
        Some(|_, _| {
            ENDS.store(true, Ordering::Relaxed);
            while !MAY_END.load(Ordering::Relaxed) {
                spin_loop();
            }
        })
    }
}

kernel_test! {
    /// Who is linked to an actor that is at its end already is killed, and that end goes on as it began, however long it takes.
    #[machine("preemption")]
    async fn a_link_leaves_an_end_alone_that_has_begun() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for is_first in [false, true] {
            ENDS.store(false, Ordering::Relaxed);
            MAY_END.store(false, Ordering::Relaxed);
            let slow = executor.handle().spawn(Slow)?;
            let mut told = ProcessMailbox::<Ended>::new(10)?;
            slow.watch(&told.address())?;
            slow.send(stop::End)?;
            while !ENDS.load(Ordering::Relaxed) {
                sched::yield_now().await;
            }
            let linked = waiting()?;
            if is_first {
                link(&slow, linked.process())?;
            } else {
                link(linked.process(), &slow)?;
            }
            ensure_eq!(end_of(linked).await?, Some(JoinError::Killed), "how one that was linked too late ended");
            // For several slices.
            time::sleep(Duration::from_millis(20)).await;
            MAY_END.store(true, Ordering::Relaxed);
            ensure_eq!(told.receive().await.map(|ended| ended.exit()), Some(Exit::Normal), "how an end that had begun was told");
        }
        executor.stop().await;
        Ok(())
    }
}
