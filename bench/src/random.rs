//! Pseudo-random numbers: the generator that the peers' benchmarks use, so that all draw the same.

/// A linear congruential generator; 24 bits of each number are good for something.
pub struct Random(u32);

impl Random {
    /// Equal seeds draw equal numbers.
    pub fn new(seed: u32) -> Self {
        Self(seed)
    }

    /// A number below 2^24.
    #[inline]
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(69069).wrapping_add(1);
        self.0 >> 8
    }

    /// A number below `limit`, which is positive and at most 2^24.
    #[inline]
    pub fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }
}
