//! A device with its registers, its interrupt and its rings. It is driven by the process that opens it.

use alloc::vec::Vec;
use core::mem::ManuallyDrop;
use core::ops::Range;
use core::time::Duration;

use magpie::device::{self, ClaimError, Registers};
use magpie::interrupt::Interrupt;
use magpie::sched;
use magpie::time::{self, Sleep};
use virtio_drivers::transport::mmio::MmioTransport;
use virtio_drivers::transport::{DeviceStatus, Transport};

#[cfg(feature = "checks")]
use super::misled::Misleading;
use super::ring::Ring;
use crate::DriverError;
use crate::race::{First, race};

/// How often all are looked at again while another looks at them, too, which it claims to do so.
const PATIENCE: usize = 100;
/// After so long a device with requests is looked at although it has not interrupted.
const LOOKS_AFTER: Duration = Duration::from_secs(1);
/// How many rings a device has at most.
const MOST_RINGS: usize = 2;

// Registers (virtio 1.3, 4.2.2).
const MAGIC: usize = 0x000;
const DEVICE: usize = 0x008;
const STATUS: usize = 0x070;
const CONFIG: usize = 0x100;
/// What the first of them says.
const IS_VIRTIO: u32 = 0x7472_6976;
/// The device is of the modern kind.
const VERSION_1: u64 = 1 << 32;

/// What a device is, by its number in the standard.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    #[cfg(feature = "checks")]
    Nothing = 0,
    Card = 1,
    Block = 2,
    Console = 3,
    Entropy = 4,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "checks")]
            Self::Nothing => "empty place",
            Self::Card => "virtio network card",
            Self::Block => "virtio disk",
            Self::Console => "virtio console",
            Self::Entropy => "virtio source of random numbers",
        }
    }
}

/// Makes a device leave memory alone: a reset, unless nobody has begun to drive it, because QEMU takes 10 ms for a disk's. Reading it back, so that it has been done.
fn quiet(registers: &Registers) {
    if registers.read_u32(STATUS) != 0 {
        registers.write_u32(STATUS, 0);
        registers.read_u32(STATUS);
    }
}

/// A device of which each ring has `SIZE` descriptors.
pub(crate) struct Device<const SIZE: usize> {
    registers: ManuallyDrop<Registers>,
    transport: MmioTransport<'static>,
    interrupt: Interrupt,
    /// By their numbers. On the heap, because they are long, and a driver is moved where it is started.
    rings: Vec<Ring<SIZE>>,
    features: u64,
    /// When it is looked at although it has not interrupted. Kept when who waits gives up.
    look: Option<Sleep>,
    #[cfg(feature = "checks")]
    misleading: Misleading,
}

impl<const SIZE: usize> Device<SIZE> {
    /// The first of its kind that nobody drives. Of what else it can, `wanted` is used if it is there.
    pub(crate) async fn open(kind: Kind, wanted: u64) -> Result<Self, DriverError> {
        for _ in 0..PATIENCE {
            let mut is_busy = false;
            for found in device::find("virtio,mmio") {
                match claim_as(&found, kind) {
                    Ok(Some(registers)) => return Self::begin(&found, registers, wanted),
                    Ok(None) => {}
                    Err(ClaimError::Taken) => is_busy = true,
                    Err(error) => return Err(error.into()),
                }
            }
            if !is_busy {
                break;
            }
            sched::yield_now().await;
        }
        Err(DriverError::NoDevice(kind.name()))
    }

    fn begin(found: &device::Device<'_>, registers: Registers, wanted: u64) -> Result<Self, DriverError> {
        if !found.is_dma_coherent() {
            return Err(DriverError::NotCoherent);
        }
        let interrupt = Interrupt::claim(found.line(0)?)?;
        let range = registers.range();
        // SAFETY: the registers of such a device, claimed, and mapped for good. What uses the transport is dropped before the claim.
        let transport = unsafe { MmioTransport::new(registers.as_ptr().cast(), range.len()) };
        let mut transport =
            transport.map_err(|_| DriverError::Faulty("it is no virtio device that is known"))?;
        let begun = DeviceStatus::ACKNOWLEDGE | DeviceStatus::DRIVER;
        // Whoever had it before may have left it as it was, or the firmware.
        quiet(&registers);
        transport.set_status(begun);
        let features = transport.read_device_features() & (wanted | VERSION_1);
        transport.write_driver_features(features);
        transport.set_status(begun | DeviceStatus::FEATURES_OK);
        if features & VERSION_1 != 0 && !transport.get_status().contains(DeviceStatus::FEATURES_OK) {
            return Err(DriverError::Faulty("it refuses what it offers"));
        }
        transport.set_guest_page_size(device::DMA_PAGE_BYTES as u32);
        let mut rings = Vec::new();
        rings.try_reserve_exact(MOST_RINGS).map_err(|_| DriverError::OutOfMemory)?;
        Ok(Self {
            registers: ManuallyDrop::new(registers),
            transport,
            interrupt,
            rings,
            features,
            look: None,
            #[cfg(feature = "checks")]
            misleading: Misleading::default(),
        })
    }

