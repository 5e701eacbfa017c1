//! Messages and calls that go as they should.

use alloc::string::String;
use alloc::vec::Vec;

use core::time::Duration;

use magpie::sched::{self, yield_now};
use magpie::time;
use magpie_net::Faults;
use magpie_node::Error;
use magpie_tests::{Failure, amount, ensure, ensure_eq, kernel_test};

use crate::common::{HERE, Job, PATIENCE, Pair, THERE, hold};

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
    /// Both sides have more to say than may wait to be sent, and are asked meanwhile: neither stops listening because it cannot answer.
    async fn long_calls_go_both_ways() -> Outcome {
        const LENGTH: usize = 200_000;
        let pair = Pair::start(Faults::none(), 4000).await?;
        pair.here.connect(THERE).await?;
        let mut callers = Vec::new();
        for number in 0..48 {
            let (node, peer) = if number % 2 == 0 { (&pair.here, THERE) } else { (&pair.there, HERE) };
            let adder = node.recipient::<Job>(peer, &pair.name).await?;
            callers.push(sched::spawn(async move {
                for _ in 0..4 {
                    let answer = adder.call::<u64>(&Job::Text("t".repeat(LENGTH)), PATIENCE).await?;
                    ensure_eq!(answer, LENGTH as u64, "what has arrived");
                }
                Ok::<_, Failure>(())
            })?);
        }
        for caller in callers {
            caller.await??;
        }
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

kernel_test! {
    /// As many answers are awaited as may be, and none comes: the line still hears, and refuses one more call.
    async fn a_call_beyond_all_places_is_refused() -> Outcome {
        // What a line awaits at most (`docs/cluster.md`), and some more.
        const PLACES: usize = 1024;
        const MORE: usize = 40;
        let pair = Pair::start_alike(Faults::none(), 4000, |mut config| {
            // A call is a monitor, too.
            (config.limits.calls, config.limits.monitors) = (PLACES + MORE, PLACES + MORE);
            config
        })
        .await?;
        let adder = pair.remote().await?;
        hold(true);
        adder.cast(&Job::Hold).await?;
        let mut callers = Vec::new();
        for _ in 0..PLACES + MORE {
            let adder = adder.clone();
            callers.push(sched::spawn(async move {
                // As many at once may be more than a line takes orders.
                loop {
                    match adder.call::<u64>(&Job::Add(1), PATIENCE).await {
                        Err(Error::Busy) => yield_now().await,
                        answer => return answer,
                    }
                }
            })?);
        }
        while pair.there.statistics().refused_calls < MORE as u64 {
            time::sleep(Duration::from_millis(1)).await;
        }
        hold(false);
        let (mut answered, mut refused) = (0, 0);
        for caller in callers {
            match caller.await? {
                Ok(_) => answered += 1,
                // It is not the number that was asked for.
                Err(Error::Shape(_)) => refused += 1,
                Err(error) => return Err(error.into()),
            }
        }
        ensure_eq!((answered, refused), (PLACES, MORE), "calls that were answered, and refused");
        ensure_eq!(
            adder.call::<u64>(&Job::Add(0), PATIENCE).await,
            Ok(PLACES as u64),
            "what was added"
        );
        pair.end().await;
        Ok(())
    }
}
