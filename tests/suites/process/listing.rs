//! The list of processes: who is on it, in which state, while others come, go, crash and are killed; and that of supervisors and their children.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Executor, actors};
use magpie::channel::ProcessMailbox;
use magpie::internals::supervise as internals;
use magpie::mem::MemoryLimit;
use magpie::registry;
use magpie::sched::{self, Priority, ProcessState, Spawn};
use magpie::supervise::{self, Backoff, Child, Supervisor};
use magpie::{machine, time};
use magpie_tests::{Failure, HANGS_AFTER, Outcome, ensure, ensure_eq, kernel_test};

async fn until(mut holds: impl FnMut() -> bool) -> Outcome {
    let waiting = async {
        while !holds() {
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, waiting)
        .await
        .map_err(|_| Failure("it does not come to hold".into()))
}

/// Its state, if it is listed once.
fn state_in_list(id: usize) -> Option<ProcessState> {
    let mut states = sched::processes().filter(|process| process.id() == id).map(|process| process.state());
    states.next().filter(|_| states.next().is_none())
}

kernel_test! {
    /// Some wait, some compute, and some yield: each state is seen, and those that have ended are not on the list.
    #[machine("preemption")]
    async fn each_state_is_listed() -> Outcome {
        let ends = Arc::new(AtomicBool::new(false));
        let mut mailbox = ProcessMailbox::<u32>::new(1)?;
        let wake = mailbox.address();
        let waits = sched::spawn(async move { mailbox.receive().await })?;
        let count = 2 * machine::cores();
        // In their first turns, which do not end.
        let compute = (0..count).map(|_| {
            let ends = ends.clone();
            sched::procedure(move || {
                while !ends.load(Ordering::Acquire) {
                    spin_loop();
                }
            })
        });
        let mut others = compute.collect::<Result<Vec<_>, _>>()?;
        for _ in 0..count {
            let ends = ends.clone();
            others.push(Spawn::new().priority(Priority::Low).start(async move {
                while !ends.load(Ordering::Acquire) {
                    sched::yield_now().await;
                }
            })?);
        }
        let own = sched::current_process().ok_or("no process runs")?.id();
        let ids: Vec<_> = others.iter().map(|other| other.process().id()).collect();
        let (mut suspended, mut ready, mut running) = (false, false, false);
        until(|| {
            for process in sched::processes() {
                let is_one = ids.contains(&process.id());
                match process.state() {
                    ProcessState::Suspended => suspended |= is_one,
                    ProcessState::Ready => ready |= is_one,
                    // On one core only the caller runs while it looks.
                    ProcessState::Running => running |= is_one || machine::cores() == 1,
                    _ => {}
                }
            }
            let waits = state_in_list(waits.process().id()) == Some(ProcessState::Waiting);
            suspended && ready && running && waits && state_in_list(own) == Some(ProcessState::Running)
        })
        .await?;
        until(|| ids.iter().all(|id| state_in_list(*id).is_some())).await?;
        ends.store(true, Ordering::Release);
        wake.send(1)?;
        ensure_eq!(waits.await, Ok(Some(1)), "what it received");
        for other in others {
            other.await?;
        }
        // Who is awaited says so in its last turn, and is struck off behind that.
        until(|| ids.iter().all(|id| state_in_list(*id).is_none())).await
    }
}

kernel_test! {
    /// One that computes alone on its core, in its first turn, is listed after a slice, though nobody waits for that core.
    #[cores(2)]
    #[machine("interrupts")]
    async fn who_computes_alone_is_listed() -> Outcome {
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let last = magpie::arch::CoreId::new(machine::cores() - 1).ok_or("there is no last core")?;
        let alone = Spawn::new().pinned(last).start(async move {
            while !ended.load(Ordering::Acquire) {
                spin_loop();
            }
        })?;
        let id = alone.process().id();
        until(|| state_in_list(id).is_some()).await?;
        ends.store(true, Ordering::Release);
        alone.await?;
        // As above.
        until(|| state_in_list(id).is_none()).await
    }
}

kernel_test! {
    /// Ages only grow, and are those since the start.
    async fn ages_grow() -> Outcome {
        let before = time::Instant::now();
        // It begins to sleep when it has begun: this core may be put aside by the host in between.
        let sleeps = sched::spawn(async { time::sleep(Duration::from_millis(20)).await })?;
        let (process, since) = (sleeps.process().clone(), time::Instant::now());
        let mut last = Duration::ZERO;
        loop {
            // Before the look at its age: the last look comes after its end, whenever this process had its turns.
            let is_done = process.is_done();
            let (least, age) = (since.elapsed(), process.age());
            ensure!(age >= last && age >= least && age <= before.elapsed(), "{age:?} after {last:?}, {least:?}");
            last = age;
            if is_done {
                break;
            }
            sched::yield_now().await;
        }
        sleeps.await?;
        ensure!(last >= Duration::from_millis(10), "it slept for {last:?}");
        Ok(())
    }
}

kernel_test! {
    /// Ten thousand processes come, wait, and end, some of them killed, while as many list as there are cores. Who stays is on each list
    /// once.
    async fn lists_are_whole_while_others_come_and_go() -> Outcome {
        const STAY: usize = 100;
        const ROUNDS: usize = 100;
        const EACH: usize = 100;
        let ends = Arc::new(AtomicBool::new(false));
        let mut addresses = Vec::new();
        let mut stay = Vec::new();
        for _ in 0..STAY {
            let mut mailbox = ProcessMailbox::<u32>::new(1)?;
            addresses.push(mailbox.address());
            stay.push(sched::spawn(async move { mailbox.receive().await })?);
        }
        let ids: Arc<Vec<usize>> = Arc::new(stay.iter().map(|one| one.process().id()).collect());
        until(|| ids.iter().all(|id| state_in_list(*id).is_some())).await?;
        let lists = Arc::new(AtomicU32::new(0));
        let listers = (0..machine::cores())
            .map(|_| {
                let (ids, ends, lists) = (ids.clone(), ends.clone(), lists.clone());
                sched::spawn(async move {
                    let mut wrong = None;
                    while !ends.load(Ordering::Acquire) && wrong.is_none() {
                        let mut seen: Vec<usize> = sched::processes().map(|process| process.id()).collect();
                        seen.sort_unstable();
                        let times = |id: &usize| seen.iter().filter(|seen| *seen == id).count();
                        wrong = ids.iter().map(times).find(|times| *times != 1);
                        lists.fetch_add(1, Ordering::Relaxed);
                        sched::yield_now().await;
                    }
                    wrong
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        for round in 0..ROUNDS {
            let brief = (0..EACH).map(|number| {
                sched::spawn(async move {
                    for _ in 0..number % 4 {
                        sched::yield_now().await;
                    }
                    if number % 2 == 0 {
                        time::sleep(Duration::from_micros(10 * number as u64)).await;
                    }
                })
            });
            let brief = brief.collect::<Result<Vec<_>, _>>()?;
            brief.iter().skip(round % 7).step_by(7).for_each(|one| one.process().kill());
            for one in brief {
                // Some were killed.
                let _ = one.await;
            }
        }
        until(|| lists.load(Ordering::Relaxed) > 3).await?;
        ends.store(true, Ordering::Release);
        for lister in listers {
            ensure_eq!(lister.await?, None, "how often one that stays was on a list");
        }
        for (one, address) in stay.into_iter().zip(addresses) {
            address.send(7)?;
            ensure_eq!(one.await, Ok(Some(7)), "what it received");
        }
        // As above.
        until(|| ids.iter().all(|id| state_in_list(*id).is_none())).await
    }
}

kernel_test! {
    /// A list needs no memory: who may take none has one, too.
    #[machine("the kernel's heap")]
    async fn a_list_needs_no_memory() -> Outcome {
        let limit = MemoryLimit::new(16 * 1024)?;
        let mut mailbox = ProcessMailbox::<u32>::new(1)?;
        let wake = mailbox.address();
        let waits = sched::spawn(async move { mailbox.receive().await })?;
        let id = waits.process().id();
        until(|| state_in_list(id).is_some()).await?;
        let lists = Spawn::new().memory(&limit).start(async move {
            let mut taken: [Vec<u8>; 300] = core::array::from_fn(|_| Vec::new());
            let refused = taken.iter_mut().position(|block| block.try_reserve_exact(64).is_err());
            (refused.is_some(), state_in_list(id))
        })?;
        ensure_eq!(lists.await, Ok((true, Some(ProcessState::Waiting))), "refused, and listed");
        wake.send(1)?;
        ensure_eq!(waits.await, Ok(Some(1)), "what it received");
        Ok(())
    }
}

struct Counter;

impl Actor for Counter {}

kernel_test! {
    /// Children are seen with their supervisors, restarts, processes and actors, and are gone with the supervisor, also with one that is killed.
    async fn children_are_seen_with_their_supervisors() -> Outcome {
        static FAILURES: AtomicU32 = AtomicU32::new(3);
        FAILURES.store(3, Ordering::Relaxed);
        let executor = Executor::start(&Config::default())?;
        let inner = Supervisor::one_for_one().named("seen/inner").backoff(Backoff::NONE).child(Child::process(
            "fails",
            |mut shutdown| async move {
                // It has failed three times, then it goes on.
                if FAILURES.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    return Err("failed");
                }
                shutdown.requested().await;
                Ok(())
            },
        ));
        let supervisor = Supervisor::one_for_one()
            .named("seen/outer")
            .child(Child::supervisor("inner", inner))
            .child(Child::actor("counter", executor.handle(), || Counter))
            .start()?;
        let outer = supervisor.process().id();
        let child = |supervisor: usize, name: &str| {
            supervise::children().find(|child| child.supervisor == supervisor && child.name == name)
        };
        until(|| child(outer, "counter").is_some_and(|child| child.actor.is_some())).await?;
        let counter = child(outer, "counter").ok_or("it is not seen")?;
        let actor = counter.actor.ok_or("it is no actor")?;
        ensure_eq!(actors().filter(|seen| seen.id == actor).count(), 1, "the actor");
        ensure_eq!(supervise::supervised(actor).map(|child| child.id), Some(counter.id), "whose the actor is");
        until(|| child(outer, "inner").is_some_and(|child| child.process.is_some())).await?;
        let inner = child(outer, "inner").and_then(|child| child.process).ok_or("it is not seen")?;
        // From its start on it is known how often that was, and from its first turn on, who it is.
        let fails = || child(inner.id(), "fails").filter(|child| child.restarts == 3 && child.process.is_some());
        until(|| fails().is_some()).await?;
        let fails = fails().ok_or("it is not seen")?;
        let process = fails.process.ok_or("it does not live")?;
        ensure_eq!(supervise::supervised(process.id()).map(|child| child.id), Some(fails.id), "whose it is");
        until(|| state_in_list(process.id()) == Some(ProcessState::Waiting)).await?;
        ensure!(process.age() <= inner.age(), "a child is older than its supervisor");
        for (name, id) in [("seen/outer", outer), ("seen/inner", inner.id())] {
            let seen = supervise::supervisors().filter(|seen| seen.name == Some(name) && seen.process.id() == id);
            ensure_eq!(seen.count(), 1, "{name}");
            let known = registry::name_of(id);
            ensure_eq!(known.as_deref(), Some(name), "its name");
        }
        // What the serial command prints.
        internals::printer().ok_or("there is a supervisor, but nothing prints them")?();
        supervisor.process().kill();
        let is_left = || {
            let names = ["seen/outer", "seen/inner"];
            supervise::supervisors().any(|seen| seen.name.is_some_and(|name| names.contains(&name)))
                || supervise::children().any(|child| ["inner", "counter", "fails"].contains(&child.name))
        };
        until(|| !is_left()).await?;
        executor.stop().await;
        Ok(())
    }
}
