//! Files on a disk, as FAT16 or FAT32 keeps them: for exchange with other computers, on a card for one. What is to outlive power failures goes into a
//! [journal](crate::journal): FAT has nothing for that.
//!
//! The file system is the crate `embedded-sdmmc`'s, which waits for nothing. So it is asked about sectors that are in memory already: where one is missing it is asked anew from
//! the beginning when that one has come, and what it writes is written when it has ended. `replay.rs` has that; nobody spins while the disk works.

mod replay;
#[cfg(test)]
mod tests;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use embedded_sdmmc::{Error, Mode};

use self::replay::{Absent, Directory, Known};
use crate::block::{Blocks, DiskError};

/// How much of a file is read and written at a time.
const PIECE: usize = 4096;

/// Why a file was not read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FatError {
    /// The disk says so.
    Disk(DiskError),
    /// There is no such file or folder.
    NotFound,
    /// It has a name that FAT did not have at first: up to eight characters, and three behind a dot.
    BadName,
    /// It is a folder where a file is wanted, or the reverse; it is there already; or it is a folder with something in it.
    WrongKind,
    /// It can only be read.
    ReadOnly,
    /// The disk is full.
    Full,
    /// It takes more than four megabytes of the disk to do that.
    TooMuch,
    /// The disk has no partition of FAT, or something in it is wrong: what.
    Format(&'static str),
    /// There is no memory.
    OutOfMemory,
}

impl fmt::Display for FatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::NotFound => f.write_str("there is no such file or folder"),
            Self::BadName => f.write_str("names have up to eight characters, and up to three behind a dot"),
            Self::WrongKind => f.write_str(
                "it is a folder where a file is wanted, or the reverse, or there already, or not empty",
            ),
            Self::ReadOnly => f.write_str("the file can only be read"),
            Self::Full => f.write_str("the disk is full"),
            Self::TooMuch => f.write_str("that takes more than four megabytes of the disk at once"),
            Self::Format(what) => write!(f, "the disk has no files: {what}"),
            Self::OutOfMemory => f.write_str("out of memory: give the machine more, or start less"),
        }
    }
}

impl core::error::Error for FatError {}

impl From<DiskError> for FatError {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::OutOfMemory => Self::OutOfMemory,
            error => Self::Disk(error),
        }
    }
}

impl From<Error<Absent>> for FatError {
    fn from(error: Error<Absent>) -> Self {
        match error {
            Error::NotFound => Self::NotFound,
            Error::FilenameError(_) => Self::BadName,
            Error::OpenedDirAsFile
            | Error::OpenedFileAsDir
            | Error::FileAlreadyExists
            | Error::DirAlreadyExists
            | Error::DeleteNonEmptyDir => Self::WrongKind,
            Error::ReadOnly => Self::ReadOnly,
            Error::NotEnoughSpace | Error::DiskFull => Self::Full,
            Error::FormatError(what) => Self::Format(what),
            Error::NoSuchVolume => Self::Format("it has no first partition"),
            _ => Self::Format("it is not as it should be"),
        }
    }
}

/// A file or folder in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// How many bytes a file has.
    pub bytes: u32,
    /// It is a folder.
    pub is_folder: bool,
}

/// The first partition of a disk, which nobody else changes meanwhile. Paths are names between slashes, from the root on: `LOGS/TODAY.TXT`. Names are short, of eight characters
/// and three; a file that another computer gave a longer one has a short one, too, which [`list`](Self::list) says. The
/// name of the disk itself, its label, is in the root as well, and cannot be that of a file there.
///
/// What was done is on the disk when the call has returned. If it is given up before, or the power fails, the file and those that are written beside it may be damaged.
///
/// ```
/// use magpie_drivers::block::Disk;
/// use magpie_drivers::fat::{Fat, FatError};
///
/// async fn note(text: &str) -> Result<usize, FatError> {
///     let mut card = Fat::on(Disk::named("card"));
///     card.append("NOTES.TXT", text.as_bytes()).await?;
///     Ok(card.read("NOTES.TXT").await?.len())
/// }
/// # let _ = note("");
/// ```
#[derive(Debug)]
pub struct Fat<B> {
    blocks: B,
    known: Known,
}

