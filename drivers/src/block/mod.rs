//! Disks: blocks of 512 bytes that are read, written and made to last.
//!
//! `blocks.rs` says what has sectors, `disk.rs` has what others use, `driver.rs` the process that drives a virtio disk.

mod blocks;
mod disk;
mod driver;

pub use blocks::Blocks;
pub(crate) use disk::{Answered, Order, Ordered};
pub use disk::{Disk, DiskError, SECTOR_BYTES};
pub use driver::drive;
