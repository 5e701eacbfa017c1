//! Another file system's author made the disk, and reads what was written: the crate `fatfs`.

use std::future::Future;
use std::io::{Cursor, Read, Write};
use std::pin::pin;
use std::string::String;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::vec::Vec;

use fatfs::{Dir, FatType, FileSystem, FormatVolumeOptions, FsOptions};

use super::{Entry, Fat, FatError};
use crate::block::{Blocks, DiskError, SECTOR_BYTES};

/// Where the partition begins.
const FIRST: usize = 64 * SECTOR_BYTES;

/// A disk in memory, which is slow: it is always asked twice.
struct Medium(Mutex<Vec<u8>>);

fn range(sector: u64, bytes: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(sector).ok()?.checked_mul(SECTOR_BYTES)?;
    Some(start..start.checked_add(bytes)?)
}

impl Blocks for &Medium {
    async fn read(&self, sector: u64, bytes: usize) -> Result<Vec<u8>, DiskError> {
        let mut was_asked = false;
        std::future::poll_fn(|_| {
            if std::mem::replace(&mut was_asked, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let all = self.0.lock().unwrap();
        Ok(range(sector, bytes).and_then(|range| all.get(range)).ok_or(DiskError::Outside)?.to_vec())
    }

    async fn write(&self, sector: u64, bytes: Vec<u8>) -> Result<(), DiskError> {
        let mut all = self.0.lock().unwrap();
        let place = range(sector, bytes.len()).and_then(|range| all.get_mut(range));
        place.ok_or(DiskError::Outside)?.copy_from_slice(&bytes);
        Ok(())
    }

    async fn flush(&self) -> Result<(), DiskError> {
        Ok(())
    }
}

fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(ready) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return ready;
        }
    }
}

/// A disk with one partition, made by the other.
fn medium(megabytes: usize, kind: FatType, type_number: u8) -> Medium {
    let mut all = vec![0; megabytes << 20];
    let sectors = ((all.len() - FIRST) / SECTOR_BYTES) as u32;
    let mut part = Cursor::new(vec![0; all.len() - FIRST]);
    fatfs::format_volume(&mut part, FormatVolumeOptions::new().fat_type(kind)).unwrap();
    all[FIRST..].copy_from_slice(part.get_ref());
    all[450] = type_number;
    all[454..458].copy_from_slice(&64_u32.to_le_bytes());
    all[458..462].copy_from_slice(&sectors.to_le_bytes());
    all[510..512].copy_from_slice(&[0x55, 0xaa]);
    Medium(Mutex::new(all))
}

/// The other looks at it, or changes it.
fn other<T>(medium: &Medium, what: impl FnOnce(Dir<'_, &mut Cursor<Vec<u8>>>) -> T) -> T {
    let mut all = medium.0.lock().unwrap();
    let mut part = Cursor::new(all[FIRST..].to_vec());
    let system = FileSystem::new(&mut part, FsOptions::new()).unwrap();
    let result = what(system.root_dir());
    system.unmount().unwrap();
    all[FIRST..].copy_from_slice(part.get_ref());
    result
}

fn read(medium: &Medium, path: &str) -> Option<Vec<u8>> {
    other(medium, |root| {
        let mut bytes = Vec::new();
        root.open_file(path).ok()?.read_to_end(&mut bytes).unwrap();
        Some(bytes)
    })
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| ((at / 7) ^ (at * 31)) as u8).collect()
}

#[test]
fn what_the_one_writes_the_other_reads() {
    for (megabytes, kind, number) in [(16, FatType::Fat16, 0x0e), (48, FatType::Fat32, 0x0c)] {
        let medium = medium(megabytes, kind, number);
        let mut fat = Fat::on(&medium);
        assert_eq!(finish(fat.list("")), Ok(vec![]));
        assert_eq!(finish(fat.read("NONE.TXT")), Err(FatError::NotFound));
        // A sector, a bit more or less, clusters, and more than is fetched at a time.
        for bytes in [0, 1, 511, 512, 513, 4096, 70_000, 1_000_000] {
            let name = format!("F{bytes}.BIN");
            finish(fat.write(&name, &content(bytes))).unwrap();
            assert!(read(&medium, &name) == Some(content(bytes)), "{kind:?}: {name} as the other reads it");
            assert!(finish(fat.read(&name)) == Ok(content(bytes)), "{kind:?}: {name}");
            assert!(
                finish(Fat::on(&medium).read(&name)) == Ok(content(bytes)),
                "{kind:?}: {name}, by another"
            );
        }
        // Shorter and longer than before.
        for bytes in [10, 20_000, 3] {
            finish(fat.write("F70000.BIN", &content(bytes))).unwrap();
            assert!(read(&medium, "F70000.BIN") == Some(content(bytes)), "{kind:?}: {bytes} bytes instead");
        }
        finish(fat.make_folder("LOGS")).unwrap();
        finish(fat.make_folder("LOGS/OLD")).unwrap();
        for line in 0..200 {
            finish(fat.append("LOGS/OLD/A.TXT", format!("line {line}\n").as_bytes())).unwrap();
        }
        let expected: String = (0..200).map(|line| format!("line {line}\n")).collect();
        assert_eq!(read(&medium, "LOGS/OLD/A.TXT"), Some(expected.into_bytes()));
        assert_eq!(finish(fat.read("LOGS")), Err(FatError::WrongKind));
        assert!(finish(fat.write("a longer name.text", b"")).is_err());
        finish(fat.remove("F1.BIN")).unwrap();
        assert_eq!((read(&medium, "F1.BIN"), finish(fat.read("F1.BIN"))), (None, Err(FatError::NotFound)));
    }
}

