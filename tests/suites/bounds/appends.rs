//! Senders of one core that append behind one gate, and suspend each other at any instruction of it. Here, because only where time
//! is counted in instructions the timer comes at any of them; elsewhere the emulator looks for interrupts at branches.

use alloc::sync::Arc;
use alloc::vec::Vec;

use magpie::arch::CoreId;
use magpie::internals::sync::PreemptGuard;
use magpie::sched::{self, Setting, Spawn};
use magpie::stats;
use magpie_tests::{Changed, Failure, GatedBuffer, Outcome, amount, ensure, ensure_eq, kernel_test};

/// Words of a short entry: who has sent it, its number, and two that follow from these. Of a long one each word from there on is the last
/// of them.
const WORDS: usize = 4;
/// One that is appended as a block in a row, and one in a loop.
const LONG: usize = 24;
const LONGEST: usize = 60;
const SENDERS: u64 = 4;

fn append<const ALL: usize>(buffer: &GatedBuffer, sender: u64, number: u64) -> bool {
    let [head @ .., both] = [sender, number, !number, sender ^ number];
    match ALL {
        LONG => buffer.append_block(head, &block_of::<{ (LONG - 3) * 8 }>(both)),
        LONGEST => buffer.append_block(head, &block_of::<{ (LONGEST - 3) * 8 }>(both)),
        _ => buffer.append::<WORDS>([sender, number, !number, both]),
    }
}

/// The word again and again.
fn block_of<const BYTES: usize>(word: u64) -> [u8; BYTES] {
    let bytes = word.to_le_bytes();
    core::array::from_fn(|index| bytes[index % 8])
}

fn entry<const ALL: usize>(buffer: &GatedBuffer, index: u64) -> [u64; ALL] {
    core::array::from_fn(|word| buffer.word(index as usize * ALL + word))
}

/// Senders append entries of that many words all at once, with slices of so many microseconds. How often one was suspended.
async fn append_all<const ALL: usize>(slice: u64, entries: u64) -> Result<u64, Failure> {
    let _short = Changed::new(&[(Setting::SliceMicroseconds, slice)])?;
    let all = SENDERS * entries;
    let buffer = Arc::new(GatedBuffer::new(all as usize * ALL));
    let opened = buffer.clone();
    let open = async move { opened.open(&PreemptGuard::new()) };
    Spawn::new().pinned(CoreId::BOOT).start(open)?.await.map_err(|_| "nobody opened")?;
    let suspensions = || stats::total(|core| core.preemptions.get());
    let before = suspensions();
    let mut senders = Vec::new();
    for sender in 0..SENDERS {
        let buffer = buffer.clone();
        let send = async move { (0..entries).all(|number| append::<ALL>(&buffer, sender, number)) };
        senders.push(Spawn::new().pinned(CoreId::BOOT).start(send)?);
    }
    for sender in senders {
        ensure_eq!(sender.await, Ok(true), "whether there was room for all");
    }
    sched::out_of_work().await;
    let suspended = suspensions() - before;
    ensure_eq!(buffer.appended(), all as usize * ALL, "words appended");
    let mut next = [0; SENDERS as usize];
    for index in 0..all {
        let found = entry::<ALL>(&buffer, index);
        let (sender, number) = (found[0], found[1]);
        let is_whole =
            sender < SENDERS && found[2] == !number && found[3..].iter().all(|&word| word == sender ^ number);
        ensure!(is_whole, "entry {index} is {found:x?}");
        ensure_eq!(number, next[sender as usize], "the next number of a sender");
        next[sender as usize] += 1;
    }
    Ok(suspended)
}

/// Slices differ, because otherwise the timer comes at the same few instructions again and again.
async fn append_with_slices<const ALL: usize>(entries: u64) -> Outcome {
    let mut suspended = 0;
    for slice in 50..90 {
        suspended += append_all::<ALL>(slice, amount("entries", entries)).await?;
    }
    // Four instructions of some twenty are where a suspension does harm, and of a block more.
    ensure!(suspended > 200, "only {suspended} suspensions");
    Ok(())
}

kernel_test! {
    /// Each entry is there once, whole, and in its sender's order.
    async fn nothing_is_lost_where_senders_are_suspended() -> Outcome {
        append_with_slices::<WORDS>(10_000).await
    }
}

kernel_test! {
    /// The same with blocks, copied in a row.
    async fn nothing_is_lost_where_senders_of_blocks_are_suspended() -> Outcome {
        append_with_slices::<LONG>(4_000).await
    }
}

kernel_test! {
    /// The same with longer blocks, copied in a loop.
    async fn nothing_is_lost_where_senders_of_long_blocks_are_suspended() -> Outcome {
        append_with_slices::<LONGEST>(2_000).await
    }
}
