//! Senders that append to one locked queue and interrupt and suspend each other at any instruction of it, while somebody else takes the lock as
//! the kernel does. Here for the reason that [`appends`](super::appends) gives.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::internals::sync::PreemptGuard;
use magpie::sched::{self, JoinError, Priority, Setting, Spawn};
use magpie::{stats, time};
use magpie_tests::{Changed, Failure, LockedQueue, Outcome, amount, ensure, ensure_eq, kernel_test};

const SENDERS: u64 = 4;

/// What sender `sender` appends as its entry of that number: its words follow from the two.
fn entry<const WORDS: usize>(sender: u64, number: u64) -> [u64; WORDS] {
    core::array::from_fn(|place| match place {
        0 => sender,
        1 => number,
        place => (sender ^ number).wrapping_mul(place as u64),
    })
}

/// Senders of so many cores append entries all at once, with slices of so many microseconds. How often one was suspended.
async fn append_all<const WORDS: usize>(cores: usize, slice: u64, entries: u64) -> Result<u64, Failure> {
    let _short = Changed::new(&[(Setting::SliceMicroseconds, slice)])?;
    let all = SENDERS * entries;
    let queue = Arc::new(LockedQueue::new(all as usize * WORDS));
    let suspensions = || stats::total(|core| core.preemptions.get());
    let before = suspensions();
    let mut senders = Vec::new();
    for sender in 0..SENDERS {
        let queue = queue.clone();
        let send = async move {
            for number in 0..entries {
                // Somebody has the lock.
                while !queue.append(entry::<WORDS>(sender, number)) {
                    core::hint::spin_loop();
                }
            }
        };
        let core = CoreId::new(sender as usize % cores).ok_or("a core")?;
        senders.push(Spawn::new().pinned(core).start(send)?);
    }
    let looked = queue.clone();
    // A worker that counts what waits.
    let looks = async move {
        let mut most = 0;
        while most < all {
            let (appended, waiting) = looked
                .locked(|| (looked.appended() as u64, u64::from(looked.waiting.load(Ordering::Relaxed)) - 1));
            if appended != waiting * WORDS as u64 {
                return Err((appended, waiting));
            }
            most = waiting;
            sched::yield_now().await;
        }
        Ok(())
    };
    let looks = Spawn::new().pinned(CoreId::new(cores - 1).ok_or("a core")?).start(looks)?;
    for sender in senders {
        sender.await.map_err(|_| "a sender failed")?;
    }
    ensure_eq!(looks.await, Ok(Ok(())), "words appended, and messages counted, with the lock held");
    let suspended = suspensions() - before;
    ensure_eq!(queue.lock.load(Ordering::Relaxed), 0, "the lock");
    ensure_eq!(queue.appended(), all as usize * WORDS, "words appended");
    ensure_eq!(u64::from(queue.waiting.load(Ordering::Relaxed)), 1 + all, "messages that wait");
    let mut next = [0; SENDERS as usize];
    for index in 0..all as usize {
        let found: [u64; WORDS] = core::array::from_fn(|word| queue.word(index * WORDS + word));
        let (sender, number) = (found[0], found[1]);
        ensure!(sender < SENDERS && found == entry(sender, number), "entry {index} is {found:x?}");
        ensure_eq!(number, next[sender as usize], "the next number of a sender");
        next[sender as usize] += 1;
    }
    Ok(suspended)
}

/// Slices differ, because otherwise the timer comes at the same few instructions again and again.
async fn append_with_slices<const WORDS: usize>(cores: usize, entries: u64) -> Outcome {
    let mut suspended = 0;
    for slice in 50..90 {
        suspended += append_all::<WORDS>(cores, slice, amount("entries", entries)).await?;
    }
    // Most instructions of a sequence are such where it holds the lock.
    ensure!(suspended > 200, "only {suspended} suspensions");
    Ok(())
}

kernel_test! {
    /// Each entry is there once, whole, in its sender's order, and counted, where all are on one core.
    async fn nothing_is_lost_where_a_lock_is_taken_back() -> Outcome {
        // Whoever is on this core meets a lock that an interrupted sequence has left behind: it would wait for ever.
        append_with_slices::<3>(1, 10_000).await
    }
}

kernel_test! {
    /// The same from two cores, with as many words as are ever appended so.
    #[cores(2)]
    async fn nothing_is_lost_where_another_core_waits_for_that_lock() -> Outcome {
        append_with_slices::<7>(2, 8_000).await
    }
}

kernel_test! {
    /// Where preemption is disabled an interrupt takes the lock back as well, and the code goes on by itself.
    async fn nothing_is_lost_where_nobody_is_suspended() -> Outcome {
        let entries = amount("entries", 40_000);
        let queue = Arc::new(LockedQueue::new(entries as usize * 5));
        let here = PreemptGuard::new();
        let _short = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        for number in 0..entries {
            ensure!(queue.append(entry::<5>(0, number)), "entry {number} was refused");
        }
        drop(here);
        ensure_eq!(queue.appended() as u64, entries * 5, "words appended");
        ensure_eq!(u64::from(queue.waiting.load(Ordering::Relaxed)), 1 + entries, "messages that wait");
        for index in 0..entries as usize {
            let found: [u64; 5] = core::array::from_fn(|word| queue.word(index * 5 + word));
            ensure!(found == entry(0, index as u64), "entry {index} is {found:x?}");
        }
        Ok(())
    }
}

/// Counts its messages.
struct Sink(u64);

impl Actor for Sink {}

struct Item;

struct HowMany;

impl Receive<Item> for Sink {
    type Reply = ();

    fn receive(&mut self, _: Item, _: &mut Context<Self>) {
        self.0 += 1;
    }
}

impl Receive<HowMany> for Sink {
    type Reply = u64;

    fn receive(&mut self, _: HowMany, _: &mut Context<Self>) -> u64 {
        self.0
    }
}

kernel_test! {
    /// Whoever is killed where it sends leaves the mailbox as it should be: others send to it, and what was sent arrives once.
    async fn a_sender_that_is_killed_leaves_no_lock_behind() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let sink = executor.handle().spawn(Sink(0))?;
        let kills = async move {
            let mut all = 0;
            for round in 0..amount("rounds", 1_500) {
                let sent = Arc::new(AtomicU64::new(0));
                let noted = sent.clone();
                let sender = Spawn::new().pinned(CoreId::BOOT).start(async move {
                    loop {
                        if sink.send(Item).is_ok() {
                            noted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })?;
                // A tick of the clock is 16 instructions.
                time::sleep(Duration::from_nanos(15_000 + 16 * (round % 97))).await;
                sender.process().kill();
                ensure_eq!(sender.await, Err(JoinError::Killed), "how the sender ended");
                let found = sink.ask(HowMany).await?;
                let sent = sent.load(Ordering::Relaxed);
                ensure!(found == all + sent || found == all + sent + 1, "{sent} were sent, {} came", found - all);
                all = found;
            }
            Ok(())
        };
        Spawn::new().pinned(CoreId::BOOT).priority(Priority::High).start(kills)?.await??;
        executor.stop().await;
        Ok(())
    }
}
