//! A journal: entries that are appended one by one, and are there again after a restart, whenever the power has failed.
//!
//! It has a range of a disk, in two halves. One half is in use: entries lie in it one behind the other, each in whole sectors of its own, with a checksum that also
//! covers the checksum before. An entry is there when all of it is: a write that the power cut off leaves the journal as it was before. What lies behind the last
//! entry is of earlier times, or half of an entry, and does not fit the checksum before it.
//!
//! A journal that is full is begun anew in the other half, by one entry that stands for all. Until that is whole the old half is the journal; then it is the one with
//! the higher number.
//!
//! What was said to be appended is there, unless the disk itself loses what it has flushed. That cannot be told from an entry that was cut off.

mod record;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::block::{Blocks, DiskError, SECTOR_BYTES};
use record::{HEAD_BYTES, Head};

/// So many sectors are read at once, and so much memory taken, for what is not known to be a whole entry.
const PIECE_SECTORS: u64 = 32;

/// Why a journal was not opened, or an entry not appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// What the disk says. Whether the entry is there is not known: open the journal anew.
    Disk(DiskError),
    /// There is no room for the entry in this half: [`begin_anew`](Journal::begin_anew) with one that stands for all.
    Full,
    /// An entry of so many bytes fits into no half, or the range has fewer than four sectors.
    TooLarge,
    /// There was an error before: open the journal anew.
    Lost,
    /// There is no memory.
    OutOfMemory,
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Full => {
                f.write_str("the journal is full: begin it anew, with an entry that stands for all")
            }
            Self::TooLarge => {
                f.write_str("the entry is larger than half of the journal: give it more of the disk")
            }
            Self::Lost => f.write_str("where the journal ends is not known since an error: open it anew"),
            Self::OutOfMemory => f.write_str("out of memory: give the machine more, or start less"),
        }
    }
}

impl core::error::Error for JournalError {}

impl From<DiskError> for JournalError {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::OutOfMemory => Self::OutOfMemory,
            error => Self::Disk(error),
        }
    }
}

/// A journal in a range of sectors.
///
/// ```
/// use magpie_drivers::block::Disk;
/// use magpie_drivers::journal::{Journal, JournalError};
///
/// /// Adds to what was added before, also before the machine was started.
/// async fn add(number: u64) -> Result<u64, JournalError> {
///     let mut sum = 0;
///     let take = |entry: &[u8]| sum = u64::from_le_bytes(*entry.first_chunk().unwrap_or(&[0; 8]));
///     let mut journal = Journal::open(Disk::named("disk"), 0..1024, take).await?;
///     sum += number;
///     match journal.append(&sum.to_le_bytes()).await {
///         Err(JournalError::Full) => journal.begin_anew(&sum.to_le_bytes()).await?,
///         appended => appended?,
///     }
///     Ok(sum)
/// }
/// # let _ = add(3);
/// ```
pub struct Journal<B> {
    blocks: B,
    halves: [u64; 2],
    half_sectors: u64,
    /// Which half is in use, and its number.
    half: usize,
    generation: u64,
    /// The sector, within the half, where the next entry begins.
    next: u64,
    /// The checksum of the last entry.
    chain: u32,
    is_lost: bool,
}

impl<B: Blocks> Journal<B> {
    /// Opens the journal in this range of sectors, and hands its entries to `take`, the oldest first. What is no journal is an empty one. It takes memory for one
    /// entry at a time, and 16 KiB, whatever else is on the disk.
    ///
    /// # Errors
    /// [`JournalError`].
    pub async fn open(
        blocks: B,
        range: Range<u64>,
        mut take: impl FnMut(&[u8]) + Send,
    ) -> Result<Self, JournalError> {
        let half_sectors = range.end.saturating_sub(range.start) / 2;
        if half_sectors < 2 {
            return Err(JournalError::TooLarge);
        }
        let halves = [range.start, range.start + half_sectors];
        let mut journal =
            Self { blocks, halves, half_sectors, half: 1, generation: 0, next: 0, chain: 0, is_lost: false };
        let mut newest = None;
        for half in 0..2 {
            if let Some((head, _)) = journal.entry(half, 0, None).await?
                && newest.is_none_or(|(_, generation)| head.generation > generation)
            {
                newest = Some((half, head.generation));
            }
        }
        let Some((half, generation)) = newest else { return Ok(journal) };
        (journal.half, journal.generation) = (half, generation);
        let mut before = None;
        while let Some((head, bytes)) = journal.entry(half, journal.next, before).await? {
            take(&bytes);
            before = Some(head.checksum);
            journal.chain = head.checksum;
            journal.next += sectors(bytes.len());
        }
        Ok(journal)
    }

    /// Appends an entry, and waits until it lasts.
    ///
    /// # Errors
    /// [`JournalError`]. Of all but [`Full`](JournalError::Full) and [`TooLarge`](JournalError::TooLarge) it is not known whether the entry is there.
    pub async fn append(&mut self, entry: &[u8]) -> Result<(), JournalError> {
        if self.is_lost {
            return Err(JournalError::Lost);
        }
        if self.generation == 0 {
            // The first of all.
            return self.begin_anew(entry).await;
        }
        self.check(entry)?;
        if self.next + sectors(entry.len()) > self.half_sectors {
            return Err(JournalError::Full);
        }
        let head = Head::of(self.generation, Some(self.chain), entry);
        self.write(self.half, self.next, head, entry).await
    }

