//! The flat image: what the firmware or QEMU loads, made from the ELF.
//!
//! The loadable segments are laid out by physical address from the lowest on, gaps filled with zeros. The
//! image must begin with the Linux arm64 header, for that is what makes a loader hand over the device tree
//! and the initrd. Memory that starts as zero (`.bss`) is not in the file; the header's `image_size` tells
//! the loader to keep it free, and the kernel clears it.

use super::write_whole;
use anyhow::{Context, Result, bail};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, elf};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the header keeps the magic number `ARM\x64`, in bytes.
const MAGIC_OFFSET: usize = 56;
const MAGIC: &[u8; 4] = b"ARM\x64";
/// A larger image is a linking mistake (a segment at an address far away).
const MAX_IMAGE_BYTES: u64 = 256 << 20;

/// A kernel ready to boot: the ELF for symbols and log strings, the flat file for the loader.
#[derive(Debug, Clone)]
pub struct Image {
    /// The ELF.
    pub elf: PathBuf,
    /// The flat image made from it.
    pub flat: PathBuf,
}

/// Makes the flat image beside the ELF, as `<elf>.img`.
pub fn write_flat(elf: &Path) -> Result<Image> {
    let bytes = fs::read(elf).with_context(|| format!("cannot read {}", elf.display()))?;
    let flat = flatten(&bytes).with_context(|| format!("cannot make an image from {}", elf.display()))?;
    let mut name = elf.file_name().context("an ELF needs a file name")?.to_owned();
    name.push(".img");
    let path = elf.with_file_name(name);
    // Several guests may be reading it.
    write_whole(&path, &flat)?;
    Ok(Image { elf: elf.to_owned(), flat: path })
}

fn flatten(bytes: &[u8]) -> Result<Vec<u8>> {
    let file = ElfFile64::<Endianness>::parse(bytes).context("not a 64-bit ELF file")?;
    let endian = file.endian();
    if file.elf_header().e_machine.get(endian) != elf::EM_AARCH64 {
        bail!("not built for 64-bit Arm; build it with --target aarch64-unknown-none");
    }
    let mut segments = Vec::new();
    for header in file.elf_program_headers() {
        let data = header.data(endian, bytes).ok().context("a segment lies outside the file")?;
        if header.p_type(endian) == elf::PT_LOAD && !data.is_empty() {
            segments.push((header.p_paddr(endian), data));
        }
    }
    let image = lay_out(&mut segments)?;
    if image.get(MAGIC_OFFSET..MAGIC_OFFSET + MAGIC.len()) != Some(MAGIC) {
        bail!(
            "it does not begin with the Linux arm64 header; was it linked with -Tmagpie.ld, as .cargo/config.toml says?"
        );
    }
    Ok(image)
}

/// Puts segments (physical address, bytes) one behind the other.
fn lay_out(segments: &mut [(u64, &[u8])]) -> Result<Vec<u8>> {
    segments.sort_by_key(|(address, _)| *address);
    let base = segments.first().context("it has nothing to load")?.0;
    let mut image = Vec::new();
    for (address, data) in segments {
        let offset = *address - base;
        if offset < image.len() as u64 {
            bail!("two segments overlap at {address:#x}");
        }
        if offset + data.len() as u64 > MAX_IMAGE_BYTES {
            bail!("a segment at {address:#x} is more than {} MiB above the first", MAX_IMAGE_BYTES >> 20);
        }
        image.resize(offset as usize, 0);
        image.extend_from_slice(data);
    }
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::{flatten, lay_out};

    #[test]
    fn segments_lie_by_physical_address_with_zeros_between() {
        let mut segments: Vec<(u64, &[u8])> = vec![(0x1008, b"data"), (0x1000, b"text")];
        assert_eq!(lay_out(&mut segments).unwrap(), b"text\0\0\0\0data");
    }

    #[test]
    fn overlapping_and_far_segments_are_refused() {
        assert!(lay_out(&mut [(0x1000, b"text"), (0x1003, b"data")]).is_err());
        assert!(lay_out(&mut [(0x1000, b"text"), (0x9000_0000, b"data")]).is_err());
        assert!(lay_out(&mut []).is_err());
    }

    #[test]
    fn what_is_no_arm_elf_is_refused() {
        assert!(flatten(b"#!/bin/sh").is_err());
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(cfg!(target_arch = "aarch64") || flatten(&own).is_err());
    }
}
