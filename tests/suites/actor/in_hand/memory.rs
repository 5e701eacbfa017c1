//! With memory used up, with a bound, and to more mailboxes than may be in hand.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use magpie::actor::{Bound, Config, Executor, WhenFull};
use magpie::sched::{self};
use magpie::stats;
use magpie::time::Instant;
use magpie_tests::{Changed, Failure, HANGS_AFTER, HeapExhauster, amount, ensure, ensure_eq, kernel_test};

use super::node::{Fill, Node, Others, Seen, Spread, Then, Token, node, nodes};

/// With the heap used up tokens go round over all mailboxes. Some were never used before, if not `warm`.
async fn rounds_without_memory(warm: bool) -> Result<(), Failure> {
    const HOPS: u64 = 5_000;
    const TOKENS: usize = 3;
    let seen = Arc::new(Seen::default());
    let executor = Executor::start(&Config::default())?;
    let nodes = if warm {
        nodes(&executor, &seen)?
    } else {
        // They know from the beginning whom to send to: each to one of its own, or its mailbox would have to grow.
        let ends = nodes(&executor, &seen)?;
        let mut nodes = Vec::new();
        for (index, _) in ends.iter().enumerate() {
            let others = vec![ends[(index + 3) % ends.len()]];
            nodes.push(executor.handle().spawn(Node { others, ..node(&seen) })?);
        }
        nodes
    };
    if warm {
        for node in &nodes {
            node.send(Others(nodes.clone()))?;
        }
    }
    sched::out_of_work().await;
    let exhauster = HeapExhauster::everything(16);
    let (hops, senders) = if warm { (HOPS, TOKENS) } else { (1, nodes.len()) };
    let sent = nodes.iter().take(senders).filter(|node| node.send(Token(hops)).is_ok()).count() as u64;
    let began = Instant::now();
    // Nothing here may need memory.
    while seen.handled() < sent * (hops + 1) && began.elapsed() < HANGS_AFTER {
        sched::yield_now().await;
    }
    let handled = seen.handled();
    drop(exhauster);
    ensure_eq!(seen.refused(), 0, "tokens that were refused");
    ensure_eq!(sent, senders as u64, "tokens that were sent");
    ensure_eq!(handled, sent * (hops + 1), "hops without memory");
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// Mailboxes that have been used have all that they need.
    #[machine("the kernel's heap")]
    async fn rings_go_round_with_memory_used_up() -> Outcome {
        rounds_without_memory(true).await
    }
}

kernel_test! {
    /// So have those that have not.
    #[machine("the kernel's heap")]
    async fn new_mailboxes_are_handled_with_memory_used_up() -> Outcome {
        rounds_without_memory(false).await
    }
}

kernel_test! {
    /// What a behaviour sends to itself counts for its mailbox's bound.
    async fn a_bound_holds_for_what_is_sent_to_oneself() -> Outcome {
        const BOUND: u32 = 8;
        let _whole_turns = Changed::no_preemption()?;
        let seen = Arc::new(Seen::default());
        let config = Config::default().bound(Bound::new(BOUND, WhenFull::Refuse));
        let executor = Executor::start(&config)?;
        let actor = executor.handle().spawn(node(&seen))?;
        let rounds = amount("rounds", 10);
        for round in 1..=rounds {
            actor.send(Fill(100))?;
            sched::out_of_work().await;
            ensure_eq!(seen.handled(), round * u64::from(BOUND), "messages handled in round {round}");
        }
        ensure_eq!(seen.refused(), rounds * (100 - u64::from(BOUND)), "messages that were refused");
        let most = executor.handle().high_water().messages;
        ensure!(most <= BOUND, "{most} messages waited");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A behaviour sends to thousands of mailboxes. Its worker has few of them in hand at once, so that giving them back never
    /// takes long.
    async fn few_are_in_hand_at_once() -> Outcome {
        const MOST: u64 = 128;
        // A sender that is suspended gives all of it back, however few they are by then.
        let _whole_turns = Changed::no_preemption()?;
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default().mailboxes(amount("mailboxes", 4000) as usize))?;
        let nodes = nodes(&executor, &seen)?;
        let sender = executor.handle().spawn_beside(nodes[0], node(&seen))?;
        sender.send(Others(nodes.clone()))?;
        for round in 1..=3 {
            sender.send(Spread(Then::Nothing))?;
            sched::out_of_work().await;
            ensure_eq!(seen.handled(), round * nodes.len() as u64, "messages handled in round {round}");
        }
        let most = executor.handle().cores().iter().map(|core| stats::worker(core).most_in_hand.get()).max();
        ensure_eq!(most, Some(MOST), "the most mailboxes in hand at once");
        ensure_eq!(seen.out_of_order(), 0, "messages out of order");
        ensure_eq!(seen.refused(), 0, "messages that were refused");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// What an actor sends to itself, one message after another, needs no more memory the longer it goes on, and the more often.
    async fn a_lone_message_needs_little_memory() -> Outcome {
        const MOST_BYTES: usize = 16 << 10;
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default().workers(1).mailboxes(1))?;
        let actor = executor.handle().spawn(node(&seen))?;
        actor.send(Others(vec![actor]))?;
        sched::out_of_work().await;
        let messages = amount("messages", 3_000);
        for round in 1..=30 {
            actor.send(Token(messages))?;
            sched::out_of_work().await;
            ensure_eq!(seen.handled(), round * (messages + 1), "messages handled in round {round}");
        }
        let most = executor.handle().high_water().bytes;
        ensure!(most <= MOST_BYTES, "{most} bytes for one message at a time");
        executor.stop().await;
        Ok(())
    }
}
