//! Each mailbox has its turn.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use magpie::actor::{Config, Executor};
use magpie::sched::{self};
use magpie_tests::{Failure, amount, ensure, ensure_eq, kernel_test};

use super::node::{Ball, Balls, Node, Others, Seen, Throw, Token, node, nodes};

/// Balls are thrown in so many mailboxes of one worker, from each to itself or, between two beside each other in the first, to
/// the other. How many have come in each mailbox by the time when so many have come in all.
async fn balls(mailboxes: usize, all: u64) -> Result<Vec<u64>, Failure> {
    let seen = Arc::new(Seen::default());
    let executor = Executor::start(&Config::default().workers(1).mailboxes(mailboxes))?;
    let handle = executor.handle();
    let nodes = nodes(&executor, &seen)?;
    let neighbour = handle.spawn_beside(nodes[0], node(&seen))?;
    neighbour.send(Others(vec![nodes[0]]))?;
    nodes[0].send(Others(vec![neighbour]))?;
    for node in &nodes[1..] {
        node.send(Others(vec![*node]))?;
    }
    // From one behaviour, so that none begins before the others.
    let thrower = handle.spawn_beside(nodes[0], node(&seen))?;
    thrower.send(Others(nodes.clone()))?;
    sched::out_of_work().await;
    thrower.send(Throw)?;
    while seen.handled() < all {
        sched::yield_now().await;
    }
    seen.gave_up.store(1, Ordering::Relaxed);
    sched::out_of_work().await;
    let mut came = Vec::new();
    for node in &nodes {
        came.push(node.ask(Balls).await?);
    }
    came[0] += neighbour.ask(Balls).await?;
    ensure_eq!(seen.refused(), 0, "balls that were refused");
    executor.stop().await;
    Ok(came)
}

kernel_test! {
    /// Mailboxes that always have mail, because their actors send to themselves or to each other, all have their turns.
    async fn mailboxes_that_never_empty_take_turns() -> Outcome {
        // With many, not all have a turn in each of the worker's.
        for mailboxes in [16, 300] {
            let came = balls(mailboxes, amount("balls", 400) * mailboxes as u64).await?;
            let (least, most) = (came.iter().min(), came.iter().max());
            let (Some(&least), Some(&most)) = (least, most) else { continue };
            ensure!(most < 4 * least, "of {mailboxes} mailboxes one had {least} messages, another {most}");
        }
        Ok(())
    }
}

kernel_test! {
    /// Two beside each other that never stop sending to one another do not keep what is under way between other mailboxes.
    async fn neighbours_do_not_keep_others_waiting() -> Outcome {
        const TOKENS: u64 = 15;
        let seen = Arc::new(Seen::default());
        let pair = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default().workers(1).mailboxes(16))?;
        let handle = executor.handle();
        let nodes = nodes(&executor, &seen)?;
        let hops = amount("hops", 300);
        // Not what the two do while the process that starts and ends all this waits for the host.
        let player = || Node { during: Some((seen.clone(), TOKENS * (hops + 1))), ..node(&pair) };
        let first = handle.spawn_beside(nodes[0], player())?;
        let second = handle.spawn_beside(first, player())?;
        first.send(Others(vec![second]))?;
        second.send(Others(vec![first]))?;
        for node in &nodes[1..] {
            node.send(Others(nodes[1..].to_vec()))?;
        }
        sched::out_of_work().await;
        first.send(Ball)?;
        for node in &nodes[1..] {
            node.send(Token(hops))?;
        }
        while seen.handled() < TOKENS * (hops + 1) {
            sched::yield_now().await;
        }
        let passed = pair.handled();
        pair.gave_up.store(1, Ordering::Relaxed);
        sched::out_of_work().await;
        // What fits into a buffer may be handled at once: at most 42 messages, while each of the tokens has a hop.
        let most = 2 * 42 * hops;
        ensure!(passed <= most, "{passed} messages went between two while {TOKENS} tokens made {hops} hops each");
        ensure_eq!(seen.refused() + pair.refused(), 0, "messages that were refused");
        executor.stop().await;
        Ok(())
    }
}
