//! Ends, and who hears of them.

use alloc::string::ToString;
use alloc::vec::Vec;

use magpie::channel::ProcessMailbox;
use magpie::registry;
use magpie::sched::{self, Setting};
use magpie_net::Faults;
use magpie_node::{Error, RemoteDown};
use magpie_tests::{Changed, Failure, amount, ensure, ensure_eq, kernel_test};

use crate::common::{Adder, Job, PATIENCE, Pair, THERE};

async fn down(downs: &mut ProcessMailbox<RemoteDown>) -> Result<RemoteDown, Failure> {
    let down = downs.receive_within(PATIENCE).await.map_err(|_| "no word of an end")?;
    down.ok_or_else(|| "the mailbox is gone".into())
}

kernel_test! {
    /// A crash is heard of with its reason, and who is started anew is there again.
    async fn a_crash_is_told_with_its_reason() -> Outcome {
        let pair = Pair::start(Faults::none(), 1000).await?;
        let adder = pair.remote().await?;
        let mut downs = ProcessMailbox::new(4)?;
        let monitor = adder.monitor(&downs.address()).await?;
        let answer = adder.call::<u64>(&Job::Crash, PATIENCE).await;
        ensure!(matches!(&answer, Err(Error::Ended(reason)) if reason.as_term().to_string().contains("asked to crash")),
            "the call: {answer:?}");
        let told = down(&mut downs).await?;
        ensure_eq!(told.monitor, monitor, "which monitor");
        ensure!(told.reason.as_term().to_string().contains("asked to crash"), "why: {:?}", told.reason);

        let answer = adder.call::<u64>(&Job::Add(1), PATIENCE).await;
        ensure!(matches!(&answer, Err(Error::Ended(reason)) if reason.as_term().to_string() == "noproc"),
            "to nobody: {answer:?}");
        registry::register(&pair.name, pair.executor.handle().spawn(Adder(0))?)?;
        ensure_eq!(adder.call::<u64>(&Job::Add(1), PATIENCE).await, Ok(1), "to the next one");
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// Whose request is dropped with the other mail of an actor that crashes, suspended before, hears of the end, and gets no answer that is none.
    async fn who_waits_behind_a_crash_hears_of_it() -> Outcome {
        const WAIT: u64 = 8;
        let _short = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        let pair = Pair::start(Faults::none(), 1000).await?;
        let adder = pair.remote().await?;
        for round in 0..amount("rounds", 50) {
            let mut calls = Vec::new();
            for job in [Job::Linger(1_000), Job::Crash].into_iter().chain((0..WAIT).map(Job::Add)) {
                let adder = adder.clone();
                calls.push(sched::spawn(async move { adder.call::<u64>(&job, PATIENCE).await })?);
            }
            for call in calls {
                // In whatever order they come.
                let answer = call.await?;
                ensure!(matches!(&answer, Ok(_) | Err(Error::Ended(_))), "who waits in round {round}: {answer:?}");
            }
            registry::register(&pair.name, pair.executor.handle().spawn(Adder(0))?)?;
        }
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// The other node ends: who waits for an answer and who monitors hear of it.
    async fn a_node_that_goes_is_heard_of() -> Outcome {
        let pair = Pair::start(Faults::none(), 1000).await?;
        let adder = pair.remote().await?;
        let mut downs = ProcessMailbox::new(4)?;
        adder.monitor(&downs.address()).await?;
        let waits = magpie::sched::spawn(async move {
            adder.call::<u64>(&Job::Linger(200_000), PATIENCE).await
        })?;
        magpie::time::sleep(core::time::Duration::from_millis(20)).await;
        pair.there.process().kill();
        ensure_eq!(waits.await?, Err(Error::Disconnected), "who waits");
        ensure_eq!(down(&mut downs).await?.reason.as_term().to_string(), "noconnection", "who monitors");
        // The line's own end comes last.
        let gone = async { while !pair.here.peers().await?.is_empty() {} Ok::<_, Error>(()) };
        magpie::time::background_timeout(PATIENCE, gone).await.map_err(|_| "it is connected for ever")??;
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// The process of a line is killed: who waits for an answer and who monitors hear of it, once, and the next use connects anew.
    async fn a_line_that_is_killed_leaves_nobody_waiting() -> Outcome {
        let pair = Pair::start(Faults::none(), 1000).await?;
        let adder = pair.remote().await?;
        let mut downs = ProcessMailbox::new(8)?;
        let (first, second) = (adder.monitor(&downs.address()).await?, adder.monitor(&downs.address()).await?);
        let taken_back = adder.monitor(&downs.address()).await?;
        adder.demonitor(taken_back).await?;
        let waits = magpie::sched::spawn({
            let adder = adder.clone();
            async move { adder.call::<u64>(&Job::Linger(200_000), PATIENCE).await }
        })?;
        magpie::time::sleep(core::time::Duration::from_millis(20)).await;
        let mut killed = 0;
        for line in sched::processes().filter(|process| process.type_name().contains("Desk>::begin") || process.type_name().contains("Desk::begin")) {
            line.kill();
            killed += 1;
        }
        ensure_eq!(killed, 1, "lines that this side began");
        ensure_eq!(waits.await?, Err(Error::Disconnected), "who waits");
        let mut told = [down(&mut downs).await?, down(&mut downs).await?];
        told.sort_by_key(|down| down.monitor);
        ensure_eq!(told.each_ref().map(|down| down.monitor), [first, second], "which monitors");
        for down in &told {
            ensure_eq!(down.reason.as_term().to_string(), "noconnection", "why");
        }
        let mut answer = Err(Error::Disconnected);
        while answer == Err(Error::Disconnected) {
            answer = adder.call::<u64>(&Job::Add(1), PATIENCE).await;
        }
        ensure!(answer.is_ok(), "afterwards: {answer:?}");
        ensure!(downs.try_receive().is_none(), "somebody was told twice");
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// It is there again, and so is its actor, with the next use.
    async fn a_node_that_comes_back_is_found() -> Outcome {
        let pair = Pair::start(Faults::none(), 1000).await?;
        let adder = pair.remote().await?;
        ensure_eq!(adder.call::<u64>(&Job::Add(1), PATIENCE).await, Ok(1), "before");
        pair.there.process().kill();
        let mut again = None;
        while again.is_none() {
            // Until its ports are free.
            again = magpie_node::Node::start(&pair.networks.1, crate::common::config(THERE, &pair.name)).await.ok();
            magpie::time::sleep(core::time::Duration::from_millis(1)).await;
        }
        let mut answer = Err(Error::Disconnected);
        // The old connection may not yet be known to have gone.
        for _ in 0..100 {
            answer = adder.call::<u64>(&Job::Add(1), PATIENCE).await;
            if answer.is_ok() {
                break;
            }
            magpie::time::sleep(core::time::Duration::from_millis(5)).await;
        }
        ensure_eq!(answer, Ok(2), "after");
        if let Some(again) = again {
            again.process().kill();
        }
        pair.end().await;
        Ok(())
    }
}
