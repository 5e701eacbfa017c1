//! Appending words to a locked queue without a preemption guard: the lock, what it guards and the end of it are one step with regard to
//! interrupts.
//!
//! What holds a lock must not be suspended, or all that wait for it would spin meanwhile. So code that takes one disables preemption, which is
//! a quarter of what a short message takes. Here an interrupt takes the lock back instead ([`withdraw`]), before anything else of it happens:
//! until its first store to what the lock guards, all that such a sequence has done is without effect, because what it has written lies
//! behind the place. The lock is given back, and the code begins anew when it goes on. Behind that store there are two more, which are
//! carried out for it. So nobody who looks finds that an interrupted sequence holds a lock: not the handler, nor what it suspends the code
//! for, nor another core, which waits for a few instructions at most.
//!
//! How the vectors know: the sequence says where it begins in the stack's block, in the same store as what the sender is charged, and leaves
//! that there. An interrupt compares where it came with that, by four instructions.
//!
//! After the idea of restartable sequences, as in [`append`](super::append). What is new is that a lock is held in one.

use core::arch::asm;
use core::hint;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use super::append::Words;
use super::frame::Frame;
use super::percpu;
use crate::arch::atomic::AtomicU64;
use crate::arch::queue_layout::{LOCK_AT, PLACE_AT, WAITING_AT};
use crate::arch::stack_layout::{CHARGED_IN_BLOCK, SEQUENCE_IN_BLOCK};

const INSTRUCTION_BYTES: u64 = 4;

// Places in a sequence, in instructions behind its beginning.
/// The exclusive store has succeeded or failed.
const TRIED: u64 = 3;
/// Nothing is written, because there is no room, or another word: about to give the lock back.
const GIVES_UP: u64 = 5;
/// From here on it holds the lock.
const HOLDS: u64 = 7;
/// The stores of the words begin, of which there are as many as the low bits of its address say.
const STORES: u64 = 14;
/// Behind them: the count, and the first store to what the lock guards.
const STORES_TO_COMMIT: u64 = 1;
/// That store, the one of the count, and the one that frees the lock.
const COMMIT: u64 = 3;

const MOST_STORES: u64 = 4;

/// Bytes of the longest sequence, but for what is before its beginning.
pub(super) const MOST_BYTES: u64 = (STORES + MOST_STORES + STORES_TO_COMMIT + COMMIT) * INSTRUCTION_BYTES;

const _: () = assert!(SEQUENCE_IN_BLOCK == CHARGED_IN_BLOCK + 8, "stored as a pair");
const _: () = assert!(MOST_STORES - 1 < INSTRUCTION_BYTES, "they fit into the low bits of an address");
const _: () = assert!(LOCK_AT == 0);

macro_rules! append {
    ($queue:ident, $words:ident, $only_if:ident, $bytes:literal, $count:literal, $stores:literal, $($name:ident $n:literal),+) => {{
        asm!(
            "ldr {a}, [{block}, #{charged}]",
            // Where it begins, and how many stores it has but one.
            concat!("adr {b}, 3f + ", $count, " - 1"),
            "add {a}, {a}, #1",
            "stp {a}, {b}, [{block}, #{charged}]",
            "3: ldaxr w10, [x9]",
            "cbnz w10, {fail}",
            "stxr w10, {one:w}, [x9]",
            "cbz w10, 5f",
            "b 3b",
            "4: stlr wzr, [x9]",
            "b {fail}",
            "5: ldar x10, [{word}]",
            "ldp {a}, {b}, [x9, #{place}]",
            "cmp x10, {value}",
            concat!("add x10, {a}, #", $bytes),
            // Both in one branch: another word is as no room.
            "ccmp x10, {b}, #2, eq",
            "ldr w11, [x9, #{waiting}]",
            "b.hi 4b",
            $stores,
            "add w11, w11, #1",
            "str x10, [x9, #{place}]",
            "str w11, [x9, #{waiting}]",
            "stlr wzr, [x9]",
            in("x9") $queue,
            out("x10") _,
            out("x11") _,
            place = const PLACE_AT,
            waiting = const WAITING_AT,
            charged = const CHARGED_IN_BLOCK,
            block = in(reg) percpu::stack_block(),
            one = in(reg) 1_u64,
            word = in(reg) $only_if.0.as_ptr(),
            value = in(reg) $only_if.1,
            a = out(reg) _,
            b = out(reg) _,
            $($name = in(reg) $words[$n],)+
            fail = label {
                hint::cold_path();
                return false
            },
            options(nostack),
        );
        true
    }};
}

