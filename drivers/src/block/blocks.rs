//! What has sectors: a disk, and what stands for one.

use alloc::vec::Vec;
use core::future::Future;

use super::disk::{Disk, DiskError};

/// Sectors of [`SECTOR_BYTES`](super::SECTOR_BYTES) that are read, written and made to last. [`Disk`] is what has them in a machine; tests may have others.
///
/// ```
/// use magpie_drivers::block::{Blocks, DiskError};
///
/// /// Whether nothing was ever written there.
/// async fn is_blank(blocks: &impl Blocks, sector: u64) -> Result<bool, DiskError> {
///     Ok(blocks.read(sector, 512).await?.iter().all(|byte| *byte == 0))
/// }
/// # let _ = is_blank(&magpie_drivers::block::Disk::named("disk"), 0);
/// ```
pub trait Blocks: Send + Sync {
    /// So many bytes, whole sectors, from a sector on.
    ///
    /// # Errors
    /// [`DiskError`].
    fn read(&self, sector: u64, bytes: usize) -> impl Future<Output = Result<Vec<u8>, DiskError>> + Send;

    /// Writes these bytes, whole sectors, from a sector on. If the power fails before [`flush`](Self::flush), any of the sectors may have been written, and any may
    /// be half written.
    ///
    /// # Errors
    /// [`DiskError`].
    fn write(&self, sector: u64, bytes: Vec<u8>) -> impl Future<Output = Result<(), DiskError>> + Send;

    /// Waits until what was written before lasts.
    ///
    /// # Errors
    /// [`DiskError`].
    fn flush(&self) -> impl Future<Output = Result<(), DiskError>> + Send;
}

impl Blocks for Disk {
    async fn read(&self, sector: u64, bytes: usize) -> Result<Vec<u8>, DiskError> {
        Self::read(self, sector, bytes).await
    }

    async fn write(&self, sector: u64, bytes: Vec<u8>) -> Result<(), DiskError> {
        Self::write(self, sector, bytes).await
    }

    async fn flush(&self) -> Result<(), DiskError> {
        Self::flush(self).await
    }
}
