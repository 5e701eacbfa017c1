//! Memory that a device reads and writes by itself.
//!
//! It hangs on the claim of the device's registers, in a static list, as long as the device may use it: so the collection of what crashes leave
//! does not find it before the device is quiet.

use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use alloc::boxed::Box;
use core::fmt;
use core::ptr::{self, NonNull};

use super::DMA_PAGE_BYTES;
use super::claims::{self, ClaimError};
use super::registers::Registers;
use crate::mem;

/// What the list is made of.
pub(super) struct Area {
    pub next: *mut Self,
    pages: NonNull<u8>,
    layout: Layout,
    /// It is the image's: not given back to the heap.
    is_lent: bool,
}

/// Pages of memory that a device shares with its driver: zeroed, in one piece, at the same address for both. Its owner's limit of memory is charged.
///
/// Dropped, it is given back: the device must not use it any more, which whoever claimed its registers has promised.
pub struct DmaMemory {
    area: NonNull<Area>,
    place: usize,
    number: u64,
    is_coherent: bool,
}

// SAFETY: the pages are this value's alone, but for the device, wherever it goes.
unsafe impl Send for DmaMemory {}
// SAFETY: what is shared reads and writes by `read` and `write`, which copy; two of them at once may mix, as the device's may.
unsafe impl Sync for DmaMemory {}

impl DmaMemory {
    /// At least so many bytes, in whole pages, for the device of these registers. Where the device sees the cores' caches the memory is coherent (the tree's
    /// `dma-coherent`); else [`sync`](Self::sync) stands between the one's writing and the other's reading.
    ///
    /// # Errors
    /// There is no memory for it, or the claim has ended.
    ///
    /// ```
    /// # use magpie::device::{ClaimError, DmaMemory, Registers};
    /// fn ring(registers: &Registers) -> Result<DmaMemory, ClaimError> {
    ///     DmaMemory::new(registers, 16 * 256, true)
    /// }
    /// ```
    pub fn new(registers: &Registers, bytes: usize, is_coherent: bool) -> Result<Self, ClaimError> {
        let bytes = bytes.max(1).checked_next_multiple_of(DMA_PAGE_BYTES).ok_or(ClaimError::OutOfMemory)?;
        let layout = Layout::from_size_align(bytes, DMA_PAGE_BYTES).map_err(|_| ClaimError::OutOfMemory)?;
        // SAFETY: the size is not zero.
        let pages = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(ClaimError::OutOfMemory)?;
        let made =
            Self::hang(registers, Area { next: ptr::null_mut(), pages, layout, is_lent: false }, is_coherent);
        if let Err((error, true)) = made {
            // SAFETY: allocated above, with this layout, and nobody has it.
            unsafe { dealloc(pages.as_ptr(), layout) };
            return Err(error);
        }
        made.map_err(|(error, _)| error)
    }

    /// Pages of the image's own, a `static`'s, for a device that does not reach all memory: the image is at its beginning. Zeroed. Else as [`new`](Self::new), but nobody is charged.
    ///
    /// # Safety
    /// The pages stay for good. Who reads or writes them has claimed the same registers, and does so by what this returns.
    ///
    /// # Errors
    /// They are not whole pages, there is no memory to note them, or the claim has ended.
    ///
    /// ```
    /// # use core::cell::UnsafeCell;
    /// # use core::ptr::NonNull;
    /// # use magpie::device::{ClaimError, DmaMemory, Registers};
    /// #[repr(align(4096))]
    /// struct Page(UnsafeCell<[u8; 4096]>);
    ///
    /// // SAFETY: used by who has claimed the registers alone.
    /// unsafe impl Sync for Page {}
    ///
    /// static PAGE: Page = Page(UnsafeCell::new([0; 4096]));
    ///
    /// fn page(registers: &Registers) -> Result<DmaMemory, ClaimError> {
    ///     let pages = NonNull::new(PAGE.0.get()).ok_or(ClaimError::Unfit)?;
    ///     // SAFETY: nothing else uses it, and no other registers are claimed for it.
    ///     unsafe { DmaMemory::over(registers, pages, false) }
    /// }
    /// ```
    pub unsafe fn over(
        registers: &Registers,
        pages: NonNull<[u8]>,
        is_coherent: bool,
    ) -> Result<Self, ClaimError> {
        let (bytes, pages) = (pages.len(), pages.cast::<u8>());
        let are_whole = bytes > 0
            && bytes.is_multiple_of(DMA_PAGE_BYTES)
            && pages.addr().get().is_multiple_of(DMA_PAGE_BYTES);
        let layout = Layout::from_size_align(bytes, DMA_PAGE_BYTES)
            .ok()
            .filter(|_| are_whole)
            .ok_or(ClaimError::Unfit)?;
        // SAFETY: whole pages that are the caller's, by contract.
        unsafe { pages.write_bytes(0, bytes) };
        Self::hang(registers, Area { next: ptr::null_mut(), pages, layout, is_lent: true }, is_coherent)
            .map_err(|(error, _)| error)
    }

