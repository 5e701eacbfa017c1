//! What waits for nothing, over a disk that has to be waited for: it is begun anew whenever a sector is missing, which is fetched meanwhile. It sees the same as before up to there,
//! so it does the same.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt;

use embedded_sdmmc::{
    Block, BlockCount, BlockDevice, BlockIdx, Error, TimeSource, Timestamp, VolumeIdx, VolumeManager,
};

use super::FatError;
use crate::block::{Blocks, DiskError, SECTOR_BYTES};

/// So many sectors are fetched at a time, if there are so many: those behind are wanted next, mostly.
const AHEAD: usize = 64;
/// The most that are known at a time: four megabytes.
const MOST: usize = 8192;
/// The most that one go reads, also again and again: a chain that leads back into itself would be followed for ever.
const MOST_READS: usize = 16 * MOST;

pub(super) type Directory<'a, 'd> = embedded_sdmmc::Directory<'a, Disk<'d>, NoTime, 4, 4, 1>;
type Sector = Box<[u8; SECTOR_BYTES]>;

/// A sector that is not known yet. What says so is dropped, and only that it was said counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Absent;

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the sector is not known yet")
    }
}

impl core::error::Error for Absent {}

/// Nobody knows what time it is.
pub(super) struct NoTime;

impl TimeSource for NoTime {
    fn get_timestamp(&self) -> Timestamp {
        // The first that FAT can say.
        Timestamp::from_fat(1 << 5 | 1, 0)
    }
}

/// The disk, as the file system sees it in one go.
pub(super) struct Disk<'a> {
    known: &'a BTreeMap<u32, Sector>,
    go: &'a Go,
}

/// One go.
#[derive(Default)]
struct Go {
    written: RefCell<BTreeMap<u32, Sector>>,
    missing: Cell<Option<u32>>,
    reads: Cell<usize>,
}

/// What a go has come to: its result, what it has written, and whether it counts.
struct Gone<R> {
    result: Result<R, Error<Absent>>,
    written: BTreeMap<u32, Sector>,
    missing: Option<u32>,
    is_too_long: bool,
}

impl BlockDevice for Disk<'_> {
    type Error = Absent;

    fn read(&self, blocks: &mut [Block], first: BlockIdx) -> Result<(), Absent> {
        self.go.reads.set(self.go.reads.get() + blocks.len());
        if self.go.reads.get() > MOST_READS {
            return Err(Absent);
        }
        for (index, block) in (first.0..).zip(blocks) {
            let written = self.go.written.borrow();
            let Some(sector) = written.get(&index).or_else(|| self.known.get(&index)) else {
                // The first counts: what comes later may depend on it.
                self.go.missing.set(self.go.missing.get().or(Some(index)));
                return Err(Absent);
            };
            block.contents.copy_from_slice(&**sector);
        }
        Ok(())
    }

    fn write(&self, blocks: &[Block], first: BlockIdx) -> Result<(), Absent> {
        let mut written = self.go.written.borrow_mut();
        for (index, block) in (first.0..).zip(blocks) {
            written.insert(index, Box::new(block.contents));
        }
        Ok(())
    }

    fn num_blocks(&self) -> Result<BlockCount, Absent> {
        // The partition says how many there are; the disk refuses what it has not.
        Ok(BlockCount(u32::MAX))
    }
}

/// The sectors that are known.
#[derive(Default)]
pub(super) struct Known(BTreeMap<u32, Sector>);

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sectors", self.0.len())
    }
}

impl Known {
    /// Does something with the root folder, as often as it takes, and writes what it has written.
    pub(super) async fn run<R>(
        &mut self,
        blocks: &impl Blocks,
        what: impl Fn(Directory<'_, '_>) -> Result<R, Error<Absent>>,
    ) -> Result<R, FatError> {
        // What is known from before is left out rather than what this needs.
        if self.0.len() > MOST / 2 {
            self.0.clear();
        }
        loop {
            // In a function of its own, so that nothing of it is there while the disk is waited for.
            let gone = self.go(&what);
            if gone.is_too_long {
                return Err(FatError::TooMuch);
            }
            let Some(missing) = gone.missing else {
                let result = gone.result?;
                self.write_out(blocks, gone.written).await?;
                return Ok(result);
            };
            if self.0.len() > MOST {
                return Err(FatError::TooMuch);
            }
            self.fetch(blocks, missing).await?;
        }
    }

    fn go<R>(&self, what: &impl Fn(Directory<'_, '_>) -> Result<R, Error<Absent>>) -> Gone<R> {
        let go = Go::default();
        let result = (|| {
            let manager =
                VolumeManager::<_, _, 4, 4, 1>::new_with_limits(Disk { known: &self.0, go: &go }, NoTime, 0);
            let volume = manager.open_volume(VolumeIdx(0))?;
            what(volume.open_root_dir()?)
        })();
        let is_too_long = go.reads.get() > MOST_READS;
        Gone { result, written: go.written.into_inner(), missing: go.missing.into_inner(), is_too_long }
    }

    /// The sector, which is not known, and some behind it.
    async fn fetch(&mut self, blocks: &impl Blocks, first: u32) -> Result<(), FatError> {
        let read = match blocks.read(first.into(), AHEAD * SECTOR_BYTES).await {
            // There are not so many.
            Err(DiskError::Outside) => blocks.read(first.into(), SECTOR_BYTES).await?,
            read => read?,
        };
        for (index, sector) in (first..).zip(read.as_chunks::<SECTOR_BYTES>().0) {
            // What is known is not older: nobody else writes.
            self.0.entry(index).or_insert_with(|| Box::new(*sector));
        }
        if self.0.contains_key(&first) { Ok(()) } else { Err(DiskError::Failed.into()) }
    }

    /// Sectors that follow one another are written together.
    async fn write_out(
        &mut self,
        blocks: &impl Blocks,
        written: BTreeMap<u32, Sector>,
    ) -> Result<(), FatError> {
        if written.is_empty() {
            return Ok(());
        }
        // Until all is there nobody knows what is; whoever waits may be gone before.
        let mut known = core::mem::take(&mut self.0);
        let mut run: (u32, Vec<u8>) = (0, Vec::new());
        for (index, sector) in &written {
            let is_next = run.0.checked_add((run.1.len() / SECTOR_BYTES) as u32) == Some(*index);
            if !is_next || run.1.len() == AHEAD * SECTOR_BYTES {
                let full = core::mem::replace(&mut run, (*index, Vec::new()));
                if !full.1.is_empty() {
                    blocks.write(full.0.into(), full.1).await?;
                }
            }
            run.1.try_reserve(SECTOR_BYTES).map_err(|_| FatError::OutOfMemory)?;
            run.1.extend_from_slice(&**sector);
        }
        blocks.write(run.0.into(), run.1).await?;
        blocks.flush().await?;
        known.extend(written);
        self.0 = known;
        Ok(())
    }
}