    /// Begins the journal anew, with one entry that stands for all that were there; waits until that lasts.
    ///
    /// # Errors
    /// As [`append`](Self::append): then it is this entry, or all as before.
    pub async fn begin_anew(&mut self, entry: &[u8]) -> Result<(), JournalError> {
        if self.is_lost {
            return Err(JournalError::Lost);
        }
        self.check(entry)?;
        // Only who has forged a journal gives it the last of all numbers.
        let generation = self.generation.checked_add(1).ok_or(JournalError::Full)?;
        let half = 1 - self.half;
        self.write(half, 0, Head::of(generation, None, entry), entry).await?;
        (self.half, self.generation) = (half, generation);
        Ok(())
    }

    /// How many bytes an entry may have.
    pub fn most_bytes(&self) -> usize {
        (self.half_sectors as usize)
            .saturating_mul(SECTOR_BYTES)
            .saturating_sub(HEAD_BYTES)
            .min(u32::MAX as usize)
    }

    fn check(&self, entry: &[u8]) -> Result<(), JournalError> {
        if entry.len() > self.most_bytes() { Err(JournalError::TooLarge) } else { Ok(()) }
    }

    async fn write(&mut self, half: usize, at: u64, head: Head, entry: &[u8]) -> Result<(), JournalError> {
        let count = sectors(entry.len());
        let mut bytes = Vec::new();
        let whole = count as usize * SECTOR_BYTES;
        bytes.try_reserve_exact(whole).map_err(|_| JournalError::OutOfMemory)?;
        bytes.extend_from_slice(&head.bytes());
        bytes.extend_from_slice(entry);
        bytes.resize(whole, 0);
        // Until both are done it is not known where it ends, whatever becomes of this future.
        self.is_lost = true;
        self.blocks.write(self.halves[half] + at, bytes).await?;
        self.blocks.flush().await?;
        self.is_lost = false;
        (self.next, self.chain) = (at + count, head.checksum);
        Ok(())
    }

    /// The entry there, if there is a whole one, which follows on one with that checksum, or is the first of its half. The checksum before stands for the
    /// generation, too.
    async fn entry(
        &self,
        half: usize,
        at: u64,
        before: Option<u32>,
    ) -> Result<Option<(Head, Vec<u8>)>, JournalError> {
        if at >= self.half_sectors {
            return Ok(None);
        }
        let first = self.blocks.read(self.halves[half] + at, SECTOR_BYTES).await?;
        let Some(head) = Head::read(&first) else { return Ok(None) };
        let count = sectors(head.bytes as usize);
        if head.bytes as usize > self.most_bytes() || count > self.half_sectors - at {
            return Ok(None);
        }
        let place = self.halves[half] + at;
        // What stands there may be half of an entry, or of earlier times, with any length: so first it is looked through, and memory is taken for it when it is
        // whole.
        let is_short = count <= PIECE_SECTORS;
        let mut bytes = Vec::new();
        let mut hasher = Head::hasher(head.generation, before, head.bytes);
        if is_short {
            bytes.try_reserve_exact(head.bytes as usize).map_err(|_| JournalError::OutOfMemory)?;
        }
        self.pieces(place, head.bytes as usize, |piece| {
            hasher.update(piece);
            if is_short {
                bytes.extend_from_slice(piece);
            }
        })
        .await?;
        if hasher.finalize() != head.checksum {
            return Ok(None);
        }
        if !is_short {
            bytes.try_reserve_exact(head.bytes as usize).map_err(|_| JournalError::OutOfMemory)?;
            self.pieces(place, head.bytes as usize, |piece| bytes.extend_from_slice(piece)).await?;
        }
        Ok(Some((head, bytes)))
    }

    /// Reads the entry at a sector of the disk, which has so many bytes, piece by piece.
    async fn pieces(
        &self,
        place: u64,
        bytes: usize,
        mut take: impl FnMut(&[u8]) + Send,
    ) -> Result<(), JournalError> {
        let count = sectors(bytes);
        let (mut skipped, mut left) = (HEAD_BYTES, bytes);
        for at in (0..count).step_by(PIECE_SECTORS as usize) {
            let length = (count - at).min(PIECE_SECTORS) as usize * SECTOR_BYTES;
            let read = self.blocks.read(place + at, length).await?;
            let piece = read.get(skipped..).unwrap_or_default();
            let piece = &piece[..left.min(piece.len())];
            take(piece);
            (skipped, left) = (0, left - piece.len());
        }
        Ok(())
    }
}

/// How many sectors an entry of so many bytes takes.
fn sectors(bytes: usize) -> u64 {
    (bytes + HEAD_BYTES).div_ceil(SECTOR_BYTES) as u64
}
