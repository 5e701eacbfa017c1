//! Numbers that look random: quick, repeatable, and no secret. Schedulers, checks and fuzzers use this generator.

use core::cell::Cell;

/// xorshift64* (Vigna, 2016). Equal seeds draw equal numbers.
#[derive(Debug)]
pub struct Random(Cell<u64>);

impl Random {
    /// A sequence of its own for each seed and each user.
    pub const fn new(seed: u64, who: usize) -> Self {
        let mixed =
            (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_add((who as u64).wrapping_mul(0xd134_2543_de82_ef95));
        // Never zero, because the generator would stay there.
        Self(Cell::new(mixed | 1))
    }

    /// 64 bits, of which the lowest are the poorest.
    #[inline]
    pub fn bits(&self) -> u64 {
        let mut x = self.0.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`, which is not zero.
    #[inline]
    pub fn below(&self, bound: usize) -> usize {
        ((self.bits() >> 16) % bound as u64) as usize
    }
}
