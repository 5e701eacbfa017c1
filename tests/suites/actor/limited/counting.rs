//! What each is charged and counted, among many, suspended, at its bound, and for what it starts.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::actor::{
    Actor, AskError, Bound, Config, Context, Executor, Limits, NotSpawned, Receive, Request, SendError,
    WhenFull, actors, stop,
};
use magpie::crash::{self, CrashKind};
use magpie::mem::MemoryLimit;
use magpie::sched::{self, Setting};
use magpie::time;
use magpie_tests::{Changed, Failure, amount, ensure, ensure_eq, kernel_test};

use super::scene::{
    Devour, Fill, HOLD, Keep, Keeper, LIMIT, Long, Number, Report, crowded, falls_to, neighbours, until,
};

kernel_test! {
    /// What is sent to one that is counted, from every core, is counted once each, in the mailbox of others and alone; nothing overtakes
    /// anything, and others are not counted.
    async fn each_message_is_counted_once() -> Outcome {
        let executor = crowded()?;
        let beside = neighbours(&executor)?;
        let mut counted = Vec::new();
        for limits in [Limits::new(), Limits::new(), Limits::new().mailbox(Bound::new(10_000, WhenFull::Refuse))] {
            counted.push(executor.handle().spawn_limited(Keeper::default(), limits)?);
        }
        let messages = amount("counted", 2000);
        let mut senders = Vec::new();
        for keeper in counted.iter().chain(&beside) {
            let keeper = *keeper;
            // One sender to each, so that its numbers are in order; from wherever it is at the time.
            senders.push(sched::spawn(async move {
                for number in 1..=messages {
                    if keeper.send_wait(Number(number)).await.is_err() {
                        return false;
                    }
                    if number % 50 == 0 {
                        sched::yield_now().await;
                    }
                }
                true
            })?);
        }
        for sender in senders {
            ensure!(sender.await?, "a message was refused");
        }
        for keeper in counted.iter().chain(&beside) {
            ensure_eq!(keeper.ask(Report).await?, (messages, 0), "the last number, and how many were out of order");
        }
        for keeper in &counted {
            let seen = keeper.inspect().ok_or("it has ended")?;
            ensure_eq!(seen.messages, Some(messages + 1), "messages that were counted");
            ensure!(seen.reductions.is_some_and(|reductions| reductions >= messages), "{:?} reductions", seen.reductions);
            ensure!(seen.age.is_some_and(|age| age < Duration::from_secs(3600)), "it is {:?} old", seen.age);
        }
        for keeper in &beside {
            let seen = keeper.inspect().ok_or("it has ended")?;
            ensure_eq!((seen.messages, seen.reductions, seen.moves), (None, None, None), "what is counted of others");
        }
        ensure_eq!(actors().filter(|actor| actor.messages.is_some()).count(), 3, "who is listed as counted");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// One that eats is refused at its limit, and ends alone where it cannot be refused; those who share its mailbox have memory
    /// meanwhile, and lose nothing; its successor has the same limit.
    #[machine("isolation")]
    async fn one_has_a_limit_of_its_own() -> Outcome {
        let executor = crowded()?;
        let beside = neighbours(&executor)?;
        let limit = MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("{error}")))?;
        let limits = Limits::new().memory(&limit);
        for life in 0..3 {
            let mut glutton = executor.handle().spawn_limited(Keeper::default(), limits);
            // What the life before has left counts until it is collected, which who is refused asks for.
            while let Err(NotSpawned::OverLimit(_)) = &glutton {
                time::sleep(Duration::from_millis(2)).await;
                glutton = executor.handle().spawn_limited(Keeper::default(), limits);
            }
            let glutton = glutton?;
            if life == 0 {
                ensure_eq!(limit.used(), HOLD, "in use by one that has nothing");
                let filled = glutton.ask(Fill).await?;
                ensure!(filled > LIMIT / 2 && filled <= LIMIT, "{filled} bytes are all that it gets");
                ensure_eq!(limit.used(), HOLD, "in use when it has given all back");
                ensure!(glutton.ask(Keep(5000)).await?, "what is within the limit");
                ensure!(limit.used() >= HOLD + 5000 && limit.used() < 6000, "{} in use", limit.used());
                ensure!(!glutton.ask(Keep(LIMIT)).await?, "more than there is");
            }
            for keeper in &beside {
                ensure!(keeper.ask(Keep(LIMIT / 8)).await?, "another was refused");
                keeper.send(Number(life + 1))?;
            }
            let before = crash::total();
            ensure!(glutton.ask(Devour).await.is_err(), "a glutton was answered");
            until(|| !glutton.is_alive(), || "it lives".into()).await?;
            ensure!(crash::total() > before, "no crash is on record");
            ensure_eq!(crash::last().map(|record| record.kind), Some(CrashKind::OutOfMemory), "what is on record");
            for keeper in &beside {
                ensure_eq!(keeper.ask(Report).await?, (life + 1, 0), "what others were sent");
            }
        }
        ensure!(limit.most_used() <= LIMIT, "{} at most", limit.most_used());
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Suspended, resumed and moved, it pays for itself alone, is counted on, and what was sent meanwhile comes in order.
    #[machine("preemption")]
    async fn one_that_is_suspended_pays_on() -> Outcome {
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        let executor = crowded()?;
        let beside = neighbours(&executor)?;
        let limit = MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("{error}")))?;
        let own = executor.handle().spawn_limited(Keeper::default(), Limits::new().memory(&limit))?;
        let mut sent = 0;
        for round in 0..amount("suspensions", 5) {
            let ends = Arc::new(AtomicBool::new(false));
            let answer = own.ask(Long(ends.clone()));
            for _ in 0..20 {
                sent += 1;
                own.send(Number(sent))?;
            }
            for keeper in &beside {
                ensure!(keeper.ask(Keep(1000)).await?, "another was refused");
            }
            time::sleep(Duration::from_micros(500)).await;
            ends.store(true, Ordering::Release);
            ensure_eq!(answer.await, Ok(true), "its answer");
            ensure_eq!(own.ask(Report).await?, (sent, 0), "what came");
            let kept = 10_000 * (round as usize + 1);
            let used = limit.used();
            ensure!(used >= kept + HOLD && used < kept + kept / 2 + 2048, "{used} in use in round {round}");
        }
        let seen = own.inspect().ok_or("it has ended")?;
        ensure_eq!(seen.messages, Some(22 * amount("suspensions", 5)), "messages that were counted");
        own.send(stop::End)?;
        falls_to(&limit, 0).await?;
        // The others were charged nothing.
        executor.stop().await;
        ensure_eq!(limit.used(), 0, "in use by nobody");
        Ok(())
    }
}

