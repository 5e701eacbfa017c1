//! Senders of one core that append behind one gate, and suspend each other at any instruction of it. Here, because only where time
//! is counted in instructions the timer comes at any of them; elsewhere the emulator looks for interrupts at branches.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use magpie::arch::CoreId;
use magpie::internals::arch::append::{Gate, Words, append};
use magpie::internals::sync::PreemptGuard;
use magpie::sched::{self, Setting, Spawn};
use magpie::stats;
use magpie_tests::{Changed, Failure, amount, ensure, ensure_eq, kernel_test};

/// Words of an entry: who has sent it, its number, and two that follow from these.
const WORDS: usize = 4;
const SENDERS: u64 = 4;

/// A gate, with the buffer behind it.
struct Buffer {
    gate: Gate,
    cursor: AtomicPtr<u8>,
    words: Vec<AtomicU64>,
}

impl Buffer {
    fn new(entries: u64) -> Self {
        let words: Vec<_> = (0..entries * WORDS as u64).map(|_| AtomicU64::new(0)).collect();
        let begin = words.as_ptr().cast_mut().cast();
        Self { gate: Gate::closed(), cursor: AtomicPtr::new(begin), words }
    }

    /// Opens it for the core that the caller is on.
    fn open(&self, _here: &PreemptGuard) {
        let limit = self.words.as_ptr_range().end.cast_mut().cast();
        // SAFETY: the cursor leads into the words, which end there, and lives as long as the gate.
        unsafe { self.gate.open(&self.cursor, limit) };
    }

    fn append(&self, sender: u64, number: u64) -> bool {
        let mut words: Words = [MaybeUninit::uninit(); magpie::internals::arch::append::MOST_WORDS];
        for (place, word) in words.iter_mut().zip([sender, number, !number, sender ^ number]) {
            place.write(word);
        }
        // SAFETY: `open` keeps the contract.
        unsafe { append::<WORDS>(&self.gate, &words) }
    }

    /// How many entries were appended.
    fn len(&self) -> u64 {
        ((self.cursor.load(Ordering::Relaxed).addr() - self.words.as_ptr().addr())
            / size_of::<[u64; WORDS]>()) as u64
    }

    fn entry(&self, index: u64) -> [u64; WORDS] {
        core::array::from_fn(|word| self.words[index as usize * WORDS + word].load(Ordering::Relaxed))
    }
}

/// Senders append all at once, with slices of so many microseconds. How often one was suspended.
async fn append_all(slice: u64, entries: u64) -> Result<u64, Failure> {
    let _short = Changed::new(&[(Setting::SliceMicroseconds, slice)])?;
    let all = SENDERS * entries;
    let buffer = Arc::new(Buffer::new(all));
    let opened = buffer.clone();
    let open = async move { opened.open(&PreemptGuard::new()) };
    Spawn::new().pinned(CoreId::BOOT).start(open)?.await.map_err(|_| "nobody opened")?;
    let suspensions = || stats::total(|core| core.preemptions.get());
    let before = suspensions();
    let mut senders = Vec::new();
    for sender in 0..SENDERS {
        let buffer = buffer.clone();
        let send = async move { (0..entries).all(|number| buffer.append(sender, number)) };
        senders.push(Spawn::new().pinned(CoreId::BOOT).start(send)?);
    }
    for sender in senders {
        ensure_eq!(sender.await, Ok(true), "whether there was room for all");
    }
    sched::out_of_work().await;
    let suspended = suspensions() - before;
    ensure_eq!(buffer.len(), all, "entries");
    let mut next = [0; SENDERS as usize];
    for index in 0..all {
        let [sender, number, inverse, both] = buffer.entry(index);
        let is_whole = sender < SENDERS && inverse == !number && both == sender ^ number;
        ensure!(is_whole, "entry {index} is {:x?}", buffer.entry(index));
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
