//! Appending words behind a gate, a few of them or a block, as one step with regard to preemption, without a preemption guard.
//!
//! The sequence of instructions holds nothing and counts nothing. Until its last store, which moves the cursor, all that it
//! has done is without effect: what it has written lies behind the cursor. So code that was suspended in the middle of
//! it is sent back to its beginning before it goes on ([`restart`]), and looks at the gate anew wherever that is. A handler that
//! returns to the sequence has not touched a gate. How much is copied before the last store makes no difference to that: what is
//! copied is the sender's own, and is there as it was when the copy begins anew.
//!
//! A word is compared in the same step: what is appended was appended while that word had this value, on this core.
//!
//! After the idea of restartable sequences (Bershad, Redell and Ellis, ASPLOS 1992; Linux has them as rseq).

use core::arch::asm;
use core::cell::UnsafeCell;
use core::hint;
use core::mem::{MaybeUninit, offset_of};
use core::ops::Range;

use super::frame::Frame;
use crate::arch::atomic::AtomicU64;
use crate::arch::gate::Gate;

/// The most words that are appended so.
pub const MOST_WORDS: usize = 7;

/// Whether there are such sequences here.
pub const EXISTS: bool = true;

/// Room for the most words.
pub type Words = [MaybeUninit<u64>; MOST_WORDS];

