//! Memory is used up while nodes are asked: who asks may end for want of it, and connections may, but no node.

use alloc::format;
use alloc::vec::Vec;

use magpie::sched::{self, yield_now};
use magpie_net::Faults;
use magpie_node::Error;
use magpie_tests::{HeapExhauster, amount, ensure, ensure_eq, kernel_test};

use crate::common::{Job, PATIENCE, Pair, THERE};

kernel_test! {
    #[machine("the host's memory is not used up")]
    async fn it_is_used_up() -> Outcome {
        let pair = Pair::start(Faults::none(), 1000).await?;
        ensure_eq!(pair.remote().await?.call::<u64>(&Job::Add(1), PATIENCE).await, Ok(1), "before");
        let mut askers = Vec::new();
        for number in 0..8 {
            let node = pair.here.clone();
            askers.push(sched::spawn(async move {
                for turn in 0..amount("asked", 40) {
                    // There are no such nodes, so each is a connection that is tried and fails.
                    let refused = node.connect(&format!("nobody{number}x{turn}@10.0.0.2")).await;
                    if refused != Err(Error::NotFound) {
                        yield_now().await;
                    }
                    let _ = (node.peers().await, node.connect(THERE).await);
                }
            })?);
        }
        {
            let mut exhauster = HeapExhauster::everything(16);
            for _ in 0..amount("turns", 200) {
                exhauster.take_more(16);
                yield_now().await;
            }
        }
        for asker in askers {
            // It may have ended where it had no memory for a name.
            let _ = asker.await;
        }
        ensure!(!pair.here.process().is_done() && !pair.there.process().is_done(), "a node has ended");
        let mut answer = Err(Error::Disconnected);
        while matches!(answer, Err(Error::Disconnected | Error::OutOfMemory)) {
            answer = match pair.remote().await {
                Ok(adder) => adder.call::<u64>(&Job::Add(1), PATIENCE).await,
                Err(error) => Err(error),
            };
        }
        ensure_eq!(answer, Ok(2), "afterwards");
        pair.end().await;
        Ok(())
    }
}
