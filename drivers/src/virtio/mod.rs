//! Devices of virtio, by memory-mapped registers: how one is found, and driven by requests in slots of memory that it shares.
//!
//! `dma.rs` gives memory to the queues of the crate `virtio-drivers`, `ring.rs` has requests in one such queue, `device.rs` has a device's registers, its
//! interrupt and its rings, looks at it now and then although no interrupt comes, and sees to it that the device is quiet before its memory goes.

mod device;
mod dma;
#[cfg(feature = "checks")]
pub mod lying;
#[cfg(feature = "checks")]
pub mod misled;
mod ring;

pub(crate) use device::{Device, Kind};
