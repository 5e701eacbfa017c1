//! Writing a file that others may be reading: they find the old one or the new one, never a part.

use crate::failure::usage;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a whole file. One that has these bytes already stays as it is.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::metadata(path).is_ok_and(|found| found.len() == bytes.len() as u64)
        && fs::read(path).is_ok_and(|found| found == bytes)
    {
        return Ok(());
    }
    let new = beside(path);
    let written = fs::write(&new, bytes).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // It may not even be there.
        let _ = fs::remove_file(&new);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Whether a file may be written there, to a new name or in place of a file: asked before what takes long.
pub fn check_output(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = path.display();
    if path.is_dir() {
        return Err(usage(format!("{shown} is a folder; give a file in it")));
    }
    if !folder.is_dir() {
        return Err(usage(format!("{shown} cannot be made: there is no folder {}", folder.display())));
    }
    Ok(())
}

/// A name that nobody else uses, in the same folder.
fn beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    // Relaxed: a number.
    name.push(format!(".{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::{check_output, write_whole};
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn a_reader_finds_one_or_the_other() {
        let folder = std::env::temp_dir().join(format!("magpie-write-whole-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        let contents = [vec![1_u8; 100_000], vec![2_u8; 50_000]];
        write_whole(&path, &contents[0]).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let found = fs::read(&path).unwrap();
                    assert!(contents.contains(&found), "{} bytes", found.len());
                }
            });
            for round in 0..200 {
                write_whole(&path, &contents[round % 2]).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "something was left behind");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_output_is_a_file_in_a_folder() {
        assert!(check_output("run.pftrace".as_ref()).is_ok());
        let said = |path: &str| check_output(path.as_ref()).unwrap_err().to_string();
        assert!(said("/no/such/folder/file").contains("there is no folder /no/such/folder"));
        assert!(said("/").contains("is a folder"));
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = write_whole("/no/such/folder/file".as_ref(), b"x").unwrap_err();
        assert!(format!("{error:#}").contains("/no/such/folder/file"));
    }
}
