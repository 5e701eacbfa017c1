//! A suspended behaviour that goes on: what it sends comes into the hand of the worker on its core, and arrives however its turn ends.
//!
//! Nothing comes in hand while a core is idle, so there is something to do on each.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::sched::{self, Priority};
use magpie::stats;
use magpie::time::Instant;
use magpie_tests::{Failure, HANGS_AFTER, HeapExhauster, Outcome, amount, ensure, ensure_eq, kernel_test};

use super::cut::Yielders;
use super::node::{Counted, Node, Numbered, Seen, nodes, past_two_slices, spin};

/// Sends in one behaviour that is suspended before it begins, and again and again.
struct Sender {
    number: usize,
    seen: Arc<Seen>,
    others: Vec<Addr<Node>>,
    next: u64,
}

impl Actor for Sender {}

/// Send so often to all, and then do this.
struct Piece {
    rounds: u64,
    then: Then,
}

#[derive(Clone, Copy)]
enum Then {
    Nothing,
    Panic,
    /// Spin until so many were handled.
    SpinUntil(u64),
    /// Spin until the actor is killed.
    SpinForEver,
}

impl Sender {
    fn send_round(&mut self) {
        for other in &self.others {
            let refused = other.send(Numbered { sender: self.number, number: self.next }).is_err();
            self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
        }
        self.next += 1;
    }
}

impl Receive<Piece> for Sender {
    type Reply = ();