macro_rules! append {
    ($base:ident, $at:expr, $words:ident, $only_if:ident, $bytes:literal, $stores:literal, $($name:ident $n:literal),+) => {{
        asm!(
            "2: mrs {e}, tpidr_el1",
            "ldr {p}, [{base}, #{state}]",
            "ldar {n}, [{word}]",
            "cmp {p}, {e}",
            // Both in one branch: where the gate is closed the word does not matter.
            "ccmp {n}, {value}, #0, eq",
            "b.ne {fail}",
            "ldp {c}, {e}, [{base}, #{cursor}]",
            "ldr {p}, [{c}]",
            concat!("add {n}, {p}, #", $bytes),
            "cmp {n}, {e}",
            "b.hi {fail}",
            $stores,
            "str {n}, [{c}]",
            "3:",
            ".pushsection .restart, \"aw\"",
            ".balign 8",
            ".quad 2b, 3b",
            ".popsection",
            base = in(reg) $base,
            state = const $at + offset_of!(Gate, state),
            cursor = const $at + offset_of!(Gate, cursor),
            word = in(reg) $only_if.0.as_ptr(),
            value = in(reg) $only_if.1,
            c = out(reg) _,
            p = out(reg) _,
            e = out(reg) _,
            n = out(reg) _,
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

const _: () = assert!(offset_of!(Gate, limit) == offset_of!(Gate, cursor) + 8, "loaded as a pair");

/// How far behind the base a gate may lie: what is loaded as a pair is in reach of its address.
const MOST_AT: usize = 504 - offset_of!(Gate, cursor);

/// Appends the first `N` words, if the gate is open for this core, nobody must be told, there is room, and the word of `only_if` has
/// that value. Whoever left that value there with a release has handed over what it speaks of. From three words on, up to
/// [`MOST_WORDS`]. The gate lies `AT` bytes behind `base`, so that its own address need not be computed.
///
/// # Safety
/// There is a gate, and if it is open, the contract of [`Gate::open`] is kept.
#[inline(always)]
pub unsafe fn append<const N: usize, const AT: usize>(
    base: *const (),
    words: &Words,
    only_if: (&AtomicU64, u64),
) -> bool {
    const { assert!(AT <= MOST_AT) };
    // SAFETY: by contract. The words go into memory that is this core's as long as the sequence is not interrupted by anything but
    // handlers, and the last store makes them count.
    unsafe {
        match N {
            3 => {
                append!(base, AT, words, only_if, "24", "stp {w0}, {w1}, [{p}]\nstr {w2}, [{p}, #16]", w0 0, w1 1, w2 2)
            }
            4 => append!(
                base, AT, words, only_if, "32", "stp {w0}, {w1}, [{p}]\nstp {w2}, {w3}, [{p}, #16]", w0 0, w1 1, w2 2, w3 3
            ),
            5 => append!(
                base, AT, words, only_if, "40", "stp {w0}, {w1}, [{p}]\nstp {w2}, {w3}, [{p}, #16]\nstr {w4}, [{p}, #32]",
                w0 0, w1 1, w2 2, w3 3, w4 4
            ),
            6 => append!(
                base, AT, words, only_if, "48",
                "stp {w0}, {w1}, [{p}]\nstp {w2}, {w3}, [{p}, #16]\nstp {w4}, {w5}, [{p}, #32]",
                w0 0, w1 1, w2 2, w3 3, w4 4, w5 5
            ),
            7 => append!(
                base, AT, words, only_if, "56",
                "stp {w0}, {w1}, [{p}]\nstp {w2}, {w3}, [{p}, #16]\nstp {w4}, {w5}, [{p}, #32]\nstr {w6}, [{p}, #48]",
                w0 0, w1 1, w2 2, w3 3, w4 4, w5 5, w6 6
            ),
            _ => false,
        }
    }
}

/// The most bytes of a block that is appended in one go: a sequence takes longer with each, and is begun anew whenever its code was
/// suspended in it.
pub const MOST_BLOCK_BYTES: usize = 1024;

/// So many bytes are copied by two instructions.
const ROUND_BYTES: usize = 64;

macro_rules! append_block {
    ($base:ident, $at:expr, $head:ident, $block:ident, $only_if:ident, $size:expr, [$($rounds:literal),*], $($more:tt)*) => {{
        asm!(
            "2: mrs {e}, tpidr_el1",
            "ldr {p}, [{base}, #{state}]",
            "ldar {n}, [{word}]",
            "cmp {p}, {e}",
            // Both in one branch: where the gate is closed the word does not matter.
            "ccmp {n}, {value}, #0, eq",
            "b.ne {fail}",
            "ldp {c}, {e}, [{base}, #{cursor}]",
            "ldr {p}, [{c}]",
            "add {n}, {p}, #((24 + {bytes} + 7) & ~7)",
            "cmp {n}, {e}",
            "b.hi {fail}",
            "add {e}, {p}, #24",
            "stp {w0}, {w1}, [{p}]",
            "str {w2}, [{p}, #16]",
            $($rounds,)*
            // What is less than a round, from `s` to `e`; the last few bytes by a word that ends with them.
            ".if {rest} & 32",
            "ldp q0, q1, [{s}, #.Lappend_at]",
            "stp q0, q1, [{e}, #.Lappend_at]",
            ".set .Lappend_at, .Lappend_at + 32",
            ".endif",
            ".if {rest} & 16",
            "ldr q0, [{s}, #.Lappend_at]",
            "str q0, [{e}, #.Lappend_at]",
            ".set .Lappend_at, .Lappend_at + 16",
            ".endif",
            ".if {rest} & 8",
            "ldr {p}, [{s}, #.Lappend_at]",
            "str {p}, [{e}, #.Lappend_at]",
            ".set .Lappend_at, .Lappend_at + 8",
            ".endif",
            ".if {rest} & 7",
            "ldur {p}, [{s}, #.Lappend_at + ({rest} & 7) - 8]",
            "stur {p}, [{e}, #.Lappend_at + ({rest} & 7) - 8]",
            ".endif",
            "str {n}, [{c}]",
            "3:",
            ".pushsection .restart, \"aw\"",
            ".balign 8",
            ".quad 2b, 3b",
            ".popsection",
            base = in(reg) $base,
            state = const $at + offset_of!(Gate, state),
            cursor = const $at + offset_of!(Gate, cursor),
            word = in(reg) $only_if.0.as_ptr(),
            value = in(reg) $only_if.1,
            w0 = in(reg) $head[0],
            w1 = in(reg) $head[1],
            w2 = in(reg) $head[2],
            bytes = const $size,
            rest = const $size % 64,
            $($more)*
            c = out(reg) _,
            p = out(reg) _,
            e = out(reg) _,
            n = out(reg) _,
            out("v0") _,
            out("v1") _,
            out("v2") _,
            out("v3") _,
            fail = label {
                hint::cold_path();
                return false
            },
            options(nostack),
        );
        true
    }};
}

/// Appends three words, and what lies at `block` behind them, as `append` does; what comes next is aligned to 8. Never, if the block
/// has less than 8 bytes, or more than `MOST_BLOCK_BYTES`. Nobody else writes to it: whoever begins anew reads it anew.
///
/// # Safety
/// As for `append`, and the block is fit to be read.
#[inline(always)]
pub unsafe fn append_block<B, const AT: usize>(
    base: *const (),
    head: [u64; 3],
    block: *const B,
    only_if: (&AtomicU64, u64),
) -> bool {
    const { assert!(AT <= MOST_AT) };
    if const { size_of::<B>() < 8 || size_of::<B>() > MOST_BLOCK_BYTES } {
        return false;
    }
    // SAFETY: as in `append`. What is not aligned to 16, or to 8, lies in Normal memory, which takes every access.
    unsafe {
        if const { size_of::<B>() < 2 * ROUND_BYTES } {
            append_block!(
                base, AT, head, block, only_if, size_of::<B>(),
                [
                    ".set .Lappend_at, 0",
                    ".if {bytes} >= 64",
                    "ld1 {{v0.16b, v1.16b, v2.16b, v3.16b}}, [{s}]",
                    "st1 {{v0.16b, v1.16b, v2.16b, v3.16b}}, [{e}]",
                    ".set .Lappend_at, 64",
                    ".endif"
                ],
                s = in(reg) block,
            )
        } else {
            append_block!(
                base, AT, head, block, only_if, size_of::<B>(),
                [
                    // Who begins anew begins with the block.
                    "mov {s}, {block}",
                    ".rept {bytes} / 64 - 1",
                    "ld1 {{v0.16b, v1.16b, v2.16b, v3.16b}}, [{s}], #64",
                    "st1 {{v0.16b, v1.16b, v2.16b, v3.16b}}, [{e}], #64",
                    ".endr",
                    "ld1 {{v0.16b, v1.16b, v2.16b, v3.16b}}, [{s}]",
                    "st1 {{v0.16b, v1.16b, v2.16b, v3.16b}}, [{e}]",
                    ".set .Lappend_at, 64"
                ],
                block = in(reg) block, s = out(reg) _,
            )
        }
    }
}

/// The addresses of one sequence: of its first instruction, and behind its last store.
#[repr(C)]
struct Sequence {
    begin: u64,
    end: u64,
}

/// The linker's list of all sequences.
#[repr(transparent)]
struct List(UnsafeCell<[Sequence; 0]>);

// SAFETY: sorted once, before a second core runs and before interrupts are unmasked; only read from then on.
unsafe impl Sync for List {}

unsafe extern "C" {
    static __restart_begin: List;
    static __restart_end: List;
}

fn list() -> (*mut Sequence, usize) {
    // SAFETY: only the addresses are taken.
    let (begin, end) = unsafe { (__restart_begin.0.get(), (&raw const __restart_end).addr()) };
    (begin.cast(), (end - begin.addr()) / size_of::<Sequence>())
}

fn sorted() -> &'static [Sequence] {
    let (first, count) = list();
    // SAFETY: the linker's list, which nobody changes once it was sorted.
    unsafe { core::slice::from_raw_parts(first, count) }
}

/// The addresses of all sequences, ascending: from the first instruction to behind the last store.
pub fn sequences() -> impl Iterator<Item = Range<u64>> {
    sorted().iter().map(|sequence| sequence.begin..sequence.end)
}

/// Sorts the linker's list, which is in the order of the image's parts.
///
/// # Safety
/// Called once, before other cores run and before interrupts are unmasked.
pub unsafe fn sort() {
    let (first, count) = list();
    // SAFETY: the linker's list, which by contract nobody else looks at meanwhile.
    let list = unsafe { core::slice::from_raw_parts_mut(first, count) };
    // By insertion: it is nearly in order, and the library's sort would be 3 KB of every image.
    for sorted in 1..list.len() {
        let mut place = sorted;
        while place > 0 && list[place].begin < list[place - 1].begin {
            list.swap(place, place - 1);
            place -= 1;
        }
    }
}

/// The code of `frame` was suspended and is about to go on: if it is in the middle of a sequence, it will begin that anew.
pub fn restart(frame: &mut Frame) {
    let all = sorted();
    let after = all.partition_point(|sequence| sequence.begin < frame.elr);
    if let Some(sequence) = after.checked_sub(1).and_then(|before| all.get(before))
        && frame.elr < sequence.end
    {
        frame.elr = sequence.begin;
    }
}
