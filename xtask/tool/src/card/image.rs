//! A card's bytes: a partition table with one partition, and a FAT32 file system in it.

use super::{Contents, Moment};
use anyhow::{Context, Result};
use fatfs::{FatType, FileSystem, FormatVolumeOptions, FsOptions};
use fscommon::StreamSlice;
use std::io::{Read, Seek, SeekFrom, Write};

const SECTOR_BYTES: u64 = 512;
/// Where the partition begins: the usual place, which flash memory is aligned to.
const FIRST_SECTOR: u32 = 2048;
/// FAT32 with an address that the firmware can read by blocks.
const FAT32_LBA: u8 = 0x0c;
/// The smallest image: FAT32 needs 65,525 clusters.
const LEAST_BYTES: u64 = 64 << 20;
/// Room beside the files, for the file system's own tables.
const SPARE_BYTES: u64 = 16 << 20;
/// The disk's signature, so that two runs give the same bytes.
const SIGNATURE: [u8; 4] = *b"MGPI";
/// Marks the partition that is booted from.
const BOOT_ACTIVE: u8 = 0x80;

/// How large an image with these files is, in bytes.
pub fn size(contents: &Contents) -> u64 {
    let files = contents.bytes() + contents.bytes() / 32;
    (files + SPARE_BYTES).max(LEAST_BYTES).next_multiple_of(1 << 20)
}

/// Writes the image to `disk`, which is `bytes` long and holds zeros.
/// The files are of `made`.
pub fn write<D: Read + Write + Seek>(
    disk: &mut D,
    bytes: u64,
    contents: &Contents,
    made: Moment,
) -> Result<()> {
    let sectors = u32::try_from(bytes / SECTOR_BYTES).context("the image is larger than a card can be")?;
    let own = sectors.checked_sub(FIRST_SECTOR).context("the image is too small")?;
    disk.seek(SeekFrom::Start(0)).context("cannot go to the start")?;
    disk.write_all(&partition_sector(own)).context("cannot write the partition table")?;

    let (start, end) = (u64::from(FIRST_SECTOR) * SECTOR_BYTES, u64::from(sectors) * SECTOR_BYTES);
    let mut partition = StreamSlice::new(&mut *disk, start, end).context("the image is too small")?;
    let options = FormatVolumeOptions::new().fat_type(FatType::Fat32).volume_label(*b"MAGPIE     ");
    fatfs::format_volume(&mut partition, options).context("cannot make the file system")?;
    partition.seek(SeekFrom::Start(0)).context("cannot go back to the start")?;
    let system = FileSystem::new(partition, FsOptions::new().time_provider(made.provider()))
        .context("cannot open the file system")?;
    for (name, content) in &contents.0 {
        let mut file = system.root_dir().create_file(name).with_context(|| format!("cannot make {name}"))?;
        file.write_all(content).with_context(|| format!("cannot write {name}: is there room?"))?;
        file.flush().with_context(|| format!("cannot write {name}"))?;
    }
    system.unmount().context("cannot finish the file system")
}

