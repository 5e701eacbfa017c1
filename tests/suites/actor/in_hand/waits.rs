//! Who need not wait for whom.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use magpie::actor::{Config, Executor};
use magpie::arch::CoreId;
use magpie::sched::{self, Spawn};
use magpie_tests::{HeapExhauster, amount, ensure_eq, kernel_test};

use super::node::{Numbered, Others, Seen, Spread, Then, node, nodes};

kernel_test! {
    /// A behaviour sends to all others and then waits, without giving way, until they have handled it.
    #[machine("preemption")]
    async fn nobody_waits_behind_the_sender() -> Outcome {
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default())?;
        let nodes = nodes(&executor, &seen)?;
        let sender = executor.handle().spawn_beside(nodes[0], node(&seen))?;
        sender.send(Others(nodes.clone()))?;
        for round in 1..=amount("rounds", 20) {
            sender.send(Spread(Then::SpinUntil(round * nodes.len() as u64)))?;
            sched::out_of_work().await;
            ensure_eq!(seen.handled(), round * nodes.len() as u64, "messages handled in round {round}");
        }
        ensure_eq!(seen.out_of_order(), 0, "messages out of order");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// What comes from elsewhere for a mailbox that was emptied in the same turn does not wait for a behaviour that spins,
    /// though that is not suspended: with memory used up it cannot be.
    #[cores(2)]
    #[machine("the kernel's heap")]
    async fn mail_from_elsewhere_does_not_wait_for_the_turn() -> Outcome {
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let elsewhere: Vec<_> = handle.cores().iter().filter(|&core| core != CoreId::BOOT).collect();
        let nodes = elsewhere.iter().map(|&core| handle.spawn_on(core, node(&seen)));
        let nodes = nodes.collect::<Result<Arc<[_]>, _>>()?;
        let all = nodes.len() as u64;
        // It spreads, and is told by another, when the worker comes to that after all nodes, to spin.
        let sender = handle.spawn_pinned(CoreId::BOOT, node(&seen))?;
        let by = handle.spawn_on(CoreId::BOOT, node(&seen))?;
        sender.send(Others(nodes.to_vec()))?;
        // Each has been used once, so none needs memory later.
        sender.send(Spread(Then::Tell(by, sender, 0)))?;
        sched::out_of_work().await;
        for round in 0..amount("rounds", 4) {
            // While these wait no other core is idle, so nothing is given away before its time. The first that sees it
            // spin sends.
            let mut others = Vec::new();
            for &core in &elsewhere {
                let (nodes, seen) = (nodes.clone(), seen.clone());
                others.push(Spawn::new().pinned(core).start(async move {
                    while seen.spinning.load(Ordering::Relaxed) < round + 2 {
                        sched::yield_now().await;
                    }
                    let is_first = seen.second_mail.fetch_max(round + 1, Ordering::Relaxed) == round;
                    !is_first || nodes.iter().all(|node| node.send(Numbered { sender: 1, number: round }).is_ok())
                })?);
            }
            let exhauster = HeapExhauster::everything(16);
            let handled = all * (3 + 2 * round);
            let sent = sender.send(Spread(Then::Tell(by, sender, handled))).map(drop);
            sched::out_of_work().await;
            drop(exhauster);
            sent?;
            for other in others {
                ensure_eq!(other.await, Ok(true), "whether all could be sent to");
            }
            ensure_eq!(seen.gave_up.load(Ordering::Relaxed), 0, "behaviours that others' mail has waited for");
            ensure_eq!(seen.handled(), handled, "messages handled in round {round}");
        }
        ensure_eq!(seen.refused(), 0, "messages that were refused");
        ensure_eq!(seen.out_of_order(), 0, "messages out of order");
        executor.stop().await;
        Ok(())
    }
}
