//! The hand-written `memcpy` and `memset`, and what zeroes much memory, against a model: every size up to some rounds of
//! their loops, every alignment of both sides. None may touch a byte beside what it was told.

use core::hint::black_box;
use core::ptr::NonNull;

use magpie::internals::arch::zero;
use magpie_tests::{ensure, kernel_test};

/// Some rounds of 64 bytes, and every rest.
const SIZES: usize = 300;
/// Alignments of each side; the longest access is of pairs of eight bytes.
const ALIGNMENTS: usize = 16;
/// Bytes that must stay as they are, before and behind.
const MARGIN: usize = 16;

const ROOM: usize = MARGIN + ALIGNMENTS + SIZES + MARGIN;
/// What lies where nothing is written.
const UNTOUCHED: u8 = 0xa5;

#[repr(align(64))]
struct Room([u8; ROOM]);

unsafe extern "C" {
    fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
    fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8;
}

/// A byte that tells its place, and is never [`UNTOUCHED`].
fn pattern(index: usize) -> u8 {
    (index % 163) as u8
}

/// Whether the room holds `expected(i)` in its byte `start + i` for each `i` below `bytes`, and nothing new elsewhere.
fn holds(room: &Room, start: usize, bytes: usize, expected: impl Fn(usize) -> u8) -> bool {
    room.0.iter().enumerate().all(|(index, &byte)| match index.checked_sub(start) {
        Some(offset) if offset < bytes => byte == expected(offset),
        _ => byte == UNTOUCHED,
    })
}

kernel_test! {
    /// Every size is copied from every alignment to every other, and nothing beside it is written.
    async fn copies_are_exact() -> Outcome {
        let mut from = Room([0; ROOM]);
        for (index, byte) in from.0.iter_mut().enumerate() {
            *byte = pattern(index);
        }
        for bytes in 0..SIZES {
            // Beyond 8 an alignment of one side is as good as another: one more is enough to see that.
            for source in (0..=8).map(|alignment| MARGIN + alignment) {
                for target in (0..=8).map(|alignment| MARGIN + alignment) {
                    let mut to = Room([UNTOUCHED; ROOM]);
                    let place = &raw mut to.0[target];
                    // SAFETY: both rooms have so many bytes from there on, and are two.
                    let returned = unsafe { black_box(memcpy)(place, &raw const from.0[source], bytes) };
                    ensure!(returned == place, "{bytes} bytes: another place is returned");
                    ensure!(
                        holds(&to, target, bytes, |offset| pattern(source + offset)),
                        "{bytes} bytes from {source} to {target}"
                    );
                }
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// Every size is filled at every alignment, with the lowest byte of what is given, and nothing beside it is written.
    async fn fills_are_exact() -> Outcome {
        for bytes in 0..SIZES {
            for target in (0..ALIGNMENTS).map(|alignment| MARGIN + alignment) {
                for value in [0, 0x7f, 0xff, -2, 0x1234] {
                    let mut to = Room([UNTOUCHED; ROOM]);
                    let place = &raw mut to.0[target];
                    // SAFETY: the room has so many bytes from there on.
                    let returned = unsafe { black_box(memset)(place, value, bytes) };
                    ensure!(returned == place, "{bytes} bytes: another place is returned");
                    ensure!(holds(&to, target, bytes, |_| value as u8), "{bytes} bytes of {value} at {target}");
                }
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// Memory is zeroed at every alignment, for less than a step, for steps, and for rounds of those, and nothing beside it is.
    async fn zeros_are_exact() -> Outcome {
        const STEP: usize = 32;
        const ROUND: usize = 16 * STEP;
        #[repr(align(64))]
        struct Long([u8; 4 * ROUND]);
        let some = (0..4 * STEP).chain(ROUND - STEP..ROUND + 2 * STEP).chain(2 * ROUND..2 * ROUND + 2 * STEP);
        let mut long = Long([0; 4 * ROUND]);
        for bytes in some {
            for start in MARGIN..MARGIN + STEP {
                long.0.fill(UNTOUCHED);
                // SAFETY: so many bytes lie there, which are nobody else's.
                unsafe { zero::fill(NonNull::from(&mut long.0[start]), bytes, || 0_u8) };
                let is_as_it_should_be = |(index, &byte): (usize, &u8)| {
                    byte == if (start..start + bytes).contains(&index) { 0 } else { UNTOUCHED }
                };
                ensure!(long.0.iter().enumerate().all(is_as_it_should_be), "{bytes} bytes at {start}");
            }
        }
        Ok(())
    }
}
