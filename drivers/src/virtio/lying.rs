//! A device that lies, for the suite `drivers`: it has the registers of an empty place, and whatever it says it has done is drawn at random.

use alloc::vec::Vec;
use core::ptr;

use magpie::device;
use virtio_drivers::transport::{DeviceStatus, DeviceType, InterruptStatus, Transport};
use virtio_drivers::{PhysAddr, Result as DeviceResult};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::device::{Kind, claim_as};
use super::ring::Ring;
use crate::DriverError;

const DESCRIPTORS: usize = 8;
const SLOTS: usize = 8;
const SLOT_BYTES: usize = 256;

/// What came of it.
#[derive(Debug, Default)]
pub struct Lies {
    /// Requests that were taken for done.
    pub done: u64,
    /// Lies that were noticed.
    pub noticed: u64,
}

/// A device that does nothing by itself, and knows where its queue lies.
struct Liar {
    available: PhysAddr,
    /// How many requests of those that are available were answered honestly.
    answered: u16,
    used: PhysAddr,
    is_legacy: bool,
}

impl Transport for Liar {
    fn device_type(&self) -> DeviceType {
        DeviceType::Block
    }

    fn read_device_features(&mut self) -> u64 {
        0
    }

    fn write_driver_features(&mut self, _: u64) {}

    fn max_queue_size(&mut self, _: u16) -> u32 {
        DESCRIPTORS as u32
    }

    fn notify(&mut self, _: u16) {}

    fn get_status(&self) -> DeviceStatus {
        DeviceStatus::empty()
    }

    fn set_status(&mut self, _: DeviceStatus) {}

    fn set_guest_page_size(&mut self, _: u32) {}

    fn requires_legacy_layout(&self) -> bool {
        self.is_legacy
    }

    fn queue_set(&mut self, _: u16, _: u32, _: PhysAddr, available: PhysAddr, used: PhysAddr) {
        (self.available, self.used) = (available, used);
    }

    fn queue_unset(&mut self, _: u16) {}

    fn queue_used(&mut self, _: u16) -> bool {
        false
    }

    fn ack_interrupt(&mut self) -> InterruptStatus {
        InterruptStatus::empty()
    }

    fn read_config_generation(&self) -> u32 {
        0
    }

    fn read_config_space<T: FromBytes + IntoBytes>(&self, _: usize) -> DeviceResult<T> {
        Err(virtio_drivers::Error::Unsupported)
    }

    fn write_config_space<T: IntoBytes + Immutable>(&mut self, _: usize, _: T) -> DeviceResult<()> {
        Err(virtio_drivers::Error::Unsupported)
    }
}

impl Liar {
    /// The number of the next request that it was given; `None` if it has answered all.
    fn next(&mut self) -> Option<u32> {
        let available = ptr::with_exposed_provenance::<u16>(self.available as usize);
        // SAFETY: the queue's own memory: two numbers, and one for each request (virtio 1.3, 2.7.6). The ring lives.
        let (index, next) = unsafe {
            let place = 2 + usize::from(self.answered) % DESCRIPTORS;
            (available.add(1).read_volatile(), available.add(place).read_volatile())
        };
        if index == self.answered {
            return None;
        }
        self.answered += 1;
        Some(u32::from(next))
    }

    /// Says that it has done `more` requests, of which this is the last.
    fn says(&self, more: u16, (token, written): (u32, u32)) {
        let used = ptr::with_exposed_provenance_mut::<u16>(self.used as usize);
        // SAFETY: the queue's own memory, where a device writes: two numbers, and pairs of four bytes each (virtio 1.3, 2.7.8). The ring lives.
        unsafe {
            let index = used.add(1).read_volatile();
            let entry = used.add(2).cast::<u32>().add(usize::from(index) % DESCRIPTORS * 2);
            entry.write_volatile(token);
            entry.add(1).write_volatile(written);
            used.add(1).write_volatile(index.wrapping_add(more));
        }
    }
}

/// Hands so many rings requests in turn with a device that lies about them. What is taken for done was asked, and fits.
///
/// # Errors
/// The machine has no empty place for a device; or a lie was believed.
pub fn believe_nothing(seed: u64, rings: u64) -> Result<Lies, DriverError> {
    let mut state = seed | 1;
    // xorshift64*.
    let mut below = move |bound: u64| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % bound
    };
    let mut places = device::find("virtio,mmio").filter_map(|found| claim_as(&found, Kind::Nothing).ok()?);
    let registers = places.next().ok_or(DriverError::NoDevice("empty place for a virtio device"))?;
    let mut lies = Lies::default();
    for round in 0..rings {
        let mut liar = Liar { available: 0, answered: 0, used: 0, is_legacy: round % 2 == 0 };
        // SAFETY: there is no device.
        let ring = unsafe { Ring::<DESCRIPTORS>::new(&registers, &mut liar, 0, (SLOTS, SLOT_BYTES)) };
        let mut ring = ring?;
        let mut with_device: Vec<(usize, usize)> = Vec::new();
        'ring: for _ in 0..40 {
            if below(2) == 0 {
                let slot = below(SLOTS as u64) as usize;
                let (reads, writes) = (below(100) as usize, 1 + below(100) as usize);
                let is_free = with_device.iter().all(|(other, _)| *other != slot);
                if is_free && ring.submit(&mut liar, slot, [0..reads, 0..0], [128..128 + writes, 0..0]) {
                    with_device.push((slot, writes));
                }
                continue;
            }
            // Mostly it tells the truth, or nobody would listen for long.
            if below(8) > 0 {
                let Some(token) = liar.next() else { continue };
                liar.says(1, (token, 1));
            } else {
                let token = match below(4) {
                    0 => below(1 << 32),
                    1 => below(1 << 16),
                    _ => below(DESCRIPTORS as u64),
                };
                let written = if below(4) == 0 { below(1 << 32) } else { below(100) };
                liar.says(below(4).min(2) as u16, (token as u32, written as u32));
            }
            // No more than there are: it may say that it has done thousands.
            for _ in 0..DESCRIPTORS * 2 {
                match ring.completed() {
                    Ok(None) => break,
                    Ok(Some((slot, written))) => {
                        let place = with_device.iter().position(|(asked, _)| *asked == slot);
                        let place =
                            place.ok_or(DriverError::Faulty("what was not asked was believed to be done"))?;
                        if written > with_device.swap_remove(place).1 {
                            return Err(DriverError::Faulty(
                                "more was believed to be written than there was room for",
                            ));
                        }
                        lies.done += 1;
                    }
                    // The driver ends.
                    Err(_) => {
                        lies.noticed += 1;
                        break 'ring;
                    }
                }
            }
        }
    }
    Ok(lies)
}
