//! Work that only takes time.

use core::hint::black_box;

/// Computes for so many steps, of about five instructions each.
#[inline(never)]
pub fn work(steps: u64, mut x: u32) -> u32 {
    for _ in 0..steps {
        x = black_box(x.wrapping_mul(69069).wrapping_add(1));
    }
    x
}
