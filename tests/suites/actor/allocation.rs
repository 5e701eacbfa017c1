//! What a send allocates once queues have grown: nothing.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::internals::mem::heap::HEAP;
use magpie::sched;
use magpie::stats;
use magpie_tests::{Changed, Outcome, ensure, ensure_eq, kernel_test};

/// Counts, and passes on what has a way to go.
struct Relay {
    next: Option<Addr<Relay>>,
    handled: Arc<AtomicU64>,
}

impl Actor for Relay {}

/// How many more hops it makes.
struct Token(u64);

/// A message of the largest size that lies in an envelope.
struct Large([u64; 128]);

impl Receive<Token> for Relay {
    type Reply = ();

    fn receive(&mut self, token: Token, context: &mut Context<Self>) {
        self.handled.fetch_add(1, Ordering::Relaxed);
        if let (Some(next), Some(left)) = (self.next, token.0.checked_sub(1))
            && next.send(Token(left)).is_err()
        {
            context.end();
        }
    }
}

impl Receive<Large> for Relay {
    type Reply = ();

    fn receive(&mut self, large: Large, _: &mut Context<Self>) {
        self.handled.fetch_add(u64::from(large.0[127] == 127), Ordering::Relaxed);
    }
}

/// Actors in a row, each in a mailbox of its own.
const RELAYS: u64 = 10;
/// Tokens in one round, each of which is handled by every relay; and large messages.
const BURST: u64 = 200;
/// More than ever waits in one mailbox of this test.
const SEGMENT_BYTES: usize = 1 << 16;
/// So many rounds in a row must pass without an allocation.
const ROUNDS: u64 = 100;
/// Buffers go round between mailboxes and workers: after so many rounds each of them must have grown.
const MOST_ROUNDS: u64 = 1000;

kernel_test! {
    /// Sends from a process and from behaviours, on the same core and across cores: once the buffers have
    /// grown, the count of all allocations of the machine stays where it is.
    #[machine("the kernel's heap")]
    async fn sends_allocate_nothing_in_steady_state() -> Outcome {
        // A behaviour that is suspended takes a stack, a batch and a process along; that is not the send's doing.
        let _whole_turns = Changed::no_preemption()?;
        sends_allocate_nothing().await
    }
}

async fn sends_allocate_nothing() -> Outcome {
    let executor = Executor::start(&Config::default().segment_bytes(SEGMENT_BYTES))?;
    let handled = Arc::new(AtomicU64::new(0));
    let mut relays: Vec<Addr<Relay>> = Vec::new();
    for _ in 0..RELAYS {
        let next = relays.last().copied();
        relays.push(executor.handle().spawn(Relay { next, handled: handled.clone() })?);
    }
    let last = relays[relays.len() - 1];
    let gulps = stats::worker_total(|worker| worker.gulps.get());
    let (mut steady, mut rounds, mut before) = (0, 0, HEAP.allocations());
    while steady < ROUNDS && rounds < MOST_ROUNDS {
        rounds += 1;
        for number in 0..BURST {
            last.send(Token(RELAYS - 1))?;
            relays[(number % RELAYS) as usize].send(Large(core::array::from_fn(|index| index as u64)))?;
        }
        // Not by waiting until the system has run out of work, which allocates.
        while handled.load(Ordering::Relaxed) < rounds * BURST * (RELAYS + 1) {
            sched::yield_now().await;
        }
        let now = HEAP.allocations();
        steady = if now == before { steady + 1 } else { 0 };
        before = now;
    }
    let gulps = stats::worker_total(|worker| worker.gulps.get()) - gulps;
    magpie::log::text!("{steady} rounds without an allocation after {rounds} rounds, {gulps} gulps");
    ensure_eq!(steady, ROUNDS, "rounds of sends without an allocation");
    ensure_eq!(handled.load(Ordering::Relaxed), rounds * BURST * (RELAYS + 1), "messages handled");
    ensure!(gulps >= rounds, "only {gulps} gulps: this measured nothing");
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// The counter counts: a message that does not fit into an envelope is boxed, once for each.
    #[machine("the kernel's heap")]
    async fn a_message_larger_than_an_envelope_allocates_once() -> Outcome {
        struct Sink(Arc<AtomicU64>);

        impl Actor for Sink {}

        impl Receive<[u64; 200]> for Sink {
            type Reply = ();

            fn receive(&mut self, _: [u64; 200], _: &mut Context<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }

        const MESSAGES: u64 = 50;
        let executor = Executor::start(&Config::default())?;
        let handled = Arc::new(AtomicU64::new(0));
        let sink = executor.handle().spawn(Sink(handled.clone()))?;
        // At first the mailbox grows, too, and now and then a behaviour is suspended.
        let mut steady = 0;
        for round in 0..MOST_ROUNDS {
            let before = HEAP.allocations();
            for _ in 0..MESSAGES {
                sink.send([1; 200])?;
            }
            while handled.load(Ordering::Relaxed) < (round + 1) * MESSAGES {
                sched::yield_now().await;
            }
            let allocations = HEAP.allocations() - before;
            ensure!(allocations >= MESSAGES, "{allocations} allocations for {MESSAGES} messages");
            steady += u64::from(allocations == MESSAGES);
            if steady == ROUNDS {
                break;
            }
        }
        ensure_eq!(steady, ROUNDS, "rounds with an allocation for each message and no other");
        executor.stop().await;
        Ok(())
    }
}
