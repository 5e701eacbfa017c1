//! Which build an ELF is: the number that its kernel prints in its first line.
//!
//! The section `.magpie.build` is either the linker's build-id note, whose first eight bytes of hash are the
//! number, or the eight bytes alone. Both little-endian, as the target is.

use anyhow::{Context, Result};
use object::{Object, ObjectSection};

const SECTION: &str = ".magpie.build";
/// A GNU note begins with three 32-bit words (length of the name, length of the hash, kind) and the name.
const NOTE_HEADER_BYTES: usize = 16;
const NOTE_NAME: &[u8] = b"GNU\0";

/// The build of an ELF, given as its bytes; `None` when it carries none.
pub fn build_of(elf: &[u8]) -> Result<Option<u64>> {
    let file = object::File::parse(elf).context("not an ELF file")?;
    let Some(section) = file.section_by_name(SECTION) else { return Ok(None) };
    Ok(number(section.data().context("the section .magpie.build cannot be read")?))
}

fn number(data: &[u8]) -> Option<u64> {
    let is_note = data.get(NOTE_HEADER_BYTES - NOTE_NAME.len()..NOTE_HEADER_BYTES) == Some(NOTE_NAME);
    let hash = if is_note { &data[NOTE_HEADER_BYTES..] } else { data };
    hash.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn reads_a_build_id_note() {
        let note = b"\x04\0\0\0\x08\0\0\0\x03\0\0\0GNU\0\x01\x02\x03\x04\x05\x06\x07\x08";
        assert_eq!(number(note), Some(0x0807_0605_0403_0201));
        // A hash of fewer than eight bytes is none.
        assert_eq!(number(&note[..20]), None);
    }

    #[test]
    fn reads_a_bare_number() {
        assert_eq!(number(&0x1234_u64.to_le_bytes()), Some(0x1234));
        assert_eq!(number(&[1, 2, 3]), None);
        assert_eq!(number(&[]), None);
    }
}
