//! A disk, as those see it who read and write it: by the name of whoever drives it.

use alloc::vec::Vec;
use core::fmt;

use magpie::channel::{AskError, ProcessAddr, Request};
use magpie::registry;

/// How many bytes a sector has: the smallest that is read or written.
pub const SECTOR_BYTES: usize = 512;

/// What is asked of a driver.
#[derive(Debug)]
pub(crate) enum Order {
    /// How many sectors there are.
    Capacity,
    /// As many bytes as these are, from a sector on, into them: so who asks pays for them.
    Read(u64, Vec<u8>),
    /// These bytes, from a sector on.
    Write(u64, Vec<u8>),
    /// What was written before lasts.
    Flush,
}

/// What it answers.
#[derive(Debug)]
pub(crate) enum Answered {
    Sectors(u64),
    Bytes(Vec<u8>),
    Done,
}

pub(crate) type Ordered = Request<Order, Result<Answered, DiskError>>;

/// Why a disk does not do what it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DiskError {
    /// Nobody drives it: its driver has not begun, has ended, or is being started anew. What was asked may have been done, or not.
    NoDriver,
    /// It has fewer sectors, or what was given is not whole sectors.
    Outside,
    /// It can only be read.
    ReadOnly,
    /// The disk says that it failed.
    Failed,
    /// There is no memory.
    OutOfMemory,
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDriver => {
                "nobody drives the disk: its driver was not started, has ended, or is being started anew"
            }
            Self::Outside => "the disk has fewer sectors, or these are not whole ones of 512 bytes",
            Self::ReadOnly => "the disk can only be read",
            Self::Failed => "the disk says that it failed",
            Self::OutOfMemory => "out of memory: give the machine more, or start less",
        })
    }
}

impl core::error::Error for DiskError {}

impl From<AskError> for DiskError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::OutOfMemory | AskError::Full => Self::OutOfMemory,
            _ => Self::NoDriver,
        }
    }
}

/// A disk, by the name under which it is [driven](super::drive). It outlives its driver: what is asked while there is none is an error, and goes well again when there is
/// another.
///
/// ```
/// use magpie_drivers::block::{Disk, DiskError, SECTOR_BYTES};
///
/// /// Turns the first sector round, and makes that last.
/// async fn turn_round(disk: Disk) -> Result<(), DiskError> {
///     let mut sector = disk.read(0, SECTOR_BYTES).await?;
///     sector.reverse();
///     disk.write(0, sector).await?;
///     disk.flush().await
/// }
/// # let _ = turn_round(Disk::named("disk"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disk {
    name: &'static str,
}

impl Disk {
    /// The disk that is driven under this name, now or later.
    pub const fn named(name: &'static str) -> Self {
        Self { name }
    }

    /// How many sectors it has.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn sectors(&self) -> Result<u64, DiskError> {
        match self.order(Order::Capacity).await? {
            Answered::Sectors(sectors) => Ok(sectors),
            _ => Err(DiskError::Failed),
        }
    }

    /// So many bytes, whole sectors, from a sector on. The caller pays for their memory, not the driver.
    ///
    /// # Errors
    /// [`DiskError`].
    pub async fn read(&self, sector: u64, bytes: usize) -> Result<Vec<u8>, DiskError> {
        let mut into = Vec::new();
        if into.try_reserve_exact(bytes).is_err() {
            // Perhaps because there are not as many.
            let all = self.sectors().await?.saturating_sub(sector).saturating_mul(SECTOR_BYTES as u64);
            return Err(if bytes as u64 > all { DiskError::Outside } else { DiskError::OutOfMemory });
        }
        into.resize(bytes, 0);
        match self.order(Order::Read(sector, into)).await? {
            Answered::Bytes(bytes) => Ok(bytes),
            _ => Err(DiskError::Failed),
        }
    }

    /// Writes these bytes, whole sectors, from a sector on. Those of one call are written in any order, and it may be that only some of them last if the power
    /// fails before [`flush`](Self::flush).
    ///
    /// # Errors
    /// [`DiskError`].
    pub async fn write(&self, sector: u64, bytes: Vec<u8>) -> Result<(), DiskError> {
        self.order(Order::Write(sector, bytes)).await.map(drop)
    }

    /// Waits until what was written before lasts.
    ///
    /// # Errors
    /// [`DiskError`].
    pub async fn flush(&self) -> Result<(), DiskError> {
        self.order(Order::Flush).await.map(drop)
    }

    async fn order(&self, order: Order) -> Result<Answered, DiskError> {
        let driver = registry::find::<ProcessAddr<Ordered>>(self.name).map_err(|_| DiskError::NoDriver)?;
        driver.ask(order).await?
    }
}