impl<B: Blocks> Fat<B> {
    /// Nothing is read yet.
    pub fn on(blocks: B) -> Self {
        Self { blocks, known: Known::default() }
    }

    /// The whole content of a file.
    ///
    /// # Errors
    /// [`FatError`]; so it is with all.
    pub async fn read(&mut self, path: &str) -> Result<Vec<u8>, FatError> {
        self.run(|root| {
            let (folder, name) = folder(root, path)?;
            let file = folder.open_file_in_dir(name, Mode::ReadOnly)?;
            let mut bytes = Vec::new();
            // Not all at once: what the file says it has may be wrong, and the memory short.
            while !file.is_eof() {
                let before = bytes.len();
                if bytes.try_reserve(PIECE).is_err() {
                    return Ok(None);
                }
                bytes.resize(before + PIECE, 0);
                let count = file.read(&mut bytes[before..])?;
                bytes.truncate(before + count);
            }
            file.close()?;
            Ok(Some(bytes))
        })
        .await?
        .ok_or(FatError::OutOfMemory)
    }

    /// Makes this the content of a file, which is made if there is none.
    ///
    /// # Errors
    /// [`FatError`].
    pub async fn write(&mut self, path: &str, bytes: &[u8]) -> Result<(), FatError> {
        self.put(path, bytes, Mode::ReadWriteCreateOrTruncate).await
    }

    /// Adds this to the end of a file, which is made if there is none.
    ///
    /// # Errors
    /// [`FatError`].
    pub async fn append(&mut self, path: &str, bytes: &[u8]) -> Result<(), FatError> {
        self.put(path, bytes, Mode::ReadWriteCreateOrAppend).await
    }

    async fn put(&mut self, path: &str, bytes: &[u8], mode: Mode) -> Result<(), FatError> {
        self.run(|root| {
            let (folder, name) = folder(root, path)?;
            let file = folder.open_file_in_dir(name, mode)?;
            for piece in bytes.chunks(PIECE) {
                file.write(piece)?;
            }
            file.close()
        })
        .await
    }

    /// What is in a folder; the root is the empty path.
    ///
    /// # Errors
    /// [`FatError`].
    pub async fn list(&mut self, path: &str) -> Result<Vec<Entry>, FatError> {
        self.run(|root| {
            let mut folder = root;
            for name in path.split('/').filter(|name| !name.is_empty()) {
                folder.change_dir(name)?;
            }
            let mut entries = Vec::new();
            let mut has_memory = true;
            folder.iterate_dir(|entry| {
                if !entry.attributes.is_volume() {
                    // A folder whose chain leads back into itself has a great many.
                    if entries.try_reserve(1).is_err() {
                        has_memory = false;
                        return core::ops::ControlFlow::Break(());
                    }
                    let (name, is_folder) = (entry.name.to_string(), entry.attributes.is_directory());
                    entries.push(Entry { name, bytes: entry.size, is_folder });
                }
                core::ops::ControlFlow::Continue(())
            })?;
            Ok(has_memory.then_some(entries))
        })
        .await?
        .ok_or(FatError::OutOfMemory)
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// [`FatError`].
    pub async fn make_folder(&mut self, path: &str) -> Result<(), FatError> {
        self.run(|root| {
            let (folder, name) = folder(root, path)?;
            folder.make_dir_in_dir(name)
        })
        .await
    }

    /// Removes a file, or a folder in which there is nothing.
    ///
    /// # Errors
    /// [`FatError`].
    pub async fn remove(&mut self, path: &str) -> Result<(), FatError> {
        self.run(|root| {
            let (folder, name) = folder(root, path)?;
            folder.delete_entry_in_dir(name)
        })
        .await
    }

    async fn run<R>(
        &mut self,
        what: impl Fn(Directory<'_, '_>) -> Result<R, Error<Absent>>,
    ) -> Result<R, FatError> {
        self.known.run(&self.blocks, what).await
    }
}

/// The folder in which a path ends, and its last name.
fn folder<'a, 'd, 'p>(
    root: Directory<'a, 'd>,
    path: &'p str,
) -> Result<(Directory<'a, 'd>, &'p str), Error<Absent>> {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut folder = root;
    for name in folders.split('/').filter(|name| !name.is_empty()) {
        folder.change_dir(name)?;
    }
    Ok((folder, name))
}
