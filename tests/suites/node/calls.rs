//! Messages and calls that go as they should.

use alloc::string::String;
use alloc::vec::Vec;

use magpie::sched;
use magpie_net::Faults;
use magpie_tests::{amount, ensure, ensure_eq, kernel_test};

use crate::common::{HERE, Job, PATIENCE, Pair, THERE};

kernel_test! {
    async fn a_call_is_answered() -> Outcome {
        let pair = Pair::start(Faults::none(), 1000).await?;
        let adder = pair.remote().await?;
        ensure_eq!(adder.call::<u64>(&Job::Add(3), PATIENCE).await, Ok(3), "the first");
        adder.cast(&Job::Add(4)).await?;
        adder.send(&Job::Add(5)).await?;
        ensure_eq!(adder.call::<u64>(&Job::Add(0), PATIENCE).await, Ok(12), "after a cast and a message");
        let text: String = "t".repeat(100_000);
        ensure_eq!(adder.call::<u64>(&Job::Text(text), PATIENCE).await, Ok(100_000), "a long one");
        ensure_eq!(pair.here.peers().await?, [THERE], "who is connected");
        ensure_eq!(pair.there.peers().await?, [HERE], "who is connected there");
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// Both sides, many callers each, over a cable that loses and reorders.
    async fn many_call_both_ways() -> Outcome {
        let faults = Faults { lost: 1, doubled: 2, reordered: 5, corrupted: 1, seed: amount("seed", 7) };
        let pair = Pair::start(faults, 4000).await?;
        pair.here.connect(THERE).await?;
        let calls = amount("calls", 50);
        let mut callers = Vec::new();
        for number in 0..64 {
            let (node, peer) = if number % 2 == 0 { (&pair.here, THERE) } else { (&pair.there, HERE) };
            let adder = node.recipient::<Job>(peer, &pair.name).await?;
            callers.push(sched::spawn(async move {
                for _ in 0..calls {
                    adder.call::<u64>(&Job::Add(1), PATIENCE).await?;
                }
                Ok::<_, magpie_node::Error>(())
            })?);
        }
        for caller in callers {
            caller.await??;
        }
        let adder = pair.remote().await?;
        ensure_eq!(adder.call::<u64>(&Job::Add(0), PATIENCE).await, Ok(64 * calls), "all calls");
        pair.end().await;
        Ok(())
    }
}

kernel_test! {
    /// Each begins; one connection stays.
    async fn both_connect_at_once() -> Outcome {
        for _ in 0..amount("rounds", 10) {
            let pair = Pair::start(Faults::none(), 1000).await?;
            let (here, there) = (pair.here.clone(), pair.there.clone());
            let one = sched::spawn(async move { here.connect(THERE).await })?;
            let other = sched::spawn(async move { there.connect(HERE).await })?;
            let both = (one.await?, other.await?);
            ensure!(both == (Ok(()), Ok(())), "{both:?}");
            ensure_eq!((pair.here.peers().await?.len(), pair.there.peers().await?.len()), (1, 1), "connections");
            ensure_eq!(pair.remote().await?.call::<u64>(&Job::Add(1), PATIENCE).await, Ok(1), "a call");
            pair.end().await;
        }
        Ok(())
    }
}
