//! Many messages go from mailbox to mailbox through a worker's lane at once, and what interrupts them there: so much waits in it that it lies in both its
//! segments, or is closed with much to be sorted.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use alloc::sync::Arc;
use alloc::vec::Vec;

use magpie::actor::{Addr, Config, Executor};
use magpie::arch::CoreId;
use magpie::machine;
use magpie::sched::{self, Priority, Setting, Spawn};
use magpie::stats;
use magpie::time::{self, Instant};
use magpie_tests::{Changed, Failure, HANGS_AFTER, ensure, ensure_eq, kernel_test};

use super::lane::{LINKS, Link, Note, OUTSIDERS, PLAIN, Rules, Token, alone, chains, start, without_memory};

/// Some four for each link.
const TOKENS: u64 = 50;

/// What the outsiders know of the links.
type Links = Arc<Vec<Addr<Link>>>;

kernel_test! {
    /// What a crowd of messages takes is not a batch for each mailbox.
    async fn a_crowd_has_few_batches() -> Outcome {
        const HOPS: u64 = 2_000;
        let counts = || {
            (
                stats::worker_total(|worker| worker.messages_handled.get()),
                stats::worker_total(|worker| worker.gulps.get()),
            )
        };
        let before = counts();
        chains(&alone(), PLAIN, HOPS, 0, TOKENS, true).await?;
        let after = counts();
        let (messages, batches) = (after.0 - before.0, after.1 - before.1);
        ensure!(messages > HOPS * TOKENS, "only {messages} messages were counted");
        // Four messages are in a mailbox at a time.
        ensure!(batches * 20 < messages, "{batches} batches for {messages} messages");
        Ok(())
    }
}

kernel_test! {
    /// More and more is sent, some of it too long for the lane: where it lies, where it goes on, and when it is full.
    async fn a_full_lane_of_a_crowd_loses_nothing() -> Outcome {
        for notes in [1, 3, 20, 60] {
            chains(&alone(), Rules { notes, ..PLAIN }, 500, 0, TOKENS, true).await?;
        }
        // Of more than both its segments hold.
        chains(&alone(), Rules { notes: 1, ..PLAIN }, 200, 0, 1_500, true).await?;
        Ok(())
    }
}

kernel_test! {
    /// A behaviour that runs for long, while a crowd waits behind it in the lane, is suspended, or what waits leaves; none is lost,
    /// and all keeps its order.
    #[machine("preemption")]
    async fn a_crowd_behind_a_long_behaviour_keeps_its_order() -> Outcome {
        for config in [alone(), Config::default()] {
            for (notes, slices) in [(0, 3), (1, 1), (2, 3)] {
                chains(&config, Rules { notes, slices, ..PLAIN }, 300, 0, TOKENS, true).await?;
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// Links that may be anywhere, of workers that steal: mailboxes leave with what they had in the lane, and what comes from elsewhere is
    /// gathered.
    #[machine("preemption")]
    async fn a_crowd_on_all_cores_keeps_its_order() -> Outcome {
        for (notes, slices) in [(1, 0), (1, 3)] {
            chains(&Config::default(), Rules { notes, slices, ..PLAIN }, 1_000, 0, TOKENS, false).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// An actor that crashes, ends or is killed amid a crowd takes nothing of the others' along.
    #[machine("isolation")]
    async fn who_crashes_or_ends_amid_a_crowd_does_so_alone() -> Outcome {
        const VICTIMS: usize = 48;
        for slices in [0, 3] {
            chains(&alone(), Rules { notes: 1, slices, victims: true }, 1_000, VICTIMS, 12, true).await?;
        }
        Ok(())
    }
}

/// Rounds of an outsider, at most: one that is urgent, and slower than its pauses are short, keeps the core from all others until then.
const MOST_ROUNDS: u64 = 500;

/// Sends notes to each link, again and again, from its core or another, until it is told to stop.
async fn outsider(number: usize, links: Links, pause: Duration, stop: Arc<AtomicBool>, sent: Arc<AtomicU64>) {
    let mut number_of_note = 0;
    while !stop.load(Ordering::Relaxed) && number_of_note < 2 * MOST_ROUNDS {
        for link in links.iter() {
            // Twice in one turn: the second comes behind the first, wherever that has gone.
            for number_of_note in [number_of_note, number_of_note + 1] {
                if link.send(Note { from: LINKS + number, number: number_of_note }).is_err() {
                    return;
                }
                sent.fetch_add(1, Ordering::Relaxed);
            }
        }
        number_of_note += 2;
        time::sleep(pause).await;
    }
}

/// The last core.
fn last_core() -> CoreId {
    CoreId::new(machine::cores() - 1).unwrap_or(CoreId::BOOT)
}

/// A crowd, beside a process of this priority on the worker's core, and one on another core.
async fn beside(priority: Priority, rules: Rules, hops: u64) -> Result<(), Failure> {
    let executor = Executor::start(&alone())?;
    let (seen, links) = start(&executor, rules, 0, true)?;
    sched::out_of_work().await;
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut outsiders = Vec::new();
    for number in 0..OUTSIDERS {
        let core = if number == 0 { CoreId::BOOT } else { last_core() };
        let pause = Duration::from_micros(50 + 31 * number as u64);
        let body = outsider(number, links.clone(), pause, stop.clone(), sent.clone());
        outsiders.push(Spawn::new().priority(priority).pinned(core).start(body)?);
    }
    for token in 0..TOKENS as usize {
        links[token % LINKS].send(Token(hops))?;
    }
    let began = Instant::now();
    let of_hops = (hops + 1) * TOKENS;
    while seen.hops.load(Ordering::Relaxed) < of_hops && began.elapsed() < HANGS_AFTER {
        time::sleep(Duration::from_millis(1)).await;
    }
    stop.store(true, Ordering::Relaxed);
    for outsider in outsiders {
        outsider.await?;
    }
    sched::out_of_work().await;
    ensure_eq!(seen.hops.load(Ordering::Relaxed), of_hops, "hops");
    ensure_eq!(seen.wrong.load(Ordering::Relaxed), 0, "notes that came out of order");
    let of_links = (hops / 100 + 1) * TOKENS * rules.notes * LINKS as u64;
    ensure_eq!(seen.notes.load(Ordering::Relaxed), of_links + sent.load(Ordering::Relaxed), "notes");
    ensure!(executor.handle().table_is_whole(), "the table does not hold each mailbox once");
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// Somebody urgent interrupts behaviours in the lane again and again, and sends to mailboxes there: while it lies open, and while what is left of it is
    /// sorted.
    #[machine("preemption")]
    async fn what_somebody_urgent_sends_into_a_crowd_keeps_its_order() -> Outcome {
        for (notes, slices) in [(0, 0), (1, 0), (1, 2)] {
            beside(Priority::High, Rules { notes, slices, ..PLAIN }, 400).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// The same of processes that are not: the worker's turns end for them.
    #[machine("preemption")]
    async fn what_others_send_into_a_crowd_keeps_its_order() -> Outcome {
        for slice in [sched::setting(Setting::SliceMicroseconds), 100] {
            let _slice = Changed::new(&[(Setting::SliceMicroseconds, slice)])?;
            beside(Priority::Normal, Rules { notes: 1, ..PLAIN }, 1_000).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// With memory used up a crowd goes round, whether there is a lane yet or not.
    #[machine("the kernel's heap")]
    async fn a_crowd_needs_no_memory() -> Outcome {
        without_memory(TOKENS, 500).await?;
        Ok(())
    }
}
