//! What the host sends: frames. Each is complete in itself, so the loader may receive them twice, late, or in any
//! order.

use crate::crc::checksum;

/// What a frame begins with. No proper suffix of it is also a prefix, so a search need not go back.
const MAGIC: [u8; 4] = *b"MGPL";
/// The magic number, five numbers, and their checksum.
pub const HEADER_BYTES: usize = 4 + 5 * 4 + 4;
/// The checksum behind a part.
pub(crate) const CHECKSUM_BYTES: usize = 4;
/// Bytes of the kernel in one frame, at most.
pub const PART_BYTES: usize = 4096;
/// Bytes of a frame, at most.
pub(crate) const FRAME_BYTES: usize = HEADER_BYTES + PART_BYTES + CHECKSUM_BYTES;

/// Which kernel: two that differ are told apart by these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// Its bytes.
    pub length: u32,
    /// The checksum of all of them.
    pub checksum: u32,
}

/// The beginning of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The host's number for it, which the answer repeats.
    pub number: u32,
    /// What the part is of.
    pub kernel: Kernel,
    /// Where in the kernel it belongs.
    pub offset: u32,
    /// Its bytes. None, with an offset at the kernel's end: start it.
    pub count: u32,
}

impl Header {
    /// As it goes over the line.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        let words = [self.number, self.kernel.length, self.kernel.checksum, self.offset, self.count];
        for (place, word) in bytes[4..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let sum = checksum(&bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads it; `None` if it is damaged, or contradicts itself.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let kernel = Kernel { length: word(8), checksum: word(12) };
        let header = Self { number: word(4), kernel, offset: word(16), count: word(20) };
        let is_right = begins(bytes)
            && word(24) == checksum(&bytes[..24])
            && header.count as usize <= PART_BYTES
            && header.offset.checked_add(header.count).is_some_and(|end| end <= kernel.length);
        is_right.then_some(header)
    }
}

/// Whether these bytes are, or may become, the beginning of a frame.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    let known = bytes.len().min(MAGIC.len());
    bytes[..known] == MAGIC[..known]
}

#[cfg(test)]
mod tests {
    use super::{Header, Kernel};

    #[test]
    fn a_header_is_read_as_written_and_no_damage_passes() {
        let kernel = Kernel { length: 100_000, checksum: 0x1234_5678 };
        let header = Header { number: 7, kernel, offset: 4096, count: 4096 };
        let bytes = header.to_bytes();
        assert_eq!(Header::from_bytes(&bytes), Some(header));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::from_bytes(&damaged), None, "bit {bit}");
        }
    }

    #[test]
    fn a_part_beyond_the_kernel_or_too_large_is_refused() {
        let kernel = Kernel { length: 10_000, checksum: 0 };
        for (offset, count) in [(9_000, 1_001), (u32::MAX, 1), (0, 4097)] {
            let header = Header { number: 1, kernel, offset, count };
            assert_eq!(Header::from_bytes(&header.to_bytes()), None, "{offset} {count}");
        }
    }
}
