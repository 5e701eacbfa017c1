//! Memory for the queues of `virtio-drivers`.
//!
//! That crate asks for memory by a function without `self`. So whoever builds a device says before for whose registers it is, under the number of its
//! process; what is asked for meanwhile is noted there, and is the builder's afterwards. The crate gives nothing back: the memory goes when the device's owner
//! drops it, which is when the device is quiet.

use alloc::vec::Vec;
use core::cell::RefCell;
use core::ptr::NonNull;

use critical_section::Mutex;
use magpie::device::{DMA_PAGE_BYTES, DmaMemory, Registers};
use magpie::sched::{self, ProcessRef};
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

use crate::DriverError;

const _: () = assert!(PAGE_SIZE == DMA_PAGE_BYTES);

/// How many may build a device at a time.
const MOST_BUILDERS: usize = 16;
/// How many pieces of memory a device's queues take at most: two each.
const MOST_PIECES: usize = 4;

type Pieces = [Option<DmaMemory>; MOST_PIECES];

struct Building {
    by: ProcessRef,
    registers: NonNull<Registers>,
    pieces: Pieces,
}

// SAFETY: the registers are touched by the builder's process alone, which has them on its stack.
unsafe impl Send for Building {}

static BUILDERS: Mutex<RefCell<[Option<Building>; MOST_BUILDERS]>> =
    Mutex::new(RefCell::new([const { None }; MOST_BUILDERS]));

/// Calls `change` with what the caller's process builds.
fn with_own<T>(change: impl FnOnce(&mut Building) -> T) -> Option<T> {
    let own = sched::current_process()?;
    critical_section::with(|section| {
        let mut builders = BUILDERS.borrow(section).try_borrow_mut().ok()?;
        let mut all = builders.iter_mut().flatten();
        all.find(|building| building.by.id() == own.id()).map(change)
    })
}

/// Calls `build`, which makes queues for the device of these registers, and returns the memory that they lie in.
pub(super) fn building<T>(
    registers: &Registers,
    build: impl FnOnce() -> Result<T, DriverError>,
) -> Result<(T, Vec<DmaMemory>), DriverError> {
    let own = sched::current_process().ok_or(DriverError::NoDevice("core, which has begun to schedule,"))?;
    let mut kept = Vec::new();
    kept.try_reserve_exact(MOST_PIECES).map_err(|_| DriverError::OutOfMemory)?;
    let building =
        Building { by: own.clone(), registers: NonNull::from(registers), pieces: Default::default() };
    let left = critical_section::with(|section| {
        let mut builders = BUILDERS.borrow(section).try_borrow_mut().map_err(|_| DriverError::OutOfMemory)?;
        // One that has crashed in the middle leaves its entry.
        let is_free = |place: &&mut Option<Building>| match place {
            Some(other) => other.by.id() == own.id() || other.by.is_done(),
            None => true,
        };
        let place = builders.iter_mut().find(is_free).ok_or(DriverError::OutOfMemory)?;
        Ok::<_, DriverError>(place.replace(building))
    })?;
    drop(left);
    let built = build();
    let pieces = with_own(|building| core::mem::take(&mut building.pieces)).unwrap_or_default();
    kept.extend(pieces.into_iter().flatten());
    let ended = critical_section::with(|section| {
        let mut builders = BUILDERS.borrow(section).try_borrow_mut().ok()?;
        let is_own = |place: &&mut Option<Building>| {
            place.as_ref().is_some_and(|building| building.by.id() == own.id())
        };
        builders.iter_mut().find(is_own).and_then(Option::take)
    });
    drop(ended);
    Ok((built?, kept))
}

/// What `virtio-drivers` asks.
#[derive(Debug)]
pub(super) struct Dma;

/// What that crate takes for: there is none.
const NO_MEMORY: (PhysAddr, NonNull<u8>) = (0, NonNull::dangling());

// SAFETY: `dma_alloc` returns whole zeroed pages that nobody else has, or none. Addresses are the same for cores and devices.
unsafe impl Hal for Dma {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let Some(registers) = with_own(|building| building.registers) else { return NO_MEMORY };
        // SAFETY: `building` has a reference to them, and this is called by it, on its stack.
        let registers = unsafe { registers.as_ref() };
        let Ok(memory) = DmaMemory::new(registers, pages.saturating_mul(PAGE_SIZE), true) else {
            return NO_MEMORY;
        };
        let place = (memory.address(), memory.as_ptr());
        let mut memory = Some(memory);
        let is_kept = with_own(|building| match building.pieces.iter_mut().find(|piece| piece.is_none()) {
            Some(free) => {
                *free = memory.take();
                true
            }
            None => false,
        });
        if is_kept == Some(true) { place } else { NO_MEMORY }
    }

    unsafe fn dma_dealloc(_: PhysAddr, _: NonNull<u8>, _: usize) -> i32 {
        // The device's owner has it.
        0
    }

    unsafe fn mmio_phys_to_virt(_: PhysAddr, _: usize) -> NonNull<u8> {
        // For PCI only.
        NonNull::dangling()
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        // Always in memory that the device shares: see `ring.rs`.
        buffer.cast::<u8>().as_ptr().expose_provenance() as PhysAddr
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}
