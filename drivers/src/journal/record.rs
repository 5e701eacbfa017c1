//! What stands before an entry on the disk.

/// `MgpJournal` and the version of this form.
const MAGIC: [u8; 12] = *b"MgpJournal\0\x01";

/// Bytes of it.
pub(super) const HEAD_BYTES: usize = 28;

/// The head of an entry: the number of the half that it is in, how long it is, and a checksum of all that, the entry, and the checksum before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub generation: u64,
    pub bytes: u32,
    pub checksum: u32,
}

impl Head {
    /// Of an entry behind one with that checksum, or of the first in its half.
    pub(super) fn of(generation: u64, before: Option<u32>, entry: &[u8]) -> Self {
        let bytes = entry.len() as u32;
        let mut hasher = Self::hasher(generation, before, bytes);
        hasher.update(entry);
        Self { generation, bytes, checksum: hasher.finalize() }
    }

    /// The checksum of an entry of so many bytes, without these.
    pub(super) fn hasher(generation: u64, before: Option<u32>, bytes: u32) -> crc32fast::Hasher {
        let mut hasher = crc32fast::Hasher::new();
        // The first is told from one behind a checksum of zero.
        hasher.update(&[u8::from(before.is_some())]);
        hasher.update(&before.unwrap_or(0).to_le_bytes());
        hasher.update(&generation.to_le_bytes());
        hasher.update(&bytes.to_le_bytes());
        hasher
    }

    pub(super) fn bytes(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..12].copy_from_slice(&MAGIC);
        bytes[12..20].copy_from_slice(&self.generation.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[24..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// `None` if there is none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<12>()?;
        let (generation, rest) = rest.split_first_chunk::<8>()?;
        let (bytes, rest) = rest.split_first_chunk::<4>()?;
        let head = Self {
            generation: u64::from_le_bytes(*generation),
            bytes: u32::from_le_bytes(*bytes),
            checksum: u32::from_le_bytes(*rest.first_chunk()?),
        };
        (*magic == MAGIC && head.generation != 0).then_some(head)
    }
}