    fn receive(&mut self, Piece { rounds, then }: Piece, _: &mut Context<Self>) {
        spin(past_two_slices());
        for round in 0..rounds {
            self.send_round();
            // Between few messages and between many.
            if round % 64 == 1 {
                spin(past_two_slices());
            }
        }
        let began = Instant::now();
        match then {
            Then::Nothing => {}
            Then::Panic => panic!("on purpose, in a suspended behaviour with mail in hand"),
            Then::SpinUntil(handled) => {
                while self.seen.handled() < handled {
                    if began.elapsed() > HANGS_AFTER {
                        self.seen.gave_up.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                    core::hint::spin_loop();
                }
            }
            Then::SpinForEver => {
                self.seen.spinning.fetch_add(1, Ordering::Relaxed);
                while began.elapsed() < HANGS_AFTER {
                    core::hint::spin_loop();
                }
                self.seen.gave_up.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// As [`Piece`], with messages that say when they are dropped.
struct CountedPiece(u64);

impl Receive<CountedPiece> for Sender {
    type Reply = ();

    fn receive(&mut self, CountedPiece(rounds): CountedPiece, _: &mut Context<Self>) {
        for round in 0..rounds {
            if round % 16 == 0 {
                spin(past_two_slices());
            }
            for other in &self.others {
                // Those of an executor that stops are refused.
                let _ = other.send(Counted::new(&self.seen));
            }
        }
    }
}

/// Send counted messages so often, and on until one was refused, but not before the test says so, which it does when this was suspended; and say when that is
/// done.
struct LatePiece(u64);

impl Receive<LatePiece> for Sender {
    type Reply = ();

    fn receive(&mut self, LatePiece(rounds): LatePiece, _: &mut Context<Self>) {
        self.seen.spinning.store(1, Ordering::Relaxed);
        while self.seen.second_mail.load(Ordering::Relaxed) == 0 {
            core::hint::spin_loop();
        }
        let began = Instant::now();
        let mut round = 0;
        // How much is handled between two slices is chance, and so is whether there was room for all.
        while round < rounds || (self.seen.refused() == 0 && began.elapsed() < HANGS_AFTER) {
            for other in &self.others {
                let refused = other.send(Counted::new(&self.seen)).is_err();
                self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
            }
            round += 1;
        }
        self.seen.late_rounds.store(round, Ordering::Relaxed);
        self.seen.spinning.store(2, Ordering::Relaxed);
    }
}

fn sender(number: usize, seen: &Arc<Seen>, others: &[Addr<Node>]) -> Sender {
    Sender { number, seen: seen.clone(), others: others.to_vec(), next: 0 }
}

fn detached() -> u64 {
    stats::worker_total(|worker| worker.detached_behaviours.get())
}

/// Waits until so many were handled, or for longer than that can take.
async fn until_handled(seen: &Seen, sent: u64) {
    let began = Instant::now();
    while seen.handled() < sent && began.elapsed() < HANGS_AFTER {
        sched::yield_now().await;
    }
}

/// So many were sent, and each was handled once, in its sender's order.
fn judge(seen: &Seen, sent: u64) -> Outcome {
    ensure_eq!(seen.handled(), sent, "messages handled");
    ensure_eq!(seen.out_of_order(), 0, "messages out of order");
    ensure_eq!(seen.refused(), 0, "messages that were refused");
    Ok(())
}

/// Several behaviours in different mailboxes send, and a process does, until all was handled that was sent. The behaviours end so. Again, and again where none was
/// suspended: on a busy host interrupts may come late.
async fn send_in_pieces(senders: usize, rounds: u64, then: Then) -> Result<(), Failure> {
    let yielders = Yielders::start()?;
    let (seen, before) = (Arc::new(Seen::default()), detached());
    let executor = Executor::start(&Config::default())?;
    let nodes = nodes(&executor, &seen)?;
    let (mut sent, mut round) = (0, 0);
    let least = amount("rounds", 4) as usize;
    while round < least || (detached() == before && round < 25 * least) {
        for number in 0..senders {
            // Each sender has numbers of its own.
            let sender = sender(1 + round * senders + number, &seen, &nodes);
            executor.handle().spawn_beside(nodes[number], sender)?.send(Piece { rounds, then })?;
            sent += rounds * nodes.len() as u64;
        }
        for number in 0..20 {
            for node in &nodes {
                node.send(Numbered { sender: 0, number: round as u64 * 20 + number })?;
            }
            sched::yield_now().await;
        }
        sent += 20 * nodes.len() as u64;
        until_handled(&seen, sent).await;
        round += 1;
    }
    yielders.stop().await?;
    sched::out_of_work().await;
    judge(&seen, sent)?;
    ensure!(detached() > before, "no behaviour was suspended");
    ensure!(executor.handle().table_is_whole(), "the table does not hold each mailbox once");
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// From each sender in order, and each message once.
    #[machine("preemption")]
    async fn what_suspended_behaviours_send_keeps_its_order() -> Outcome {
        send_in_pieces(3, 200, Then::Nothing).await
    }
}

kernel_test! {
    /// What was sent before a panic arrives, though it was in hand.
    #[machine("isolation")]
    async fn what_a_crashed_piece_has_sent_arrives() -> Outcome {
        send_in_pieces(2, 3, Then::Panic).await?;
        send_in_pieces(2, 100, Then::Panic).await
    }
}

kernel_test! {
    /// Suspended behaviours of several executors send to the actors of all of them: to those of their own worker on the core that they are on by then, to
    /// those of another one there, and from cores on which their executor has no worker.
    #[machine("isolation")]
    async fn suspended_behaviours_send_to_the_actors_of_all_executors() -> Outcome {
        const ROUNDS: u64 = 150;
        const EACH: usize = 2;
        let yielders = Yielders::start()?;
        let seen = Arc::new(Seen::default());
        let configurations = [
            Config::default(),
            Config::default().workers(1),
            Config::default().priority(Priority::High),
            Config::default().segment_bytes(256),
        ];
        let (mut executors, mut all) = (Vec::new(), Vec::new());
        for configuration in &configurations {
            let executor = Executor::start(configuration)?;
            all.extend(nodes(&executor, &seen)?.into_iter().take(20));
            executors.push(executor);
        }
        let mut sent = 0;
        for round in 0..amount("rounds", 3) as usize {
            for (index, executor) in executors.iter().enumerate() {
                for number in 0..EACH {
                    let number = (round * executors.len() + index) * EACH + number;
                    let then = if number % 3 == 2 { Then::Panic } else { Then::Nothing };
                    executor.handle().spawn(sender(number, &seen, &all))?.send(Piece { rounds: ROUNDS, then })?;
                    sent += ROUNDS * all.len() as u64;
                }
            }
            until_handled(&seen, sent).await;
        }
        yielders.stop().await?;
        sched::out_of_work().await;
        judge(&seen, sent)?;
        for executor in executors {
            ensure!(executor.handle().table_is_whole(), "a table does not hold each mailbox once");
            executor.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// A suspended behaviour spins until everybody has handled what it has sent since: so its worker comes to that, though it was idle.
    #[machine("preemption")]
    async fn nobody_waits_behind_a_suspended_sender() -> Outcome {
        for rounds in [1, 3, 100] {
            let seen = Arc::new(Seen::default());
            let executor = Executor::start(&Config::default())?;
            let nodes = nodes(&executor, &seen)?;
            let all = rounds * nodes.len() as u64;
            // One after another: nothing else has the core, or waits for it.
            for number in 0..3 {
                let sender = executor.handle().spawn_beside(nodes[0], sender(number, &seen, &nodes))?;
                sender.send(Piece { rounds, then: Then::SpinUntil(all * (number as u64 + 1)) })?;
                sched::out_of_work().await;
            }
            ensure_eq!(seen.gave_up.load(Ordering::Relaxed), 0, "senders that have waited in vain");
            ensure_eq!(seen.handled(), 3 * all, "messages handled");
            executor.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// What a suspended behaviour has sent before its actor is killed arrives.
    #[machine("isolation")]
    async fn what_a_killed_piece_has_sent_arrives() -> Outcome {
        let yielders = Yielders::start()?;
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default())?;
        let nodes = nodes(&executor, &seen)?;
        let rounds = 100;
        for round in 1..=amount("rounds", 5) {
            let sender = sender(round as usize, &seen, &nodes);
            let sender = executor.handle().spawn_beside(nodes[0], sender)?;
            sender.send(Piece { rounds, then: Then::SpinForEver })?;
            while seen.spinning.load(Ordering::Relaxed) < round {
                sched::yield_now().await;
            }
            sender.kill()?;
            let sent = round * rounds * nodes.len() as u64;
            while seen.handled() < sent || sender.is_alive() {
                sched::yield_now().await;
            }
            ensure_eq!(seen.handled(), sent, "messages handled in round {round}");
        }
        ensure_eq!(seen.gave_up.load(Ordering::Relaxed), 0, "senders that were not killed");
        ensure_eq!(seen.out_of_order(), 0, "messages out of order");
        yielders.stop().await?;
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Each message of an executor that stops while suspended behaviours send is handled or dropped once.
    #[machine("preemption")]
    async fn an_executor_stops_around_a_suspended_sender() -> Outcome {
        for round in 0..amount("restarts", 20) {
            let yielders = Yielders::start()?;
            let seen = Arc::new(Seen::default());
            let executor = Executor::start(&Config::default())?;
            let nodes = nodes(&executor, &seen)?;
            for node in nodes.iter().take(3) {
                let sender = sender(0, &seen, &nodes);
                executor.handle().spawn_beside(*node, sender)?.send(CountedPiece(100))?;
            }
            spin(Duration::from_micros(100 * round));
            for _ in 0..10 * round {
                sched::yield_now().await;
            }
            executor.stop().await;
            yielders.stop().await?;
            let (made, gone) = (seen.made.load(Ordering::Relaxed), seen.dropped.load(Ordering::Relaxed));
            ensure_eq!(gone, made, "messages dropped in round {round}");
            ensure_eq!(Arc::strong_count(&seen), 1, "owners at the end of round {round}");
        }
        Ok(())
    }
}

kernel_test! {
    /// With memory used up each message of a suspended behaviour is refused, or handled.
    #[machine("the kernel's heap")]
    async fn suspended_behaviours_send_with_memory_used_up() -> Outcome {
        for round in 0..amount("rounds", 2) {
            let yielders = Yielders::start()?;
            let (seen, before) = (Arc::new(Seen::default()), detached());
            let executor = Executor::start(&Config::default())?;
            let nodes = nodes(&executor, &seen)?;
            let sender = executor.handle().spawn_beside(nodes[0], sender(0, &seen, &nodes))?;
            sender.send(LatePiece(500))?;
            let comes = |stage| {
                let seen = seen.clone();
                magpie_tests::comes(move || seen.spinning.load(Ordering::Relaxed) == stage, "the sender does not go on")
            };
            comes(1).await?;
            magpie_tests::comes(|| detached() > before, "the sender is not suspended").await?;
            let exhauster = HeapExhauster::everything(16);
            seen.second_mail.store(1, Ordering::Relaxed);
            let done = comes(2).await;
            drop(exhauster);
            done?;
            yielders.stop().await?;
            sched::out_of_work().await;
            let made = seen.made.load(Ordering::Relaxed);
            let rounds = seen.late_rounds.load(Ordering::Relaxed);
            ensure!(rounds >= 500, "it has sent {rounds} times in round {round}");
            ensure_eq!(made, rounds * nodes.len() as u64, "messages made in round {round}");
            ensure!(seen.refused() > 0, "memory was not used up in round {round}");
            ensure_eq!(seen.handled() + seen.refused(), made, "messages handled or refused in round {round}");
            ensure_eq!(seen.dropped.load(Ordering::Relaxed), made, "messages dropped in round {round}");
            executor.stop().await;
        }
        Ok(())
    }
}
