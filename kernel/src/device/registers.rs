//! Registers of a device, as their one driver has them: reads and writes of a whole register, in order, inside the claimed range.

use core::fmt;
use core::ops::Range;
use core::ptr::{self, NonNull};

use super::claims::{self, ClaimError};

/// A device's registers. Dropped, the device is told to be quiet, and another may claim them.
///
/// Reads and writes are done as they are written, in order, and each at once. What another device sees of them, or of memory, and when, takes barriers
/// that drivers know.
pub struct Registers {
    range: Range<usize>,
    part: Option<u32>,
    place: usize,
    number: u64,
}

macro_rules! accesses {
    ($(($read:ident, $write:ident, $int:ty, $bits:literal)),+) => {$(
        #[doc = concat!("The register of ", $bits, " bits at an offset in bytes.")]
        ///
        /// ```
        #[doc = concat!("# use magpie::device::Registers;\nfn status(registers: &Registers) -> ", stringify!($int), " { registers.", stringify!($read), "(0x8) }")]
        /// ```
        ///
        /// # Panics
        /// It is not inside, or not aligned.
        pub fn $read(&self, offset: usize) -> $int {
            // SAFETY: a register of a range that whoever claimed it has promised to be a device's.
            unsafe { self.at::<$int>(offset).read_volatile() }
        }

        #[doc = concat!("Writes the register of ", $bits, " bits at an offset in bytes.")]
        ///
        /// ```
        #[doc = concat!("# use magpie::device::Registers;\nfn stop(registers: &Registers) { registers.", stringify!($write), "(0x8, 0) }")]
        /// ```
        ///
        /// # Panics
        /// It is not inside, or not aligned.
        pub fn $write(&self, offset: usize, value: $int) {
            // SAFETY: as for reading; what the device does is what the claim's contract is about.
            unsafe { self.at::<$int>(offset).write_volatile(value) }
        }
    )+};
}

impl Registers {
    /// Claims the registers in this range of addresses for the caller, a process or in a behaviour an actor, and maps them. The claim ends with that one; then, or
    /// when this is dropped, `quiet` makes the device leave memory alone. It is called under a lock, in a crash in the middle of that:
    /// it reads and writes a few registers that there are, and does nothing else. A panic in it stops the system.
    ///
    /// # Safety
    /// These are the registers of a device, whole, and reading and writing them is what it expects. What it reads and writes by itself is
    /// [`DmaMemory`](super::DmaMemory) of this claim that has not been dropped, or nothing; and nothing after `quiet`.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub unsafe fn claim(range: Range<usize>, quiet: fn(&Self)) -> Result<Self, ClaimError> {
        let claim = claims::claim(range.clone(), None, quiet)?;
        Ok(Self::of(range, None, claim))
    }

    /// Claims a part of a device of which others may have other parts: one of its pins or channels, by a number. As [`claim`](Self::claim), and `range` is the
    /// same for all parts. `quiet` makes that [`part`](Self::part) alone leave everybody alone.
    ///
    /// Registers in which several parts have bits are changed by [`update_u32`](Self::update_u32), so that no change is lost.
    ///
    /// # Safety
    /// As for `claim`, for that part; and other parts are not disturbed.
    ///
    /// # Errors
    /// [`ClaimError`]: that part is another's, or the whole device is.
    pub unsafe fn claim_part(range: Range<usize>, part: u32, quiet: fn(&Self)) -> Result<Self, ClaimError> {
        let claim = claims::claim(range.clone(), Some(part), quiet)?;
        Ok(Self::of(range, Some(part), claim))
    }

    pub(super) fn of(range: Range<usize>, part: Option<u32>, (place, number): (usize, u64)) -> Self {
        Self { range, part, place, number }
    }

    /// Which part of the device it is, if not the whole.
    ///
    /// ```
    /// # use magpie::device::Registers;
    /// /// The bit of this pin, where 32 pins share a register.
    /// fn bit(registers: &Registers) -> u32 { 1 << (registers.part().unwrap_or(0) % 32) }
    /// ```
    pub fn part(&self) -> Option<u32> {
        self.part
    }

    /// Changes bits of a register that other parts of the device have bits in, too: those of `mask` become those of `value`. No other change, and no `quiet`, comes
    /// between its reading and writing. Not for `quiet`, where nobody else changes anything anyway: there it is read and written.
    ///
    /// # Errors
    /// The claim has ended with its owner. Nothing was changed.
    ///
    /// # Panics
    /// It is not inside, or not aligned.
    ///
    /// ```
    /// # use magpie::device::{ClaimError, Registers};
    /// /// Three bits say what this pin is for.
    /// fn make_output(registers: &Registers) -> Result<(), ClaimError> {
    ///     let first = registers.part().unwrap_or(0) % 10 * 3;
    ///     registers.update_u32(0x0, 0b111 << first, 0b001 << first)
    /// }
    /// ```
    pub fn update_u32(&self, offset: usize, mask: u32, value: u32) -> Result<(), ClaimError> {
        // Looked at before the lock is taken: a panic under it would be the kernel's.
        self.at::<u32>(offset);
        claims::alone(self.place, self.number, || {
            self.write_u32(offset, self.read_u32(offset) & !mask | value & mask);
        })
    }

    /// Which claim it is.
    pub(super) fn claim_of(&self) -> (usize, u64) {
        (self.place, self.number)
    }

    /// From now on the claim ends with the caller, to whom this was moved.
    ///
    /// # Errors
    /// The claim has ended with its owner.
    ///
    /// ```
    /// # use magpie::device::{ClaimError, Registers};
    /// async fn drive(registers: Registers) -> Result<(), ClaimError> {
    ///     registers.belong_to_caller()
    /// }
    /// ```
    pub fn belong_to_caller(&self) -> Result<(), ClaimError> {
        claims::pass_on(self.place, self.number)
    }

    /// The range of addresses.
    ///
    /// ```
    /// # use magpie::device::Registers;
    /// fn bytes(registers: &Registers) -> usize { registers.range().len() }
    /// ```
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The first register, for a library that reads and writes by itself.
    ///
    /// ```
    /// # use magpie::device::Registers;
    /// fn is_aligned(registers: &Registers) -> bool { registers.as_ptr().addr().get() % 4 == 0 }
    /// ```
    pub fn as_ptr(&self) -> NonNull<u8> {
        let first = ptr::with_exposed_provenance_mut(self.range.start);
        // The range is not empty, so where it begins is null only if the kernel's own were claimed, which it refuses.
        NonNull::new(first).unwrap_or(NonNull::dangling())
    }

    accesses!(
        (read_u8, write_u8, u8, "8"),
        (read_u16, write_u16, u16, "16"),
        (read_u32, write_u32, u32, "32"),
        (read_u64, write_u64, u64, "64")
    );

    fn at<T>(&self, offset: usize) -> *mut T {
        let bytes = size_of::<T>();
        let fits = offset.checked_add(bytes).is_some_and(|end| end <= self.range.len());
        let address = self.range.start.wrapping_add(offset);
        assert!(
            fits && address.is_multiple_of(bytes),
            "there is no register of {bytes} bytes at offset {offset:#x}: the range has {:#x}, and registers are aligned",
            self.range.len()
        );
        ptr::with_exposed_provenance_mut(address)
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        claims::release(self.place, self.number);
    }
}

impl fmt::Debug for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registers({:#x?})", self.range)
    }
}
