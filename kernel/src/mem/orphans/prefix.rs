//! What all addresses of the heap have in common in two of their bytes, and so a look at seven words at once: which of them may be one.
//!
//! Some of those are none: who is told of one compares it with the whole heap.

/// A one in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The upper bit of each byte.
const UPPER: u64 = ONES << 7;
/// The eighth byte, where no word begins that ends in the next.
const NONE: u64 = 0xff << 56;

/// The bytes that are looked at: what is lower differs within any heap, and what is higher says nothing of a memory below a terabyte.
const BYTES: [u32; 2] = [3, 4];

/// For each of those bytes, in each byte of a word: the bits that all addresses have in common, and which bits those are.
#[derive(Clone, Copy)]
pub(super) struct Prefix {
    common: [u64; 2],
    masks: [u64; 2],
}

impl Prefix {
    /// Of the addresses from `base` on.
    pub(super) fn of(base: usize, bytes: usize) -> Self {
        let (first, last) = (base as u64, (base + bytes.saturating_sub(1)) as u64);
        // From the highest bit in which they differ downwards an address may be anything.
        let anything = u64::MAX.checked_shr((first ^ last).leading_zeros()).unwrap_or(0);
        let in_each = |word: u64, byte: u32| (word >> (8 * byte) & 0xff) * ONES;
        Self {
            common: BYTES.map(|byte| in_each(first & !anything, byte)),
            masks: BYTES.map(|byte| in_each(!anything, byte)),
        }
    }

    /// Which of the seven words that begin in one word and end in the next may be an address of the heap: of the one that begins with byte `n`
    /// of the first, the highest bit of byte `n - 1`.
    #[inline(always)]
    pub(super) fn which_may_begin_between(&self, before: u64, word: u64) -> u64 {
        // Of the word that begins at byte `n` of the one before, its byte `k` is byte `n + k` of both: it comes to stand in byte `n - 1`.
        let bytes = BYTES.map(|byte| before >> (8 + 8 * byte) | word << (56 - 8 * byte));
        let differs =
            bytes[0] & self.masks[0] ^ self.common[0] | bytes[1] & self.masks[1] ^ self.common[1] | NONE;
        // A byte of zeros takes its upper bit from the one above. That may make another seem to be one, but none where there is none.
        differs.wrapping_sub(ONES) & !differs & UPPER
    }
}

#[cfg(test)]
mod tests {
    use super::Prefix;
    use crate::checks::Random;
    use crate::mem::orphans::collect::ADDRESS_BITS;

    fn between(before: u64, word: u64) -> impl Iterator<Item = u64> {
        (8..64).step_by(8).map(move |bits| (before >> bits | word << (64 - bits)) & ADDRESS_BITS)
    }

    #[test]
    fn no_address_is_missed() {
        let random = Random::new(1, 0);
        let heaps = [
            (0x4010_0000, 0x0fe0_0000),
            (0x4010_0000, 1 << 16),
            (0x0020_0000, 0x3b00_0000),
            (0xfff0_0000, 0x20_0000),
            (0x12_3456_0000, 0x9000_0000),
            (0x7f12_3456_0000, 1 << 20),
            (0x1000, 16),
        ];
        for (base, bytes) in heaps {
            let prefix = Prefix::of(base, bytes);
            for round in 0..20_000 {
                // An address of the heap at one of the seven places, with anything around it and a tag above.
                let address = (base + random.below(bytes)) as u64 | (random.below(1 << 16) as u64) << 48;
                let around = [0, 0x2020_2020_2020_2020, 0x0100_0001_0100, u64::MAX][round % 4]
                    ^ random.below(1 << 30) as u64;
                let bits = 8 * (1 + random.below(7));
                let before = (around & ((1 << bits) - 1)) | (address << bits);
                let word = (around & (u64::MAX << bits)) | (address >> (64 - bits));
                assert!(between(before, word).any(|found| found == address & ADDRESS_BITS));
                let which = prefix.which_may_begin_between(before, word);
                assert!(which >> (bits - 1) & 1 != 0, "{before:#x} {word:#x} in {base:#x}");
                assert!(which >> 56 == 0, "there are seven");
            }
        }
    }

    #[test]
    fn what_is_elsewhere_is_told_from_it() {
        let (base, bytes) = (0x4010_0000, 0x3fe0_0000);
        let prefix = Prefix::of(base, bytes);
        // Aligned addresses, small numbers, text, and what has no high byte free.
        let words = [0x4012_3450, 0, 7, 0x10_0000, u64::from_le_bytes(*b"a crash!"), 0xffff_ffff_ffff_ff00];
        for before in words {
            for word in [0, 7, u64::from_le_bytes(*b"of actor"), u64::MAX] {
                assert_eq!(prefix.which_may_begin_between(before, word), 0, "{before:#x} {word:#x}");
            }
        }
        assert_eq!(prefix.which_may_begin_between(0x4012_3450 << 8, 0), 0x80);
    }
}
