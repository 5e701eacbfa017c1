//! Appending behind a gate without a preemption guard: what is written, where it is refused, and where a sequence goes on that
//! is suspended in the middle. That nothing is lost there is tested where the timer comes at any instruction: suite `bounds`.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use magpie::arch::CoreId;
use magpie::internals::arch::append::{MOST_BLOCK_BYTES, MOST_WORDS, restart, sequences};
use magpie::internals::arch::switch::Frame;
use magpie::internals::sync::PreemptGuard;
use magpie::sched::Spawn;
use magpie_tests::{Failure, GatedBuffer, ensure, ensure_eq, kernel_test};

const WORDS: [u64; MOST_WORDS] = [11, 12, 13, 14, 15, 16, 17];

/// Appends the first so many of [`WORDS`].
fn append(buffer: &GatedBuffer, count: usize) -> bool {
    match count {
        3 => buffer.append::<3>(first()),
        4 => buffer.append::<4>(first()),
        5 => buffer.append::<5>(first()),
        6 => buffer.append::<6>(first()),
        _ => buffer.append::<7>(first()),
    }
}

fn first<const COUNT: usize>() -> [u64; COUNT] {
    core::array::from_fn(|place| WORDS[place])
}

kernel_test! {
    /// So many words are written, in order, and no more; without room nothing is.
    async fn words_are_appended_as_long_as_there_is_room() -> Outcome {
        for count in 3..=MOST_WORDS {
            let buffer = GatedBuffer::new(2 * count + 2);
            let here = PreemptGuard::new();
            buffer.open(&here);
            ensure!(append(&buffer, count) && append(&buffer, count), "no room for twice {count} words");
            ensure!(!append(&buffer, count), "room for {count} words beyond the end");
            drop(here);
            ensure_eq!(buffer.appended(), 2 * count, "words appended");
            for index in 0..2 * count {
                ensure_eq!(buffer.word(index), WORDS[index % count], "word {index} of twice {count}");
            }
            ensure_eq!((buffer.word(2 * count), buffer.word(2 * count + 1)), (0, 0), "what lies behind");
        }
        Ok(())
    }
}

/// Appends a block of that many bytes behind three words, to a buffer with room for twice that. What is found there.
fn blocks_of<const BYTES: usize>() -> Result<(), Failure> {
    let block: [u8; BYTES] = core::array::from_fn(|index| (index % 251) as u8 + 1);
    let words = 3 + BYTES.div_ceil(8);
    let buffer = GatedBuffer::new(2 * words + 1);
    let here = PreemptGuard::new();
    buffer.open(&here);
    let head = [1, 2, 3];
    ensure!(
        buffer.append_block(head, &block) && buffer.append_block(head, &block),
        "no room twice for {BYTES} bytes"
    );
    ensure!(!buffer.append_block(head, &block), "room for {BYTES} bytes beyond the end");
    drop(here);
    ensure_eq!(buffer.appended(), 2 * words, "words appended, of {BYTES} bytes");
    for index in 0..2 * words {
        let expected = match index % words {
            place @ 0..3 => head[place],
            place => {
                let byte = |at: usize| block.get((place - 3) * 8 + at).copied().unwrap_or(0);
                u64::from_le_bytes(core::array::from_fn(byte))
            }
        };
        ensure_eq!(buffer.word(index), expected, "word {index} of twice {BYTES} bytes");
    }
    ensure_eq!(buffer.word(2 * words), 0, "what lies behind {BYTES} bytes");
    Ok(())
}

kernel_test! {
    /// A block is written whole behind its words, whatever its length is, and no more; without room nothing is.
    async fn blocks_are_appended_as_long_as_there_is_room() -> Outcome {
        // Each rest of a round, behind none, one and several, and both ends of each.
        blocks_of::<8>()?;
        blocks_of::<15>()?;
        blocks_of::<33>()?;
        blocks_of::<40>()?;
        blocks_of::<63>()?;
        blocks_of::<64>()?;
        blocks_of::<65>()?;
        blocks_of::<120>()?;
        blocks_of::<127>()?;
        blocks_of::<128>()?;
        blocks_of::<129>()?;
        blocks_of::<183>()?;
        blocks_of::<200>()?;
        blocks_of::<255>()?;
        blocks_of::<256>()?;
        blocks_of::<257>()?;
        blocks_of::<264>()?;
        blocks_of::<311>()?;
        blocks_of::<320>()?;
        blocks_of::<1001>()?;
        blocks_of::<1016>()?;
        blocks_of::<1023>()?;
        blocks_of::<MOST_BLOCK_BYTES>()?;
        let buffer = GatedBuffer::new(1024);
        let here = PreemptGuard::new();
        buffer.open(&here);
        ensure!(!buffer.append_block([1; 3], &[0u8; 7]), "a block of 7 bytes");
        ensure!(!buffer.append_block([1; 3], &[0u8; MOST_BLOCK_BYTES + 1]), "a block that is too long");
        buffer.refused.store(1, Ordering::Relaxed);
        ensure!(!buffer.append_block([1; 3], &[0u8; 64]), "with another word");
        ensure!(!buffer.append_block([1; 3], &[0u8; 512]), "a long one with another word");
        buffer.refused.store(0, Ordering::Relaxed);
        buffer.gate.rest();
        ensure!(!buffer.append_block([1; 3], &[0u8; 64]), "at rest");
        ensure!(!buffer.append_block([1; 3], &[0u8; 512]), "a long one at rest");
        buffer.gate.close();
        drop(here);
        ensure_eq!(buffer.appended(), 0, "words appended");
        Ok(())
    }
}

kernel_test! {
    /// A gate that is closed, at rest or another core's lets nothing through.
    #[cores(2)]
    async fn only_an_open_gate_of_this_core_lets_through() -> Outcome {
        let buffer = Arc::new(GatedBuffer::new(64));
        ensure!(!append(&buffer, 4), "it was never opened");
        let opened = buffer.clone();
        let open = async move {
            let here = PreemptGuard::new();
            opened.open(&here);
            append(&opened, 4)
        };
        ensure_eq!(Spawn::new().pinned(CoreId::BOOT).start(open)?.await, Ok(true), "whether its core may append");
        let far = CoreId::new(1).ok_or("the second core")?;
        let foreign = buffer.clone();
        let other = Spawn::new().pinned(far).start(async move { append(&foreign, 4) })?.await;
        ensure_eq!(other, Ok(false), "whether another core may append");
        let closed = buffer.clone();
        let rest = async move {
            let _here = PreemptGuard::new();
            closed.gate.rest();
            let at_rest = append(&closed, 4);
            closed.gate.close();
            at_rest || append(&closed, 4)
        };
        ensure_eq!(Spawn::new().pinned(CoreId::BOOT).start(rest)?.await, Ok(false), "at rest, or closed");
        ensure_eq!(buffer.appended(), 4, "words appended");
        Ok(())
    }
}

kernel_test! {
    /// What is appended only while a word has a value is refused while it has another.
    async fn nothing_is_appended_while_the_word_has_another_value() -> Outcome {
        for count in 3..=MOST_WORDS {
            let buffer = GatedBuffer::new(64);
            let here = PreemptGuard::new();
            buffer.open(&here);
            for value in [1, u64::MAX, 1 << 32, 0] {
                buffer.refused.store(value, Ordering::Relaxed);
                ensure_eq!(append(&buffer, count), value == 0, "whether {count} words were appended with {value:#x}");
            }
            ensure_eq!(buffer.appended(), count, "words appended");
            drop(here);
        }
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
