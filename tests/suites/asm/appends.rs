//! Appending behind a gate without a preemption guard: what is written, where it is refused, and where a sequence goes on that
//! is suspended in the middle. That nothing is lost there is tested where the timer comes at any instruction: suite `bounds`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use magpie::arch::CoreId;
use magpie::internals::arch::append::{Gate, MOST_WORDS, Words, append, restart, sequences};
use magpie::internals::arch::switch::Frame;
use magpie::internals::sync::PreemptGuard;
use magpie::sched::Spawn;
use magpie_tests::{ensure, ensure_eq, kernel_test};

/// A gate, with the buffer behind it.
struct Buffer {
    gate: Gate,
    cursor: AtomicPtr<u8>,
    words: Vec<AtomicU64>,
}

impl Buffer {
    fn new(words: usize) -> Self {
        let words: Vec<_> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let begin = words.as_ptr().cast_mut().cast();
        Self { gate: Gate::closed(), cursor: AtomicPtr::new(begin), words }
    }

    /// Opens it for the core that the caller is on.
    fn open(&self, _here: &PreemptGuard) {
        let limit = self.words.as_ptr_range().end.cast_mut().cast();
        // SAFETY: the cursor leads into the words, which end there, and lives as long as the gate.
        unsafe { self.gate.open(&self.cursor, limit) };
    }

    /// How many words were appended.
    fn len(&self) -> usize {
        (self.cursor.load(Ordering::Relaxed).addr() - self.words.as_ptr().addr()) / size_of::<u64>()
    }

    fn word(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Relaxed)
    }

    /// Appends the first so many of these.
    fn append(&self, count: usize, words: [u64; MOST_WORDS]) -> bool {
        let words: Words = words.map(MaybeUninit::new);
        // SAFETY: `open` keeps the contract.
        unsafe {
            match count {
                3 => append::<3>(&self.gate, &words),
                4 => append::<4>(&self.gate, &words),
                5 => append::<5>(&self.gate, &words),
                6 => append::<6>(&self.gate, &words),
                _ => append::<7>(&self.gate, &words),
            }
        }
    }
}

const WORDS: [u64; MOST_WORDS] = [11, 12, 13, 14, 15, 16, 17];

kernel_test! {
    /// So many words are written, in order, and no more; without room nothing is.
    async fn words_are_appended_as_long_as_there_is_room() -> Outcome {
        for count in 3..=MOST_WORDS {
            let buffer = Buffer::new(2 * count + 2);
            let here = PreemptGuard::new();
            buffer.open(&here);
            ensure!(buffer.append(count, WORDS) && buffer.append(count, WORDS), "no room for twice {count} words");
            ensure!(!buffer.append(count, WORDS), "room for {count} words beyond the end");
            drop(here);
            ensure_eq!(buffer.len(), 2 * count, "words appended");
            for index in 0..2 * count {
                ensure_eq!(buffer.word(index), WORDS[index % count], "word {index} of twice {count}");
            }
            ensure_eq!((buffer.word(2 * count), buffer.word(2 * count + 1)), (0, 0), "what lies behind");
        }
        Ok(())
    }
}

kernel_test! {
    /// A gate that is closed, at rest or another core's lets nothing through.
    #[cores(2)]
    async fn only_an_open_gate_of_this_core_lets_through() -> Outcome {
        let buffer = Arc::new(Buffer::new(64));
        ensure!(!buffer.append(4, WORDS), "it was never opened");
        let opened = buffer.clone();
        let open = async move {
            let here = PreemptGuard::new();
            opened.open(&here);
            opened.append(4, WORDS)
        };
        ensure_eq!(Spawn::new().pinned(CoreId::BOOT).start(open)?.await, Ok(true), "whether its core may append");
        let far = CoreId::new(1).ok_or("the second core")?;
        let foreign = buffer.clone();
        let other = Spawn::new().pinned(far).start(async move { foreign.append(4, WORDS) })?.await;
        ensure_eq!(other, Ok(false), "whether another core may append");
        let closed = buffer.clone();
        let rest = async move {
            let _here = PreemptGuard::new();
            closed.gate.rest();
            let at_rest = closed.append(4, WORDS);
            closed.gate.close();
            at_rest || closed.append(4, WORDS)
        };
        ensure_eq!(Spawn::new().pinned(CoreId::BOOT).start(rest)?.await, Ok(false), "at rest, or closed");
        ensure_eq!(buffer.len(), 4, "words appended");
        Ok(())
    }
}

kernel_test! {
    /// Whoever is suspended at any instruction of any sequence begins it anew; anybody else goes on where it was.
    async fn each_instruction_of_a_sequence_leads_to_its_beginning() -> Outcome {
        const INSTRUCTION: u64 = 4;
        let goes_on = |at: u64| {
            let mut frame = Frame::EMPTY;
            frame.elr = at;
            restart(&mut frame);
            frame.elr
        };
        let (mut begin_before, mut end_before) = (0, 0);
        let mut count = 0;
        for sequence in sequences() {
            ensure!(sequence.start >= end_before, "sequences overlap, or are not sorted, at {:#x}", sequence.start);
            ensure!(sequence.end - sequence.start >= 10 * INSTRUCTION, "a sequence of {sequence:x?}");
            for at in sequence.clone().step_by(INSTRUCTION as usize) {
                ensure_eq!(goes_on(at), sequence.start, "where {at:#x} goes on");
            }
            // Behind the last store it has happened, and must not happen again.
            let next_begins = sequences().any(|other| other.start == sequence.end);
            ensure!(next_begins || goes_on(sequence.end) == sequence.end, "{:#x} begins anew", sequence.end);
            let before = sequence.start - INSTRUCTION;
            // What is before it may be the end of another.
            let expected = if end_before == sequence.start { begin_before } else { before };
            ensure_eq!(goes_on(before), expected, "where {before:#x}, before a sequence, goes on");
            (begin_before, end_before) = (sequence.start, sequence.end);
            count += 1;
        }
        // Those of this file, at least.
        ensure!(count >= MOST_WORDS - 2, "only {count} sequences");
        ensure_eq!(goes_on(0), 0, "before all sequences");
        ensure_eq!(goes_on(u64::MAX), u64::MAX, "behind all sequences");
        Ok(())
    }
}
