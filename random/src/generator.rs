//! A generator: who draws has one.

use core::convert::Infallible;
use core::fmt;

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};

use crate::pool;
use crate::quality::{Quality, TooGuessable};

/// A generator with a key of its own, by ChaCha20. It takes 0.3 KiB, locks nothing, and goes wherever its owner goes. It cannot be cloned, because both would draw the
/// same numbers.
///
/// Its numbers say nothing about those of others, nor about the pool. Whoever reads its memory can find what it has drawn since it was made or [renewed](Self::renew).
///
/// ```
/// use magpie::actor::{Actor, Context, Receive};
/// use magpie_random::Random;
///
/// struct Dealer {
///     random: Random,
/// }
///
/// impl Actor for Dealer {}
///
/// struct Draw;
///
/// impl Receive<Draw> for Dealer {
///     type Reply = u64;
///
///     fn receive(&mut self, _: Draw, _: &mut Context<Self>) -> u64 {
///         self.random.below(52)
///     }
/// }
/// # let _ = Dealer { random: Random::new() };
/// ```
///
/// ```compile_fail,E0599
/// let one = magpie_random::Random::new();
/// let same = one.clone();
/// ```
pub struct Random {
    inner: ChaCha20Rng,
    quality: Quality,
}

impl Random {
    /// A generator, as good as the machine allows: ask [`quality`](Self::quality).
    ///
    /// ```
    /// let (mut one, mut other) = (magpie_random::Random::new(), magpie_random::Random::new());
    /// assert_ne!(one.bits(), other.bits());
    /// ```
    #[expect(clippy::new_without_default, reason = "two of a default value are taken for equal")]
    pub fn new() -> Self {
        let (key, quality) = pool::key();
        Self { inner: ChaCha20Rng::from_seed(key), quality }
    }

    /// A generator that is so good, or better.
    ///
    /// # Errors
    /// The machine has given nothing so good, and nobody has [stirred](crate::stir) it in.
    ///
    /// ```
    /// use magpie_random::{Quality, Random, TooGuessable};
    /// fn key() -> Result<[u8; 32], TooGuessable> {
    ///     let mut key = [0; 32];
    ///     Random::at_least(Quality::Given)?.fill(&mut key);
    ///     Ok(key)
    /// }
    /// assert!(key().is_ok());
    /// ```
    pub fn at_least(quality: Quality) -> Result<Self, TooGuessable> {
        let random = Self::new();
        if random.quality < quality { Err(TooGuessable { is: random.quality }) } else { Ok(random) }
    }

    /// How good its seed was when it was made, or renewed.
    ///
    /// ```
    /// assert!(magpie_random::Random::new().quality() >= magpie_random::Quality::Guessable);
    /// ```
    pub fn quality(&self) -> Quality {
        self.quality
    }

    /// Takes another key from the pool: what was drawn before cannot be found any more, and what was stirred in since counts.
    ///
    /// ```
    /// let mut random = magpie_random::Random::new();
    /// random.renew();
    /// ```
    pub fn renew(&mut self) {
        *self = Self::new();
    }

    /// 64 bits.
    ///
    /// ```
    /// let token = magpie_random::Random::new().bits();
    /// # let _ = token;
    /// ```
    pub fn bits(&mut self) -> u64 {
        self.inner.next_u64()
    }

    /// A number below the bound, each as likely as the others. Zero if the bound is.
    ///
    /// ```
    /// let die = 1 + magpie_random::Random::new().below(6);
    /// assert!((1..=6).contains(&die));
    /// ```
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire, 2019: the upper half of a product. Of what falls into the first stretch, some numbers would come once too often.
        let short = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            if product as u64 >= short {
                return (product >> 64) as u64;
            }
        }
    }

    /// Random bytes.
    ///
    /// ```
    /// let mut key = [0; 32];
    /// magpie_random::Random::new().fill(&mut key);
    /// assert_ne!(key, [0; 32]);
    /// ```
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.inner.fill_bytes(bytes);
    }
}

impl TryRng for Random {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.inner.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.bits())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.fill(bytes);
        Ok(())
    }
}

/// Whether it is one for keys is what [`Random::quality`] says.
impl TryCryptoRng for Random {}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Random({:?})", self.quality)
    }
}

#[cfg(test)]
mod tests {
    use super::{ChaCha20Rng, Quality, Random, SeedableRng};

    const fn goes_anywhere<T: Send + Sync>() {}
    const _: () = goes_anywhere::<Random>();

    fn fixed() -> Random {
        Random { inner: ChaCha20Rng::from_seed([7; 32]), quality: Quality::Guessable }
    }

    #[test]
    fn each_below_a_bound_is_as_likely() {
        let mut random = fixed();
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[random.below(6) as usize] += 1;
        }
        // Chi squared of five degrees of freedom: 20.5 is passed once in a thousand, and the key is fixed.
        let off: f64 = counts.iter().map(|count| (f64::from(*count) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(off < 20.5, "{counts:?}");
        // Two thirds of all: without the second look the lower half would come twice as often as the rest.
        let bound = u64::MAX / 3 * 2;
        let low = (0..30_000).filter(|_| random.below(bound) < bound / 2).count();
        assert!((14_500..15_500).contains(&low), "{low} of 30000 are in the lower half");
    }

    #[test]
    fn the_smallest_bounds_leave_no_choice() {
        let mut random = fixed();
        assert_eq!((random.below(0), random.below(1)), (0, 0));
        assert!((0..100).any(|_| random.below(u64::MAX) > u64::MAX / 2));
    }
}