    /// Hangs the area on the claim; an error says whether the pages are still the caller's.
    fn hang(registers: &Registers, area: Area, is_coherent: bool) -> Result<Self, (ClaimError, bool)> {
        let area = mem::kernel_box_with(|| area).map_err(|_| (ClaimError::OutOfMemory, true))?;
        let area = NonNull::from(Box::leak(area));
        let (place, number) = registers.claim_of();
        let memory = Self { area, place, number, is_coherent };
        // SAFETY: whole, in no list, and it stays until `drop` takes it off. If it was not hung there, that finds it in none.
        unsafe { claims::hang(place, number, area.as_ptr()) }.map_err(|error| (error, false))?;
        memory.sync();
        Ok(memory)
    }

    /// Where it begins, as the device has to be told.
    ///
    /// ```
    /// # use magpie::device::DmaMemory;
    /// fn is_aligned(memory: &DmaMemory) -> bool { memory.address() % 4096 == 0 }
    /// ```
    pub fn address(&self) -> u64 {
        self.as_ptr().as_ptr().expose_provenance() as u64
    }

    /// Where it begins, for a library that reads and writes by itself.
    ///
    /// ```
    /// # use magpie::device::DmaMemory;
    /// fn same(memory: &DmaMemory) -> bool { memory.as_ptr().addr().get() as u64 == memory.address() }
    /// ```
    pub fn as_ptr(&self) -> NonNull<u8> {
        // SAFETY: it is whole until this is dropped, and its pages do not change.
        unsafe { self.area.as_ref() }.pages
    }

    /// How many bytes it has.
    ///
    /// ```
    /// # use magpie::device::DmaMemory;
    /// fn pages(memory: &DmaMemory) -> usize { memory.bytes() / 4096 }
    /// ```
    pub fn bytes(&self) -> usize {
        // SAFETY: as above.
        unsafe { self.area.as_ref() }.layout.size()
    }

    /// Copies out what is there from an offset on. What the device writes meanwhile may be mixed with what was there.
    ///
    /// # Panics
    /// It is not all inside.
    ///
    /// ```
    /// # use magpie::device::DmaMemory;
    /// fn first(memory: &DmaMemory) -> [u8; 4] {
    ///     let mut bytes = [0; 4];
    ///     memory.read(0, &mut bytes);
    ///     bytes
    /// }
    /// ```
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.at(offset, into.len());
        for (index, byte) in into.iter_mut().enumerate() {
            // SAFETY: inside. Volatile, because the device may write it.
            *byte = unsafe { from.add(index).read_volatile() };
        }
    }

    /// Copies bytes there from an offset on.
    ///
    /// # Panics
    /// They do not all fit.
    ///
    /// ```
    /// # use magpie::device::DmaMemory;
    /// fn greet(memory: &DmaMemory) { memory.write(0, b"hello") }
    /// ```
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        for (index, byte) in bytes.iter().enumerate() {
            // SAFETY: inside. Volatile, because the device may read it.
            unsafe { to.add(index).write_volatile(*byte) };
        }
    }

    /// What was written here reaches the device, and what the device has written is seen here: before the device is told to read, and after it has said that it
    /// wrote. Nothing needs to be done if the memory is coherent.
    ///
    /// ```
    /// # use magpie::device::DmaMemory;
    /// fn hand_over(memory: &DmaMemory) { memory.sync() }
    /// ```
    pub fn sync(&self) {
        #[cfg(target_os = "none")]
        if !self.is_coherent {
            crate::arch::mmu::clean(self.as_ptr().addr().get(), self.bytes());
        }
        #[cfg(not(target_os = "none"))]
        let _ = self.is_coherent;
    }

    fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes());
        assert!(
            fits,
            "{bytes} bytes at offset {offset:#x} are not in a device's memory of {:#x}",
            self.bytes()
        );
        self.as_ptr().as_ptr().wrapping_add(offset)
    }
}

impl Drop for DmaMemory {
    fn drop(&mut self) {
        // After a crash of the claim's owner it hangs nowhere, and the device is quiet.
        claims::take_off(self.place, self.number, self.area.as_ptr());
        // SAFETY: made by `Box::leak`, in no list any more, and this is the one handle.
        let area = unsafe { Box::from_raw(self.area.as_ptr()) };
        if area.is_lent {
            return;
        }
        // SAFETY: allocated with this layout. The device does not use it any more, by the contract of its registers' claim.
        unsafe { dealloc(area.pages.as_ptr(), area.layout) };
    }
}

impl fmt::Debug for DmaMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DmaMemory({:#x}, {} bytes)", self.address(), self.bytes())
    }
}