kernel_test! {
    /// There are 4095 at a time; a limit that is full or was dropped is given to nobody, and the state comes back.
    async fn errors_are_typed() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let small = MemoryLimit::new(HOLD - 1).map_err(|error| Failure(alloc::format!("{error}")))?;
        let limits = Limits::new().memory(&small);
        let refused = handle.spawn_limited(Keeper { last: 7, ..Keeper::default() }, limits);
        ensure!(matches!(refused, Err(NotSpawned::OverLimit(Keeper { last: 7, .. }))), "one was spawned over its limit");
        drop(small);
        ensure!(matches!(handle.spawn_limited(Keeper::default(), limits), Err(NotSpawned::OverLimit(_))), "spawned by none");
        let bounded = Limits::new().mailbox(Bound::new(1, WhenFull::Refuse));
        ensure!(matches!(handle.spawn_limited(Keeper::default(), bounded), Err(NotSpawned::NoMailbox(_))), "without one");
        let mut all = Vec::new();
        let error = loop {
            match handle.spawn_limited(Keeper::default(), Limits::new()) {
                Ok(keeper) => all.push(keeper),
                Err(error) => break error.without_actor(),
            }
        };
        ensure_eq!((error, all.len()), (NotSpawned::NoMeter(()), 4095), "why there is no other, and how many there are");
        ensure!(handle.spawn(Keeper::default()).is_ok(), "one that is not counted is refused");
        let Some(last) = all.pop() else { return Ok(()) };
        last.kill()?;
        until(|| handle.spawn_limited(Keeper::default(), Limits::new()).is_ok(), || "none came back".into()).await?;
        executor.stop().await;
        let executor = Executor::start(&Config::default())?;
        let again = executor.handle().spawn_limited(Keeper::default(), Limits::new())?;
        ensure_eq!(again.inspect().and_then(|seen| seen.messages), Some(0), "messages of the last one");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A flood is refused by the bound of its own mailbox, memory by its own limit, and neither is another's.
    #[machine("isolation")]
    async fn bound_and_memory_at_once() -> Outcome {
        let executor = crowded()?;
        let beside = neighbours(&executor)?;
        let limit = MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("{error}")))?;
        let limits = Limits::new().memory(&limit).mailbox(Bound::new(4, WhenFull::Refuse));
        let own = executor.handle().spawn_limited(Keeper::default(), limits)?;
        let ends = Arc::new(AtomicBool::new(false));
        let answer = own.ask(Long(ends.clone()));
        let mut refused = 0;
        for number in 0..1000_u64 {
            refused += u64::from(matches!(own.send(Keep(100)), Err(SendError::Full(_))));
            let neighbour = beside[number as usize % beside.len()];
            neighbour.send(Number(number / beside.len() as u64 + 1))?;
        }
        ends.store(true, Ordering::Release);
        ensure!(answer.await?, "what it had was changed");
        ensure!(refused >= 900, "{refused} of 1000 were refused");
        for keeper in &beside {
            ensure_eq!(keeper.ask(Report).await?.1, 0, "of a neighbour's mail out of order");
        }
        // What it was sent while it was busy may still fill its mailbox.
        let refused = loop {
            match own.ask(Keep(LIMIT)).await {
                Err(AskError::Full) => sched::yield_now().await,
                answer => break !answer?,
            }
        };
        ensure!(refused, "more than there is");
        executor.stop().await;
        falls_to(&limit, 0).await
    }
}

