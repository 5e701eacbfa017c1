//! A turn that is asked to end in the middle of a batch goes on with the rest in the next one, and nothing is lost, doubled or
//! overtaken. How soon it ends is for the suite `bounds` to say.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::actor::{Addr, Bound, Config, Executor, ExecutorHandle, WhenFull};
use magpie::arch::CoreId;
use magpie::sched::{self, JoinHandle, Setting, Spawn};
use magpie::{machine, stats};
use magpie_tests::{Changed, Failure, amount, ensure, ensure_eq, kernel_test};

use super::node::{
    Flood, Grow, Long, Node, Numbered, Others, Seen, Slow, Spread, TalkLong, Then, node, nodes,
    past_two_slices,
};

/// So many rounds are enough to cut what is to be cut on any machine.
const MOST_ROUNDS: u64 = 200;
/// After so many with too few cuts slices become twice as long, up to so many microseconds.
const WITH_ONE_SLICE: u64 = 8;
const LONGEST_SLICE: u64 = 20_000;
/// So many turns may pass until a batch was cut.
const MOST_TURNS: u64 = 5_000;

/// On each core a process that only yields, so that no turn there goes on for long.
pub(super) struct Yielders {
    stop: Arc<AtomicBool>,
    processes: Vec<JoinHandle<()>>,
    _short_slices: Changed,
}

impl Yielders {
    pub(super) fn start() -> Result<Self, Failure> {
        let _short_slices = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        let (stop, mut processes) = (Arc::new(AtomicBool::new(false)), Vec::new());
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            let stop = stop.clone();
            processes.push(Spawn::new().pinned(core).start(async move {
                while !stop.load(Ordering::Relaxed) {
                    sched::yield_now().await;
                }
            })?);
        }
        Ok(Self { stop, processes, _short_slices })
    }

    pub(super) async fn stop(self) -> Result<(), Failure> {
        self.stop.store(true, Ordering::Relaxed);
        for process in self.processes {
            if process.await.is_err() {
                return Err("a process crashed".into());
            }
        }
        Ok(())
    }
}

fn cut() -> u64 {
    stats::worker_total(|worker| worker.cut_batches.get())
}

/// So many batches are to be cut, or executors stopped. With more cores than most hosts have processors each takes long, because all of them spin.
fn enough_cuts() -> u64 {
    if machine::cores() > 8 { 12 } else { 40 }
}

/// What is done besides in each round.
type Besides = fn(&ExecutorHandle, &[Addr<Node>], &Arc<Seen>) -> Result<u64, Failure>;

/// Two talkers send short and long messages to all nodes and to themselves, and a process does, until batches were cut so often.
/// `besides` says how many more messages it has sent.
async fn talk_until_cut(config: &Config, besides: Besides) -> Result<(), Failure> {
    const ROUNDS: u64 = 10;
    let yielders = Yielders::start()?;
    let (seen, before) = (Arc::new(Seen::default()), cut());
    let executor = Executor::start(config)?;
    let handle = executor.handle();
    let nodes = nodes(&executor, &seen)?;
    let mut talkers = Vec::new();
    for beside in [nodes[0], nodes[nodes.len() - 1]] {
        let talker = handle.spawn_beside(beside, node(&seen))?;
        talker.send(Others(nodes.iter().copied().chain([talker]).collect()))?;
        talkers.push(talker);
    }
    let wanted = before + amount("cuts", enough_cuts());
    let (mut expected, mut round) = (0, 0);
    let mut longer = None;
    while cut() < wanted && round < MOST_ROUNDS {
        let mut slice = sched::setting(Setting::SliceMicroseconds);
        if round > 0 && round.is_multiple_of(WITH_ONE_SLICE) && slice < LONGEST_SLICE {
            // On a busy host short slices end before the interrupt comes that would cut, and what runs is suspended instead.
            slice *= 2;
            drop(longer.take());
            longer = Some(Changed::new(&[(Setting::SliceMicroseconds, slice)])?);
        }
        // Some of these fill a slice, whatever else there is.
        let slow = Duration::from_micros(slice / 4);
        expected += besides(handle, &nodes, &seen)?;
        for (sender, talker) in talkers.iter().enumerate() {
            talker.send(TalkLong { sender, rounds: ROUNDS })?;
            expected += ROUNDS * (nodes.len() as u64 + 1);
        }
        for number in round * 200..(round + 1) * 200 {
            // Long batches, a chain of segments each.
            let message = Numbered { sender: talkers.len(), number };
            match number {
                _ if number.is_multiple_of(10) => _ = nodes[1].send(Slow(message, slow))?,
                _ if number.is_multiple_of(7) => _ = nodes[1].send(Long(message, [number; 20]))?,
                _ => _ = nodes[1].send(message)?,
            }
            expected += 1;
        }
        sched::yield_now().await;
        while seen.handled() < expected {
            sched::yield_now().await;
        }
        round += 1;
    }
    let cuts = cut() - before;
    magpie::text!(
        "{cuts} batches were cut in {round} rounds, the last with {} us",
        sched::setting(Setting::SliceMicroseconds)
    );
    drop(longer);
    yielders.stop().await?;
    sched::out_of_work().await;
    ensure_eq!(seen.handled(), expected, "messages handled");
    ensure_eq!(seen.out_of_order(), 0, "messages out of order");
    ensure_eq!(seen.refused(), 0, "messages that were refused");
    ensure!(before + cuts >= wanted, "{cuts} batches were cut in {round} rounds");
    executor.stop().await;
    Ok(())
}

