//! CRC-32 (IEEE 802.3), four bits at a time: the serial line is slower by far.

/// What four bits contribute.
static TABLE: [u32; 16] = {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut table = [0; 16];
    let mut index = 0;
    while index < table.len() {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 4 {
            value = value >> 1 ^ if value & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

/// The checksum of what was added.
#[derive(Debug)]
pub(crate) struct Crc(u32);

impl Crc {
    /// The checksum of nothing yet.
    pub(crate) const fn new() -> Self {
        Self(u32::MAX)
    }

    /// Adds a byte.
    pub(crate) fn add(&mut self, byte: u8) {
        self.0 ^= u32::from(byte);
        for _ in 0..2 {
            self.0 = self.0 >> 4 ^ TABLE[(self.0 & 15) as usize];
        }
    }

    /// The checksum.
    pub(crate) fn value(&self) -> u32 {
        !self.0
    }
}

/// The checksum of some bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = Crc::new();
    bytes.iter().for_each(|&byte| sum.add(byte));
    sum.value()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_standards_own_example() {
        assert_eq!(super::checksum(b"123456789"), 0xcbf4_3926);
    }
}