    /// Makes the next ring, for so many requests of so many bytes at a time.
    pub(crate) fn add_ring(&mut self, slots: usize, slot_bytes: usize) -> Result<(), DriverError> {
        let index = self.rings.len() as u16;
        // SAFETY: `drop` makes the device quiet before the rings go.
        let ring = unsafe { Ring::new(&self.registers, &mut self.transport, index, (slots, slot_bytes))? };
        self.rings.push(ring);
        Ok(())
    }

    /// All rings are there: from now on it works.
    pub(crate) fn start(&mut self) {
        let status = self.transport.get_status();
        self.transport.set_status(status | DeviceStatus::DRIVER_OK);
    }

    /// Whether it has agreed to that.
    pub(crate) fn has(&self, feature: u64) -> bool {
        self.features & feature != 0
    }

    /// Whether it is of the modern kind.
    pub(crate) fn is_modern(&self) -> bool {
        self.has(VERSION_1)
    }

    /// Four bytes of its own registers, from an offset on.
    pub(crate) fn config(&self, offset: usize) -> u32 {
        self.registers.read_u32(CONFIG + offset)
    }

    /// A ring that was made.
    pub(crate) fn ring(&self, index: usize) -> &Ring<SIZE> {
        &self.rings[index]
    }

    /// Hands a slot's request to the device: what it reads, and what it writes. `false`: the queue is full.
    pub(crate) fn submit(
        &mut self,
        index: usize,
        slot: usize,
        reads: [Range<usize>; 2],
        writes: [Range<usize>; 2],
    ) -> bool {
        self.rings[index].submit(&mut self.transport, slot, reads, writes)
    }

    /// A slot whose request is done, and how many bytes the device has written.
    pub(crate) fn completed(&mut self, index: usize) -> Result<Option<(usize, usize)>, DriverError> {
        self.rings[index].completed()
    }

    /// Waits until the device interrupts. Afterwards all rings are to be looked at: what it does later interrupts again. While requests are with it this returns once a second at least,
    /// because an interrupt may be lost, and a device whose interrupt nobody acknowledges does not interrupt again.
    pub(crate) async fn interrupted(&mut self) -> Result<(), DriverError> {
        self.told().await?;
        self.transport.ack_interrupt();
        Ok(())
    }

    #[cfg(not(feature = "checks"))]
    async fn told(&mut self) -> Result<(), DriverError> {
        self.comes().await.map(drop)
    }

    /// The same, of a driver that is misled.
    #[cfg(feature = "checks")]
    async fn told(&mut self) -> Result<(), DriverError> {
        if self.misleading.takes_again() {
            return Ok(());
        }
        while !self.misleading.is_late() {
            let has_come = self.comes().await?;
            if !has_come || self.misleading.comes() {
                break;
            }
        }
        self.misleading.tell().await;
        Ok(())
    }

    /// Whether an interrupt has come, and not only the time to look.
    async fn comes(&mut self) -> Result<bool, DriverError> {
        if self.look.is_none() && self.rings.iter().any(Ring::is_busy) {
            self.look = Some(time::sleep(LOOKS_AFTER));
        }
        let Some(look) = &mut self.look else {
            self.interrupt.wait().await?;
            return Ok(true);
        };
        match race(self.interrupt.wait(), look).await {
            First::One(come) => come.map(|()| true).map_err(DriverError::from),
            First::Other(()) => {
                self.look = None;
                Ok(false)
            }
        }
    }
}

impl<const SIZE: usize> Drop for Device<SIZE> {
    fn drop(&mut self) {
        // The claim's end makes the device quiet; the rings, which are fields, go afterwards.
        // SAFETY: once, and nothing uses the registers afterwards: the transport does nothing when it is dropped.
        unsafe { ManuallyDrop::drop(&mut self.registers) };
    }
}

/// The device's registers, if it is of that kind. A place for a device may be empty.
pub(super) fn claim_as(found: &device::Device<'_>, kind: Kind) -> Result<Option<Registers>, ClaimError> {
    let Some(range) = found.registers(0).filter(|range| range.len() > CONFIG) else { return Ok(None) };
    // SAFETY: the tree says that a virtio device is there, or a place for one. It is told no addresses but those of its rings, which go after this claim.
    let registers = unsafe { Registers::claim(range, quiet)? };
    let is_it = registers.read_u32(MAGIC) == IS_VIRTIO && registers.read_u32(DEVICE) == kind as u32;
    Ok(is_it.then_some(registers))
}
