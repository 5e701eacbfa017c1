//! Each message arrives once, whatever ends the turn that it was sent in.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use core::time::Duration;

use magpie::actor::{Config, Executor};
use magpie::sched::{self};
use magpie_tests::{Failure, amount, ensure, ensure_eq, kernel_test};

use super::node::{Flood, Node, Others, Seen, Spread, Then, node, nodes, past_two_slices};

kernel_test! {
    /// A behaviour that panics has sent what it has sent.
    #[machine("isolation")]
    async fn what_a_crash_leaves_in_hand_arrives() -> Outcome {
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let nodes = nodes(&executor, &seen)?;
        let neighbour = handle.spawn_beside(nodes[0], node(&seen))?;
        let others: Vec<_> = nodes.iter().copied().chain([neighbour]).collect();
        for round in 1..=amount("rounds", 5) {
            // Each with nodes of its own, because the numbers of a sender begin anew.
            let sender = handle.spawn_beside(neighbour, Node { next: round - 1, ..node(&seen) })?;
            sender.send(Others(others.clone()))?.send(Spread(Then::Panic))?;
            sched::out_of_work().await;
            ensure_eq!(seen.handled(), round * others.len() as u64, "messages handled in round {round}");
            ensure!(!sender.is_alive(), "the sender is alive");
        }
        ensure_eq!(seen.out_of_order(), 0, "messages out of order");
        ensure_eq!(seen.refused(), 0, "messages that were refused");
        executor.stop().await;
        Ok(())
    }
}

/// Executors stop while behaviours send, which spin for so long now and then.
async fn stop_while_sending(spins: Duration) -> Result<(), Failure> {
    for round in 0..amount("restarts", 30) {
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default().reductions(50))?;
        let nodes = nodes(&executor, &seen)?;
        for node in &nodes {
            node.send(Others(nodes.clone()))?;
        }
        for node in nodes.iter().step_by(5) {
            node.send(Flood(1 + round % 3, spins))?;
        }
        for _ in 0..round % 5 {
            sched::yield_now().await;
        }
        let dropped = executor.stop().await;
        let (made, gone) = (seen.made.load(Ordering::Relaxed), seen.dropped.load(Ordering::Relaxed));
        ensure_eq!(gone, made, "messages dropped in round {round}");
        let counted = made - seen.refused() - seen.handled();
        // Others that were not delivered: what began the nodes and what makes them send.
        let uncounted = (nodes.len() + nodes.len().div_ceil(5)) as u64;
        ensure!(
            (counted..=counted + uncounted).contains(&dropped),
            "{dropped} not delivered in round {round}, of which {counted} were counted"
        );
        ensure_eq!(Arc::strong_count(&seen), 1, "owners at the end of round {round}");
    }
    Ok(())
}

kernel_test! {
    /// Each message of an executor that stops is handled or dropped, once.
    async fn an_executor_stops_with_mail_in_hand() -> Outcome {
        stop_while_sending(Duration::ZERO).await
    }
}

kernel_test! {
    /// The same while behaviours are suspended in the middle of sending.
    #[machine("preemption")]
    async fn an_executor_stops_while_suspended_behaviours_send() -> Outcome {
        stop_while_sending(past_two_slices()).await
    }
}
