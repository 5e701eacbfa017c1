//! Senders of one core that append behind one gate, and suspend each other at any instruction of it. Here, because only where time
//! is counted in instructions the timer comes at any of them; elsewhere the emulator looks for interrupts at branches.

use alloc::sync::Arc;
use alloc::vec::Vec;

use magpie::arch::CoreId;
use magpie::internals::sync::PreemptGuard;
use magpie::sched::{self, Setting, Spawn};
use magpie::stats;
use magpie_tests::{Changed, Failure, GatedBuffer, amount, ensure, ensure_eq, kernel_test};

/// Words of an entry: who has sent it, its number, and two that follow from these.
const WORDS: usize = 4;
const SENDERS: u64 = 4;

fn append(buffer: &GatedBuffer, sender: u64, number: u64) -> bool {
    buffer.append::<WORDS>([sender, number, !number, sender ^ number])
}

fn entry(buffer: &GatedBuffer, index: u64) -> [u64; WORDS] {
    core::array::from_fn(|word| buffer.word(index as usize * WORDS + word))
}

/// Senders append all at once, with slices of so many microseconds. How often one was suspended.
async fn append_all(slice: u64, entries: u64) -> Result<u64, Failure> {
    let _short = Changed::new(&[(Setting::SliceMicroseconds, slice)])?;
    let all = SENDERS * entries;
    let buffer = Arc::new(GatedBuffer::new(all as usize * WORDS));
    let opened = buffer.clone();
    let open = async move { opened.open(&PreemptGuard::new()) };
    Spawn::new().pinned(CoreId::BOOT).start(open)?.await.map_err(|_| "nobody opened")?;
    let suspensions = || stats::total(|core| core.preemptions.get());
    let before = suspensions();
    let mut senders = Vec::new();
    for sender in 0..SENDERS {
        let buffer = buffer.clone();
        let send = async move { (0..entries).all(|number| append(&buffer, sender, number)) };
        senders.push(Spawn::new().pinned(CoreId::BOOT).start(send)?);
    }
    for sender in senders {
        ensure_eq!(sender.await, Ok(true), "whether there was room for all");
    }
    sched::out_of_work().await;
    let suspended = suspensions() - before;
    ensure_eq!(buffer.appended(), all as usize * WORDS, "words appended");
    let mut next = [0; SENDERS as usize];
    for index in 0..all {
        let [sender, number, inverse, both] = entry(&buffer, index);
        let is_whole = sender < SENDERS && inverse == !number && both == sender ^ number;
        ensure!(is_whole, "entry {index} is {:x?}", entry(&buffer, index));
        ensure_eq!(number, next[sender as usize], "the next number of a sender");
        next[sender as usize] += 1;
    }
    Ok(suspended)
}

kernel_test! {
    /// Each entry is there once, whole, and in its sender's order. Slices differ, because otherwise the timer comes at the same few
    /// instructions again and again.
    async fn nothing_is_lost_where_senders_are_suspended() -> Outcome {
        let mut suspended = 0;
        for slice in 50..90 {
            suspended += append_all(slice, amount("entries", 10_000)).await?;
        }
        // Four instructions of some twenty are where a suspension does harm.
        ensure!(suspended > 200, "only {suspended} suspensions");
        Ok(())
    }
}