/// Appends the first `N` words to the queue, from three to seven, if its lock is free, there is room, and the word of `only_if` has that value.
/// Charges the turn one reduction, whether it does or not. Whoever left that value there with a release has handed over what it speaks of.
///
/// # Safety
/// Such a queue lies there; whoever holds its lock may write from its place to its limit. The caller is no handler: the block is that of the code
/// that it has interrupted, whose own sequence would not be known any more.
#[inline(always)]
pub unsafe fn append<const N: usize>(queue: *const (), words: &Words, only_if: (&AtomicU64, u64)) -> bool {
    // SAFETY: by contract. The lock is this sequence's until its last store, because whatever interrupts it takes that back first. Acquire and
    // release are those of `sync::SpinLock`, whose lock this is.
    unsafe {
        match N {
            3 => {
                append!(queue, words, only_if, "24", "2", "stp {w0}, {w1}, [{a}]\nstr {w2}, [{a}, #16]", w0 0, w1 1, w2 2)
            }
            4 => append!(
                queue, words, only_if, "32", "2", "stp {w0}, {w1}, [{a}]\nstp {w2}, {w3}, [{a}, #16]", w0 0, w1 1, w2 2, w3 3
            ),
            5 => append!(
                queue, words, only_if, "40", "3", "stp {w0}, {w1}, [{a}]\nstp {w2}, {w3}, [{a}, #16]\nstr {w4}, [{a}, #32]",
                w0 0, w1 1, w2 2, w3 3, w4 4
            ),
            6 => append!(
                queue, words, only_if, "48", "3",
                "stp {w0}, {w1}, [{a}]\nstp {w2}, {w3}, [{a}, #16]\nstp {w4}, {w5}, [{a}, #32]",
                w0 0, w1 1, w2 2, w3 3, w4 4, w5 5
            ),
            7 => append!(
                queue, words, only_if, "56", "4",
                "stp {w0}, {w1}, [{a}]\nstp {w2}, {w3}, [{a}, #16]\nstp {w4}, {w5}, [{a}, #32]\nstr {w6}, [{a}, #48]",
                w0 0, w1 1, w2 2, w3 3, w4 4, w5 5, w6 6
            ),
            _ => false,
        }
    }
}

/// The code of `frame` was interrupted, and may be in the middle of the sequence that its stack's block names. If so, its lock is given back,
/// and it begins anew or, if its words count already, is behind its end.
///
/// # Safety
/// The frame is that of code that was interrupted on this core and does not go on meanwhile, and `sequence` is what its block names.
pub unsafe fn withdraw(frame: &mut Frame, sequence: u64) {
    let (begin, stores) = (sequence & !(INSTRUCTION_BYTES - 1), (sequence & (INSTRUCTION_BYTES - 1)) + 1);
    let at = frame.elr.wrapping_sub(begin) / INSTRUCTION_BYTES;
    let commit = STORES + stores + STORES_TO_COMMIT;
    let queue = ptr::with_exposed_provenance_mut::<u8>(frame.x[9] as usize);
    if commit < at && at < commit + COMMIT {
        // SAFETY: by contract the code has stored the queue's new place, and holds the lock. Relaxed: a hint for whoever does not.
        unsafe { &*queue.add(WAITING_AT).cast::<AtomicU32>() }.store(frame.x[11] as u32, Ordering::Relaxed);
        frame.elr = begin + (commit + COMMIT) * INSTRUCTION_BYTES;
    } else if at == GIVES_UP || (HOLDS..=commit).contains(&at) || (at == TRIED && frame.x[10] as u32 == 0) {
        frame.elr = begin;
    } else {
        return;
    }
    // Release: as the guard's of `sync::SpinLock`.
    // SAFETY: the sequence has taken the lock, and does not go on.
    unsafe { &*queue.add(LOCK_AT).cast::<AtomicU32>() }.store(0, Ordering::Release);
}

/// Where the sequence begins that the caller's stack has begun last, and in its low bits how many of its stores are words, but for one. Nothing,
/// if none has.
pub fn sequence() -> u64 {
    // SAFETY: the block is there, and the word is the running code's own.
    unsafe { percpu::stack_block().byte_add(SEQUENCE_IN_BLOCK).cast::<u64>().read_volatile() }
}

/// Called by the vectors.
///
/// # Safety
/// As [`withdraw`].
#[unsafe(no_mangle)]
unsafe extern "C" fn magpie_withdraw(frame: *mut Frame, sequence: u64) {
    // SAFETY: the vectors have made the frame, and have read the block.
    unsafe { withdraw(&mut *frame, sequence) }
}
