//! What a worker has in hand goes back a few mailboxes at a time where something more urgent has turns in between, which may send to those
//! very mailboxes: each message arrives once, and overtakes no other of its sender's. How long the urgent one waits is for the suite
//! `bounds` to say (`bounds::hand`).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use core::time::Duration;

use magpie::actor::{Addr, Config, Executor};
use magpie::arch::CoreId;
use magpie::sched::{self, JoinHandle, Priority, Spawn};
use magpie::{machine, stats, time};
use magpie_tests::{Failure, Outcome, amount, ensure, ensure_eq, kernel_test};

use super::cut::Yielders;
use super::node::{Counted, Flood, Node, Numbered, Others, Seen, Talk, nodes, past_two_slices};

/// More than go back at once.
const MAILBOXES_EACH: usize = 40;
/// So many get a message each time that an urgent process has a turn.
const AT_ONCE: usize = 12;

/// On each core a process of that priority that sleeps for moments, so many times, and does something with the nodes each time.
fn urgent(
    priority: Priority,
    nodes: &[Addr<Node>],
    times: u64,
    sends: impl FnMut(usize, &[Addr<Node>], usize) + Clone + Send + 'static,
) -> Result<Vec<JoinHandle<()>>, Failure> {
    let cores = (0..machine::cores()).filter_map(CoreId::new);
    let start = |core: CoreId| {
        let (nodes, mut sends) = (nodes.to_vec(), sends.clone());
        Spawn::new().pinned(core).priority(priority).start(async move {
            for time in 0..times as usize {
                time::sleep(Duration::from_micros(150 + 37 * (time as u64 % 11))).await;
                for step in 0..AT_ONCE {
                    sends(core.index(), &nodes, (time * 5 + step) % nodes.len());
                }
            }
        })
    };
    Ok(cores.map(start).collect::<Result<_, _>>()?)
}

fn executor(priority: Priority) -> Result<Executor, Failure> {
    Ok(Executor::start(&Config::default().priority(priority).mailboxes(MAILBOXES_EACH * machine::cores()))?)
}

/// Behaviours send to all, and are suspended; beside them urgent processes send.
async fn all_arrive(of_executor: Priority, of_processes: Priority) -> Outcome {
    let most_in_hand = || stats::worker_total(|worker| worker.most_in_hand.get());
    let yielders = Yielders::start()?;
    let seen = Arc::new(Seen::default());
    let executor = executor(of_executor)?;
    let nodes = nodes(&executor, &seen)?;
    let talkers: Vec<_> = nodes.iter().copied().step_by(MAILBOXES_EACH / 2).collect();
    for &talker in &talkers {
        talker.send(Others(nodes.clone()))?;
    }
    let (times, rounds) = (amount("times", 150), amount("rounds", 6));
    let mut numbers = alloc::vec![0; nodes.len()];
    let (refused, first) = (seen.clone(), talkers.len());
    let sends = move |core: usize, nodes: &[Addr<Node>], to: usize| {
        let message = Numbered { sender: first + core, number: numbers[to] };
        numbers[to] += 1;
        refused.refused.fetch_add(u64::from(nodes[to].send(message).is_err()), Ordering::Relaxed);
    };
    let processes = urgent(of_processes, &nodes, times, sends)?;
    for _ in 0..rounds {
        for (sender, talker) in talkers.iter().enumerate() {
            talker.send(Talk { sender, rounds: 2, spins: past_two_slices() })?;
        }
        time::sleep(Duration::from_millis(2)).await;
    }
    for process in processes {
        process.await?;
    }
    yielders.stop().await?;
    sched::out_of_work().await;
    let talked = talkers.len() as u64 * rounds * 2 * nodes.len() as u64;
    let sent = machine::cores() as u64 * times * AT_ONCE as u64;
    ensure_eq!(seen.refused(), 0, "messages that were refused");
    ensure_eq!(seen.handled(), talked + sent, "messages handled");
    ensure_eq!(seen.out_of_order(), 0, "messages out of order");
    executor.stop().await;
    ensure!(most_in_hand() > AT_ONCE as u64, "at most {} were in hand", most_in_hand());
    Ok(())
}

kernel_test! {
    #[machine("preemption")]
    async fn what_urgent_processes_send_meanwhile_arrives_in_order() -> Outcome {
        all_arrive(Priority::Normal, Priority::High).await
    }
}

kernel_test! {
    /// Of an executor that is urgent itself.
    #[machine("preemption")]
    async fn so_it_does_behind_what_is_more_urgent_still() -> Outcome {
        all_arrive(Priority::High, Priority::Max).await
    }
}

kernel_test! {
    /// Executors stop at any moment.
    #[machine("preemption")]
    async fn an_executor_that_owes_mail_stops() -> Outcome {
        for round in 0..amount("restarts", 10) {
            let seen = Arc::new(Seen::default());
            let executor = executor(Priority::Normal)?;
            let nodes = nodes(&executor, &seen)?;
            for node in &nodes {
                node.send(Others(nodes.clone()))?;
            }
            let counts = seen.clone();
            let sends = move |_: usize, nodes: &[Addr<Node>], to: usize| {
                let refused = nodes[to].send(Counted::new(&counts)).is_err();
                counts.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
            };
            let processes = urgent(Priority::High, &nodes, 20, sends)?;
            for node in nodes.iter().step_by(MAILBOXES_EACH / 2) {
                node.send(Flood(1, past_two_slices()))?;
            }
            time::sleep(Duration::from_micros(500 * (round % 7))).await;
            executor.stop().await;
            for process in processes {
                process.await?;
            }
            let (made, gone) = (seen.made.load(Ordering::Relaxed), seen.dropped.load(Ordering::Relaxed));
            ensure_eq!(gone, made, "messages dropped in round {round}");
            ensure!(seen.handled() + seen.refused() <= made, "messages handled or refused in round {round}");
            ensure_eq!(Arc::strong_count(&seen), 1, "owners at the end of round {round}");
        }
        Ok(())
    }
}