fn nothing(_: &ExecutorHandle, _: &[Addr<Node>], _: &Arc<Seen>) -> Result<u64, Failure> {
    Ok(0)
}

/// One is suspended, and its mail is put aside, where it was before and behind what is cut.
fn put_aside(handle: &ExecutorHandle, nodes: &[Addr<Node>], seen: &Arc<Seen>) -> Result<u64, Failure> {
    const MESSAGES: u64 = 300;
    let grows = handle.spawn_beside(nodes[1], node(seen))?;
    grows.send(Grow(MESSAGES, past_two_slices()))?;
    Ok(MESSAGES)
}

/// One crashes in a batch with others' mail before and behind its own.
fn crash(handle: &ExecutorHandle, nodes: &[Addr<Node>], seen: &Arc<Seen>) -> Result<u64, Failure> {
    let brief = handle.spawn_beside(nodes[1], node(seen))?;
    brief.send(Spread(Then::Panic))?;
    Ok(0)
}

kernel_test! {
    /// Whoever sends, a behaviour on the worker's core, one elsewhere, or a process.
    #[machine("preemption")]
    async fn messages_keep_their_order_where_batches_are_cut() -> Outcome {
        talk_until_cut(&Config::default(), nothing).await
    }
}

kernel_test! {
    /// The same with segments that have room for a few messages only, and few mailboxes.
    #[machine("preemption")]
    async fn messages_keep_their_order_where_chains_are_cut() -> Outcome {
        talk_until_cut(&Config::default().mailboxes(2 * machine::cores()).segment_bytes(256), nothing).await
    }
}

kernel_test! {
    /// The same with a bound, which keeps senders from adding to what is in hand.
    #[machine("preemption")]
    async fn messages_keep_their_order_where_bounded_mail_is_cut() -> Outcome {
        talk_until_cut(&Config::default().bound(Bound::new(1_000_000, WhenFull::Refuse)), nothing).await
    }
}

kernel_test! {
    /// The same beside a behaviour that is suspended again and again.
    #[machine("preemption")]
    async fn messages_keep_their_order_where_they_are_put_aside() -> Outcome {
        talk_until_cut(&Config::default(), put_aside).await
    }
}

kernel_test! {
    /// A crash loses the actor and the message that it had in hand, and nothing else.
    #[machine("isolation")]
    async fn a_crash_where_batches_are_cut_loses_nothing_else() -> Outcome {
        talk_until_cut(&Config::default(), crash).await
    }
}

kernel_test! {
    /// Each message of an executor that stops is handled or dropped once, wherever a batch was cut.
    #[machine("preemption")]
    async fn an_executor_stops_behind_a_cut() -> Outcome {
        let before = cut();
        for round in 0..amount("restarts", enough_cuts()) {
            let yielders = Yielders::start()?;
            let seen = Arc::new(Seen::default());
            let executor = Executor::start(&Config::default())?;
            let nodes = nodes(&executor, &seen)?;
            for node in &nodes {
                node.send(Others(nodes.clone()))?;
            }
            for node in nodes.iter().step_by(5) {
                node.send(Flood(1 + round % 3, Duration::ZERO))?;
            }
            let (seen_before, mut turns) = (cut(), 0);
            while cut() < seen_before + round % 4 && turns < MOST_TURNS {
                sched::yield_now().await;
                turns += 1;
            }
            executor.stop().await;
            yielders.stop().await?;
            let (made, gone) = (seen.made.load(Ordering::Relaxed), seen.dropped.load(Ordering::Relaxed));
            ensure_eq!(gone, made, "messages dropped in round {round}");
            ensure_eq!(Arc::strong_count(&seen), 1, "owners at the end of round {round}");
        }
        ensure!(cut() > before, "no batch was cut");
        Ok(())
    }
}
