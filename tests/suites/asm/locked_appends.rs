//! Appending to a locked queue without a preemption guard: what is written, where it is refused, and what becomes of a sequence that an
//! interrupt comes into. That nothing is lost there is tested where the timer comes at any instruction: suite `bounds`.

use core::sync::atomic::Ordering;

use magpie::internals::arch::append::MOST_WORDS;
use magpie::internals::arch::locked_append::{sequence, withdraw};
use magpie::internals::arch::switch::Frame;
use magpie_tests::{Failure, LockedQueue, Outcome, ensure, ensure_eq, kernel_test};

const WORDS: [u64; MOST_WORDS] = [11, 12, 13, 14, 15, 16, 17];

/// Appends the first so many of [`WORDS`].
fn append(queue: &LockedQueue, count: usize) -> bool {
    match count {
        3 => queue.append::<3>(first()),
        4 => queue.append::<4>(first()),
        5 => queue.append::<5>(first()),
        6 => queue.append::<6>(first()),
        _ => queue.append::<7>(first()),
    }
}

fn first<const COUNT: usize>() -> [u64; COUNT] {
    core::array::from_fn(|place| WORDS[place])
}

/// What a queue holds that is not in use, when so many times so many words were appended.
fn holds(queue: &LockedQueue, times: usize, count: usize) -> Outcome {
    ensure_eq!(queue.lock.load(Ordering::Relaxed), 0, "the lock, of {count} words");
    ensure_eq!(queue.appended(), times * count, "words appended");
    ensure_eq!(queue.waiting.load(Ordering::Relaxed) as usize, 1 + times, "messages that wait");
    for index in 0..times * count {
        ensure_eq!(queue.word(index), WORDS[index % count], "word {index} of {times} times {count}");
    }
    Ok(())
}

kernel_test! {
    /// So many words are written, in order, and no more, and counted; without room nothing is. The lock is free afterwards.
    async fn words_are_appended_and_counted_as_long_as_there_is_room() -> Outcome {
        for count in 3..=MOST_WORDS {
            let queue = LockedQueue::new(2 * count + 2);
            ensure!(append(&queue, count) && append(&queue, count), "no room for twice {count} words");
            ensure!(!append(&queue, count), "room for {count} words beyond the end");
            holds(&queue, 2, count)?;
            ensure_eq!((queue.word(2 * count), queue.word(2 * count + 1)), (0, 0), "what lies behind");
        }
        Ok(())
    }
}

kernel_test! {
    /// Nothing is appended while somebody else holds the lock, the limit is none, or the word has another value.
    async fn what_is_refused_leaves_the_queue_as_it_was() -> Outcome {
        for count in 3..=MOST_WORDS {
            let queue = LockedQueue::new(4 * count);
            ensure!(!queue.locked(|| append(&queue, count)), "while the lock is held");
            let limit = queue.limit.swap(core::ptr::null_mut(), Ordering::Relaxed);
            ensure!(!append(&queue, count), "where care is wanted, or nothing waits");
            queue.limit.store(limit, Ordering::Relaxed);
            for value in [1, u64::MAX, 1 << 32] {
                queue.refused.store(value, Ordering::Relaxed);
                ensure!(!append(&queue, count), "with {value:#x}");
            }
            queue.refused.store(0, Ordering::Relaxed);
            holds(&queue, 0, count)?;
            ensure!(append(&queue, count), "afterwards");
            holds(&queue, 1, count)?;
        }
        Ok(())
    }
}

/// Where code is in a sequence, in instructions behind its beginning.
const TRIED: u64 = 3;
const HOLDS: u64 = 7;
const GIVES_UP: u64 = 5;
/// What a sequence has behind the stores of its words.
const BEHIND: u64 = 4;

/// An interrupt comes to instruction `at` of the sequence that has appended `count` words to the queue once. How it goes on there, in
/// instructions behind its beginning.
fn interrupted(queue: &LockedQueue, at: u64, has_failed: bool) -> u64 {
    let begin = sequence() & !3;
    let mut frame = Frame::EMPTY;
    frame.elr = begin.wrapping_add(at.wrapping_mul(4));
    frame.x[9] = (&raw const *queue).expose_provenance() as u64;
    frame.x[10] = u64::from(has_failed);
    frame.x[11] = u64::from(queue.waiting.load(Ordering::Relaxed) + 1);
    // SAFETY: nothing goes on in that frame's place, and the sequence is this stack's.
    unsafe { withdraw(&mut frame, sequence()) };
    frame.elr.wrapping_sub(begin) / 4
}

/// What becomes of a sequence of so many words at each instruction.
fn each_instruction(count: usize) -> Result<(), Failure> {
    let queue = LockedQueue::new(4 * count);
    ensure!(append(&queue, count), "no room");
    let stores = (sequence() & 3) + 1;
    ensure_eq!(stores, count.div_ceil(2) as u64, "stores of {count} words");
    let commit = HOLDS + 7 + stores + 1;
    let end = commit + BEHIND - 1;
    let is_held = || queue.lock.load(Ordering::Relaxed) == 1;
    for at in 0..=end + 2 {
        // Somebody else's, or its own.
        queue.lock.store(1, Ordering::Relaxed);
        let behind_place = at > commit && at < end;
        if behind_place {
            queue.set_appended(2 * count);
        }
        let goes_on = interrupted(&queue, at, false);
        let has_lock = at == TRIED || at == GIVES_UP || (HOLDS..end).contains(&at);
        ensure_eq!(is_held(), !has_lock, "whether the lock stays, at {at} of {count} words");
        let expected = match at {
            _ if behind_place => end,
            _ if has_lock => 0,
            _ => at,
        };
        ensure_eq!(goes_on, expected, "where it goes on at {at} of {count} words");
        if behind_place {
            ensure_eq!(queue.waiting.load(Ordering::Relaxed), 3, "messages that wait, at {at}");
            queue.set_appended(count);
            queue.waiting.store(2, Ordering::Relaxed);
        }
        queue.lock.store(0, Ordering::Relaxed);
        holds(&queue, 1, count)?;
    }
    queue.lock.store(1, Ordering::Relaxed);
    ensure_eq!(interrupted(&queue, TRIED, true), TRIED, "where it goes on that did not get the lock");
    ensure!(is_held(), "another's lock was given back");
    ensure_eq!(interrupted(&queue, u64::MAX, false), u64::MAX >> 2, "where it goes on before it");
    ensure!(is_held(), "a lock was given back before the sequence");
    Ok(())
}

kernel_test! {
    /// Where it holds the lock that is given back, and it begins anew; where its words count already it is at its end, with all of it done. Anywhere
    /// else nothing happens.
    async fn an_interrupt_takes_the_lock_back_at_each_instruction() -> Outcome {
        for count in 3..=MOST_WORDS {
            each_instruction(count)?;
        }
        Ok(())
    }
}