/// The first sector: a table of four partitions, of which the first has so many sectors. Nobody boots from the code in front of it.
fn partition_sector(sectors: u32) -> [u8; SECTOR_BYTES as usize] {
    let mut sector = [0; SECTOR_BYTES as usize];
    sector[440..444].copy_from_slice(&SIGNATURE);
    // Of an entry: whether it is booted from, its kind, and in sectors where it begins and how long it is. Cylinders and heads, between
    // those, are zero, as is usual where sectors are counted.
    let entry = &mut sector[446..462];
    entry[0] = BOOT_ACTIVE;
    entry[4] = FAT32_LBA;
    entry[8..12].copy_from_slice(&FIRST_SECTOR.to_le_bytes());
    entry[12..16].copy_from_slice(&sectors.to_le_bytes());
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

#[cfg(test)]
mod tests {
    use super::{Contents, FIRST_SECTOR, LEAST_BYTES, Moment, size, write};
    use chrono::{Datelike, Utc};
    use std::io::Cursor;

    fn number(bytes: &[u8], at: usize, width: usize) -> usize {
        bytes[at..at + width].iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte))
    }

    /// Reads a file from the root of the first partition, by the letter of the FAT32 specification: no code in
    /// common with what wrote it.
    fn read(disk: &[u8], short_name: &[u8; 11]) -> Option<Vec<u8>> {
        assert_eq!(&disk[510..512], [0x55, 0xaa], "the mark of a partition table");
        let entry = &disk[446..462];
        assert_eq!((entry[0], entry[4]), (0x80, 0x0c), "active, FAT32");
        let volume = &disk[number(entry, 8, 4) * 512..];
        assert_eq!(number(volume, 11, 2), 512, "bytes in a sector");
        assert_eq!(&volume[82..90], b"FAT32   ");
        let (cluster_sectors, reserved) = (number(volume, 13, 1), number(volume, 14, 2));
        let (tables, table_sectors) = (number(volume, 16, 1), number(volume, 36, 4));
        let table = &volume[reserved * 512..];
        let data = (reserved + tables * table_sectors) * 512;
        let cluster_bytes = cluster_sectors * 512;
        let chain = |first: usize| {
            let next = |cluster: &usize| {
                Some(number(table, cluster * 4, 4) & 0x0fff_ffff).filter(|n| *n < 0x0fff_fff8)
            };
            let clusters = std::iter::successors(Some(first), next).take(1 << 20);
            clusters
                .flat_map(|n| volume[data + (n - 2) * cluster_bytes..][..cluster_bytes].to_vec())
                .collect::<Vec<u8>>()
        };
        let root = chain(number(volume, 44, 4));
        let found = root.chunks(32).find(|entry| entry[..11] == *short_name && entry[11] != 0x0f)?;
        let first = number(found, 20, 2) << 16 | number(found, 26, 2);
        let length = number(found, 28, 4);
        Some(if length == 0 { Vec::new() } else { chain(first)[..length].to_vec() })
    }

    fn sample() -> Contents {
        let pattern =
            |length: usize, seed: usize| (0..length).map(|i| (i * 31 + seed) as u8).collect::<Vec<u8>>();
        Contents(vec![
            ("kernel8.img".into(), pattern(500_001, 1)),
            ("config.txt".into(), b"arm_64bit=1\n".to_vec()),
            ("empty.bin".into(), Vec::new()),
            ("input".into(), pattern(3 << 20, 2)),
        ])
    }

    #[test]
    fn an_independent_reader_finds_every_file() {
        let contents = sample();
        let bytes = size(&contents);
        let mut disk = Cursor::new(vec![0; bytes as usize]);
        write(&mut disk, bytes, &contents, Moment::now().unwrap()).unwrap();
        let disk = disk.into_inner();
        assert_eq!(disk.len() as u64, bytes, "the image has not grown");
        let names = [b"KERNEL8 IMG", b"CONFIG  TXT", b"EMPTY   BIN", b"INPUT      "];
        for (name, (_, content)) in names.into_iter().zip(&contents.0) {
            assert!(read(&disk, name).as_ref() == Some(content), "{}", String::from_utf8_lossy(name));
        }
        assert_eq!(read(&disk, b"NONESUCH   "), None);
        let this_year = Utc::now().year() as usize;
        let entry = disk.chunks(32).find(|entry| entry[..11] == *names[0] && entry[11] != 0x0f).unwrap();
        let year = 1980 + (number(entry, 24, 2) >> 9);
        assert!(year == this_year || year == this_year - 1, "written in {year}");
    }

    #[test]
    fn the_partition_is_as_long_as_the_rest_and_the_others_are_empty() {
        let mut disk = Cursor::new(vec![0; LEAST_BYTES as usize]);
        write(&mut disk, LEAST_BYTES, &sample(), Moment::now().unwrap()).unwrap();
        let sector = &disk.get_ref()[..512];
        assert_eq!(&sector[440..444], b"MGPI");
        let (begin, sectors) = (number(&sector[446..], 8, 4), number(&sector[446..], 12, 4));
        assert_eq!((begin * 512, (begin + sectors) * 512), (1 << 20, LEAST_BYTES as usize));
        assert!(sector[462..510].iter().all(|&byte| byte == 0), "three empty entries");
        assert!(sector[..440].iter().all(|&byte| byte == 0), "no code");
        assert!(write(&mut Cursor::new(Vec::new()), 1 << 20, &sample(), Moment::now().unwrap()).is_err());
    }

    #[test]
    fn two_images_of_the_same_files_are_the_same() {
        let image = |made| {
            let mut disk = Cursor::new(vec![0; LEAST_BYTES as usize]);
            write(&mut disk, LEAST_BYTES, &sample(), made).unwrap();
            disk.into_inner()
        };
        let made = Moment::now().unwrap();
        assert!(image(made) == image(made));
    }

    #[test]
    fn files_that_do_not_fit_are_refused() {
        let contents = Contents(vec![("large".into(), vec![1; LEAST_BYTES as usize])]);
        let mut disk = Cursor::new(vec![0; LEAST_BYTES as usize]);
        let error = write(&mut disk, LEAST_BYTES, &contents, Moment::now().unwrap()).unwrap_err();
        assert!(format!("{error:#}").contains("large"), "{error:#}");
        assert!(size(&contents) > LEAST_BYTES + u64::from(FIRST_SECTOR) * 512);
    }
}