#[test]
fn what_the_other_writes_the_one_reads() {
    let medium = medium(48, FatType::Fat32, 0x0c);
    other(&medium, |root| {
        root.create_file("HELLO.TXT").unwrap().write_all(b"hello").unwrap();
        root.create_file("a long name.text").unwrap().write_all(&content(100_000)).unwrap();
        root.create_dir("LOGS").unwrap().create_file("B.TXT").unwrap().write_all(b"b").unwrap();
    });
    let mut fat = Fat::on(&medium);
    assert_eq!(finish(fat.read("HELLO.TXT")), Ok(b"hello".to_vec()));
    assert_eq!(finish(fat.read("LOGS/B.TXT")), Ok(b"b".to_vec()));
    let entries = finish(fat.list("")).unwrap();
    assert!(entries.contains(&Entry { name: "LOGS".into(), bytes: 0, is_folder: true }), "{entries:?}");
    let long = entries.iter().find(|entry| entry.bytes == 100_000).expect("the file with the long name");
    assert_eq!(finish(fat.read(&long.name)), Ok(content(100_000)));
}

#[test]
fn a_full_disk_and_none_at_all_are_errors() {
    let medium = medium(16, FatType::Fat16, 0x0e);
    let mut fat = Fat::on(&medium);
    finish(fat.write("KEPT.BIN", &content(5000))).unwrap();
    let mut files = 0;
    let error = loop {
        match finish(fat.write(&format!("F{files}.BIN"), &content(2_000_000))) {
            Ok(()) => files += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((files, error), (8, FatError::Full));
    // What did not go well was not written at all.
    assert!(read(&medium, "F7.BIN") == Some(content(2_000_000)) && read(&medium, "F8.BIN").is_none());
    assert!(finish(fat.read("KEPT.BIN")) == Ok(content(5000)));
    assert_eq!(finish(fat.write("LARGE.BIN", &content(8_000_000))), Err(FatError::Full));
    let blank = Medium(Mutex::new(vec![0; 1 << 20]));
    assert!(matches!(finish(Fat::on(&blank).list("")), Err(FatError::Format(_))));
    let none = Medium(Mutex::new(Vec::new()));
    assert_eq!(finish(Fat::on(&none).list("")), Err(FatError::Disk(DiskError::Outside)));
}

/// A folder whose last cluster leads to its first.
#[test]
fn a_folder_without_an_end_is_an_error() {
    let medium = medium(48, FatType::Fat32, 0x0c);
    let files: Vec<_> = (0..128).map(|file| format!("F{file}.TXT")).collect();
    for name in &files {
        finish(Fat::on(&medium).write(name, b"")).unwrap();
    }
    {
        let mut all = medium.0.lock().unwrap();
        let number = |at: usize| u32::from_le_bytes(all[FIRST + at..FIRST + at + 4].try_into().unwrap());
        let (reserved, cluster_bytes) = (number(14) as usize & 0xffff, usize::from(all[FIRST + 13]) * 512);
        assert!(files.len() * 32 >= cluster_bytes, "the root's first cluster is full");
        // Of the root, which begins in the second cluster.
        let entry = FIRST + reserved * SECTOR_BYTES + 2 * 4;
        all[entry..entry + 4].copy_from_slice(&2_u32.to_le_bytes());
    }
    let mut fat = Fat::on(&medium);
    assert_eq!(finish(fat.list("")), Err(FatError::TooMuch));
    assert_eq!(finish(fat.read("NONE.TXT")), Err(FatError::TooMuch));
    assert_eq!(finish(fat.read("F0.TXT")), Ok(vec![]));
}

/// Sectors in which anything is wrong: an error, or anything, but it ends.
#[test]
fn a_disk_with_nonsense_ends() {
    let sound = medium(16, FatType::Fat16, 0x0e);
    finish(Fat::on(&sound).write("A.BIN", &content(30_000))).unwrap();
    let sound = sound.0.into_inner().unwrap();
    let mut seed = 1_u64;
    let mut random = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % bound
    };
    let mut errors = 0;
    for _ in 0..300 {
        let mut all = sound.clone();
        for _ in 0..=random(8) {
            // In the table of partitions, the first sector of the volume, its FAT or its root.
            let sector = [0, 64, 65 + random(4), 65 + random(200)][random(4)];
            all[sector * SECTOR_BYTES + random(SECTOR_BYTES)] = random(256) as u8;
        }
        let medium = Medium(Mutex::new(all));
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut fat = Fat::on(&medium);
            let read = finish(fat.read("A.BIN"));
            let _ = finish(fat.append("A.BIN", b"more"));
            read
        }));
        errors += u32::from(!matches!(ended, Ok(Ok(_))));
    }
    assert!(errors > 10, "{errors} of 300 were noticed");
}