/// Starts others that eat, and says how much they got: a process, and an actor on an executor of its own.
struct Starts;

impl Actor for Starts {}

impl Receive<Request<Fill, usize>> for Starts {
    type Reply = ();

    fn receive(&mut self, request: Request<Fill, usize>, _: &mut Context<Self>) {
        let started = sched::spawn(async move {
            let config = Config::default().workers(1).mailboxes(1);
            let filled = match Executor::start(&config) {
                Ok(executor) => {
                    let filled = match executor.handle().spawn(Keeper::default()) {
                        Ok(keeper) => keeper.ask(Fill).await.unwrap_or(0),
                        Err(_) => 0,
                    };
                    executor.stop().await;
                    filled
                }
                Err(_) => 0,
            };
            // An error only says that nobody waits any more.
            let _ = request.reply.send(filled);
        });
        drop(started);
    }
}

kernel_test! {
    /// What it starts is under its limit, and stays so when the limit is dropped and the actor has ended; then all of it comes back.
    #[machine("isolation")]
    async fn what_it_starts_pays_with_it() -> Outcome {
        let executor = crowded()?;
        let limit = MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("{error}")))?;
        let starts = executor.handle().spawn_limited(Starts, Limits::new().memory(&limit))?;
        let filled = starts.ask(Fill).await?;
        ensure!(filled > LIMIT / 4 && filled < LIMIT, "{filled} bytes are all that what it starts gets");
        falls_to(&limit, HOLD).await?;
        let keeper = executor.handle().spawn_limited(Keeper::default(), Limits::new().memory(&limit))?;
        ensure!(keeper.ask(Keep(LIMIT / 2)).await?, "it was refused");
        let numbers = || {
            let all: Vec<_> = core::iter::from_fn(|| MemoryLimit::new(1).ok()).collect();
            all.len()
        };
        let before = numbers();
        drop(limit);
        ensure_eq!(numbers(), before, "limits: one that is in force may not be given again");
        ensure!(!keeper.ask(Keep(LIMIT)).await?, "its limit is not in force any more");
        ensure!(keeper.ask(Keep(1000)).await?, "what is within it");
        starts.send(stop::End)?;
        keeper.send(stop::End)?;
        until(|| numbers() == before + 1, || alloc::format!("{} limits, {before} were", numbers())).await?;
        executor.stop().await;
        Ok(())
    }
}
