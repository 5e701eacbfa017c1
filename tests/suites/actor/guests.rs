//! Mailboxes of idle workers that others handle: what becomes of them when their executor stops, and without memory.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::{sched, stats};
use magpie_tests::{HeapExhauster, amount, ensure, ensure_eq, kernel_test};

/// Sends on to all it knows, and counts what it gets.
struct Node {
    others: Vec<Addr<Node>>,
    handled: Arc<AtomicU64>,
}

impl Actor for Node {}

struct Others(Vec<Addr<Node>>);

impl Receive<Others> for Node {
    type Reply = ();

    fn receive(&mut self, Others(others): Others, _: &mut Context<Self>) {
        self.others = others;
    }
}

/// Goes on to one other so many times.
struct Token(u64);

impl Receive<Token> for Node {
    type Reply = ();

    fn receive(&mut self, Token(left): Token, _: &mut Context<Self>) {
        self.handled.fetch_add(1, Ordering::Relaxed);
        if left > 0
            && let Some(next) = self.others.get(left as usize % self.others.len().max(1))
        {
            let _ = next.send(Token(left - 1));
        }
    }
}

/// Goes to all others.
struct Spread;

impl Receive<Spread> for Node {
    type Reply = ();

    fn receive(&mut self, _: Spread, _: &mut Context<Self>) {
        for other in &self.others {
            let _ = other.send(Token(0));
        }
    }
}

/// A node in every mailbox that may be stolen.
fn nodes(executor: &Executor, handled: &Arc<AtomicU64>) -> Result<Vec<Addr<Node>>, magpie_tests::Failure> {
    let handle = executor.handle();
    let mut nodes = Vec::new();
    for _ in 0..handle.mailboxes() {
        nodes.push(handle.spawn(Node { others: Vec::new(), handled: handled.clone() })?);
    }
    Ok(nodes)
}

fn guests() -> u64 {
    stats::worker_total(|worker| worker.guests.get())
}

kernel_test! {
    /// An executor stops while guests wait in lists; the next one, which gets the same mailboxes, misses nothing.
    #[cores(2)]
    async fn an_executor_stops_while_guests_wait() -> Outcome {
        let rounds = amount("restarts", 100);
        let before = guests();
        for round in 0..rounds {
            let handled = Arc::new(AtomicU64::new(0));
            let executor = Executor::start(&Config::default())?;
            let nodes = nodes(&executor, &handled)?;
            nodes[0].send(Others(nodes.clone()))?;
            // Whatever of the last executor were left would keep one of these from being handled.
            for node in &nodes {
                node.send(Token(0))?;
            }
            sched::out_of_work().await;
            ensure_eq!(handled.load(Ordering::Relaxed), nodes.len() as u64, "messages handled in round {round}");
            nodes[0].send(Spread)?;
            if round % 2 == 0 {
                sched::yield_now().await;
            }
            let dropped = executor.stop().await;
            let arrived = handled.load(Ordering::Relaxed) - nodes.len() as u64;
            let sent = nodes.len() as u64;
            // Those that were sent after the mailboxes were closed came back to their sender.
            ensure!(arrived + dropped <= sent + 1, "{arrived} handled and {dropped} dropped of {sent}");
        }
        ensure!(guests() > before, "no mailbox was ever a guest");
        Ok(())
    }
}

kernel_test! {
    /// With the heap used up tokens go round over all mailboxes all the same.
    #[cores(2)]
    #[machine("the kernel's heap")]
    async fn guests_are_handled_with_memory_used_up() -> Outcome {
        const HOPS: u64 = 20_000;
        const TOKENS: u64 = 3;
        let handled = Arc::new(AtomicU64::new(0));
        let executor = Executor::start(&Config::default())?;
        let nodes = nodes(&executor, &handled)?;
        for node in &nodes {
            node.send(Others(nodes.clone()))?;
        }
        sched::out_of_work().await;
        let before = guests();
        let exhauster = HeapExhauster::everything(16);
        let sent = nodes.iter().take(TOKENS as usize).filter(|node| node.send(Token(HOPS)).is_ok()).count() as u64;
        // Nothing here may need memory.
        while handled.load(Ordering::Relaxed) < sent * (HOPS + 1) {
            sched::yield_now().await;
        }
        drop(exhauster);
        ensure_eq!(sent, TOKENS, "tokens that were sent");
        ensure!(guests() > before, "no mailbox was ever a guest");
        executor.stop().await;
        Ok(())
    }
}
