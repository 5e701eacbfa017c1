//! Messages keep their order.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use core::time::Duration;

use magpie::actor::{Config, Executor};
use magpie::sched::{self, Setting, Spawn};
use magpie_tests::{Changed, Failure, amount, ensure, ensure_eq, kernel_test};

use super::node::{Grow, Numbered, Others, Seen, Talk, TalkLong, node, nodes, past_two_slices};

/// Talkers beside the nodes, and processes, send numbered messages to all nodes. Whether some are suspended in the middle
/// of it is for `spins` to say.
async fn many_talk(config: &Config, spins: Duration) -> Result<(), Failure> {
    const TALKERS: usize = 4;
    const PROCESSES: usize = 3;
    const ROUNDS: u64 = 20;
    let seen = Arc::new(Seen::default());
    let executor = Executor::start(config)?;
    let handle = executor.handle();
    let nodes = nodes(&executor, &seen)?;
    let mut talkers = Vec::new();
    for index in 0..TALKERS {
        let talker = handle.spawn_beside(nodes[index * nodes.len() / TALKERS], node(&seen))?;
        // A node, and one that talks itself, whose mail is put aside while it is suspended.
        talker.send(Others(nodes.iter().copied().chain([talker]).collect()))?;
        talkers.push(talker);
    }
    sched::out_of_work().await;
    let bursts = amount("bursts", 6);
    let mut processes = Vec::new();
    for index in 0..PROCESSES {
        let (nodes, seen) = (nodes.clone(), seen.clone());
        processes.push(Spawn::new().start(async move {
            for number in 0..bursts * ROUNDS {
                for node in &nodes {
                    let refused = node.send(Numbered { sender: TALKERS + index, number }).is_err();
                    seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
                }
                if number % 3 == 0 {
                    sched::yield_now().await;
                }
            }
        })?);
    }
    for _ in 0..bursts {
        for (sender, talker) in talkers.iter().enumerate() {
            talker.send(Talk { sender, rounds: ROUNDS, spins })?;
        }
        sched::yield_now().await;
    }
    for process in processes {
        ensure!(process.await.is_ok(), "a process crashed");
    }
    sched::out_of_work().await;
    let per_sender = bursts * ROUNDS;
    let expected = per_sender * (nodes.len() * (TALKERS + PROCESSES) + TALKERS) as u64;
    ensure_eq!(seen.refused(), 0, "messages that were refused");
    ensure_eq!(seen.out_of_order(), 0, "messages out of order");
    ensure_eq!(seen.handled(), expected, "messages handled");
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// Several send to the same mailboxes, from behaviours and from processes: the order of each sender's messages is kept.
    async fn many_senders_keep_their_order() -> Outcome {
        many_talk(&Config::default(), Duration::ZERO).await?;
        // Turns that end in the middle of a batch, with mail left over.
        many_talk(&Config::default().reductions(7), Duration::ZERO).await
    }
}

kernel_test! {
    /// The same from behaviours that are suspended halfway, and go on elsewhere.
    #[machine("preemption")]
    async fn suspended_senders_keep_their_order() -> Outcome {
        many_talk(&Config::default(), past_two_slices()).await?;
        many_talk(&Config::default().reductions(7), past_two_slices()).await
    }
}

kernel_test! {
    /// What a behaviour sends to its own actor keeps its order, too, wherever it is suspended in between.
    #[machine("preemption")]
    async fn what_is_sent_to_oneself_keeps_its_order() -> Outcome {
        // As short as a slice may be, so that it is suspended again and again.
        let _short = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        for round in 0..amount("rounds", 100) {
            let seen = Arc::new(Seen::default());
            let executor = Executor::start(&Config::default())?;
            let actor = executor.handle().spawn(node(&seen))?;
            let messages = 500 + 37 * round;
            actor.send(Grow(messages, past_two_slices()))?;
            sched::out_of_work().await;
            ensure_eq!(seen.refused(), 0, "messages that were refused");
            ensure_eq!(seen.handled(), messages, "messages handled");
            ensure_eq!(seen.out_of_order(), 0, "messages out of order");
            executor.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// With one mailbox for each worker senders and receivers are in each other's batches.
    #[machine("preemption")]
    async fn senders_in_few_mailboxes_keep_their_order() -> Outcome {
        many_talk(&Config::default().mailboxes(magpie::machine::cores()), past_two_slices()).await
    }
}

kernel_test! {
    /// What is longer than a buffer comes between what is short, in order.
    async fn long_messages_keep_their_order() -> Outcome {
        const SENDERS: usize = 3;
        let rounds = amount("rounds", 30);
        for segment_bytes in [64, 128, 1024] {
            let seen = Arc::new(Seen::default());
            let executor = Executor::start(&Config::default().segment_bytes(segment_bytes))?;
            let nodes = nodes(&executor, &seen)?;
            for node in &nodes {
                node.send(Others(nodes.clone()))?;
            }
            for _ in 0..5 {
                for sender in 0..SENDERS {
                    nodes[sender * nodes.len() / SENDERS].send(TalkLong { sender, rounds })?;
                }
                sched::out_of_work().await;
            }
            ensure_eq!(seen.refused(), 0, "messages that were refused, with buffers of {segment_bytes}");
            ensure_eq!(seen.out_of_order(), 0, "messages out of order, with buffers of {segment_bytes}");
            let expected = 5 * rounds * (SENDERS * nodes.len()) as u64;
            ensure_eq!(seen.handled(), expected, "messages handled, with buffers of {segment_bytes}");
            executor.stop().await;
        }
        Ok(())
    }
}
