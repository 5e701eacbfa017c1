//! What is seen of processes, actors and mailboxes from outside, and the end of one by its name.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::actor::{
    Actor, ActorInfo, ActorState, Bound, Config, Context, Executor, Receive, WhenFull, actors, mailboxes,
};
use magpie::arch::CoreId;
use magpie::channel::{ProcessMailbox, waiting_for};
use magpie::internals::actor;
use magpie::registry::{self, NotKilled};
use magpie::sched;
use magpie::{machine, time};
use magpie_tests::{Failure, HANGS_AFTER, Outcome, ensure, ensure_eq, kernel_test};

async fn until(holds: impl Fn() -> bool) -> Outcome {
    let waiting = async {
        while !holds() {
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, waiting)
        .await
        .map_err(|_| Failure("it does not come to hold".into()))
}

kernel_test! {
    /// What a process is charged is seen when its turns have ended.
    async fn reductions_are_counted() -> Outcome {
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let spends = sched::spawn(async move {
            for _ in 0..10 {
                sched::charge(7);
                sched::yield_now().await;
            }
            while !ended.load(Ordering::Acquire) {
                time::sleep(Duration::from_millis(1)).await;
            }
        })?;
        let process = spends.process().clone();
        until(|| process.reductions() >= 70).await?;
        ends.store(true, Ordering::Release);
        spends.await?;
        // Sleeping may be charged, but by no more than that.
        ensure!(process.reductions() < 100_000, "it was charged {}", process.reductions());
        Ok(())
    }
}

struct Spinner;

impl Actor for Spinner {}

impl Receive<Arc<AtomicBool>> for Spinner {
    type Reply = ();

    fn receive(&mut self, ends: Arc<AtomicBool>, _: &mut Context<Self>) {
        while !ends.load(Ordering::Acquire) {
            spin_loop();
        }
    }
}

impl Receive<u32> for Spinner {
    type Reply = u32;

    fn receive(&mut self, number: u32, _: &mut Context<Self>) -> u32 {
        number
    }
}

kernel_test! {
    /// An actor whose behaviour is suspended is seen as such, has its name, and is killed by it.
    #[machine("preemption")]
    async fn a_suspended_actor_is_seen_and_killed_by_name() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let spinner = executor.handle().spawn(Spinner)?;
        registry::register("spinner", spinner)?;
        let ends = Arc::new(AtomicBool::new(false));
        spinner.send(ends.clone())?;
        let others = (0..2 * machine::cores())
            .map(|_| {
                let ends = ends.clone();
                sched::spawn(async move {
                    while !ends.load(Ordering::Acquire) {
                        sched::yield_now().await;
                    }
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        until(|| spinner.inspect().is_some_and(|seen| seen.state == ActorState::Suspended)).await?;
        let seen = spinner.inspect().ok_or("it has ended")?;
        let name = registry::name_of(seen.id);
        ensure_eq!(name.as_deref(), Some("spinner"), "its name");
        ensure!(seen.core.index() < machine::cores(), "{seen:?}");
        // What the serial command prints, with a name and while a behaviour is suspended.
        actor::actors_printer().ok_or("there is an executor, but nothing prints actors")?();
        actor::mailboxes_printer().ok_or("there is an executor, but nothing prints mailboxes")?();
        registry::kill("spinner")?;
        until(|| !spinner.is_alive()).await?;
        ensure_eq!(registry::name_of(seen.id), None, "its name is gone");
        ensure_eq!(registry::kill("spinner"), Err(NotKilled::Nobody), "nobody has the name");
        ends.store(true, Ordering::Release);
        for other in others {
            other.await?;
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// The messages that came by a mailbox's queue are counted, and which core it belongs to is known.
    async fn what_a_mailbox_has_taken_is_counted() -> Outcome {
        let executor = Executor::start(&Config::default().mailboxes(machine::cores()))?;
        let core = CoreId::new(machine::cores() - 1).ok_or("there is no last core")?;
        let pinned = executor.handle().spawn_pinned(core, Spinner)?;
        let seen = pinned.inspect().ok_or("it has ended")?;
        ensure_eq!((seen.core, seen.taken, seen.migrations), (core, 0, 0), "at first");
        for number in 0..100 {
            ensure_eq!(pinned.ask(number).await?, number, "the answer");
        }
        let seen = pinned.inspect().ok_or("it has ended")?;
        // Nobody has it in hand when one who is no behaviour asks, and it is not stolen.
        ensure!((1..=100).contains(&seen.taken), "{} were taken of 100", seen.taken);
        ensure_eq!((seen.core, seen.migrations), (core, 0), "afterwards");
        ensure_eq!(actors().filter(|actor| actor.id == seen.id).count(), 1, "how often it is listed");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Of one that has its mailbox alone, exactly its own messages are counted, from its spawn on, and its age is known; and mailboxes are listed.
    async fn one_alone_is_seen_by_itself() -> Outcome {
        let bound = Bound::new(500, WhenFull::Refuse);
        let executor = Executor::start(&Config::default().own_mailboxes(1))?;
        let many = executor.handle().spawn(Spinner)?;
        let many = many.inspect().ok_or("it has ended")?;
        ensure_eq!((many.is_alone, many.age), (false, None), "of one among others");
        let mut last = None;
        for life in 1..=3_u32 {
            let before = time::Instant::now();
            // Its predecessor may be at its end still.
            let alone = loop {
                match executor.handle().spawn_bounded(Spinner, bound) {
                    Ok(alone) => break alone,
                    Err(_) => sched::yield_now().await,
                }
            };
            let since = time::Instant::now();
            for number in 0..100 * life {
                ensure_eq!(alone.ask(number).await?, number, "the answer");
            }
            let least = since.elapsed();
            let seen = alone.inspect().ok_or("it has ended")?;
            let most = before.elapsed();
            ensure!(seen.is_alone, "it is alone");
            ensure_eq!(seen.taken, u64::from(100 * life), "what it was sent");
            let age = seen.age.ok_or("its age is not known")?;
            ensure!((least..=most).contains(&age), "its age is {age:?}, and should be {least:?} to {most:?}");
            let listed = mailboxes().filter(|mailbox| mailbox.number == seen.mailbox).collect::<Vec<_>>();
            ensure_eq!(listed.len(), 1, "how often its mailbox is listed");
            let listed = listed[0];
            ensure_eq!((listed.bound, listed.is_of_one, listed.taken), (Some(500), true, seen.taken), "of its mailbox");
            ensure!(listed.most_waiting >= 1 && listed.buffer_bytes > 0, "{listed:?}");
            // What was seen of the one before does nothing to its successor.
            let kill = |seen: ActorInfo| seen.kill().map_err(|_| "no memory for a kill");
            last.map_or(Ok(()), kill)?;
            ensure_eq!(alone.ask(7).await?, 7, "the answer after its predecessor was killed");
            kill(seen)?;
            until(|| !alone.is_alive()).await?;
            last = Some(seen);
        }
        let number = last.map(|seen| seen.mailbox);
        executor.stop().await;
        ensure!(!mailboxes().any(|mailbox| Some(mailbox.number) == number), "a closed mailbox is listed");
        Ok(())
    }
}

kernel_test! {
    /// What waits for a process is counted, over all its mailboxes, and it has the name of one.
    async fn what_waits_for_a_process_is_counted() -> Outcome {
        let own = sched::current_process().ok_or("no process runs")?;
        ensure_eq!(waiting_for(&own), 0, "before it has a mailbox");
        let (mut first, mut second) = (ProcessMailbox::<u32>::new(10)?, ProcessMailbox::<u64>::new(10)?);
        let (to_first, to_second) = (first.address(), second.address());
        registry::register("listed", to_first.clone())?;
        for number in 0..4 {
            to_first.send(number)?;
            to_second.send(number.into())?;
        }
        ensure_eq!((first.receive().await, second.receive().await), (Some(0), Some(0)), "what came first");
        ensure_eq!(waiting_for(&own), 6, "what waits");
        let name = registry::name_of(own.id());
        ensure_eq!(name.as_deref(), Some("listed"), "its name");
        drop(first);
        ensure_eq!(waiting_for(&own), 3, "what waits in the other");
        ensure_eq!(registry::name_of(own.id()), None, "its name is gone");
        Ok(())
    }
}
