//! Devices, for whoever drives one: registers that are claimed, and memory that a device reads and writes.
//!
//! A driver is a process or an actor. It claims the registers of its device, which maps them, and the memory that it shares with the device
//! hangs on that claim. If it crashes or is killed, the device is told to be quiet at once, by a function that the driver named before; then
//! the registers are free, and the memory goes the way of all that a crash leaves. So a device never writes into memory that somebody else has
//! been given. The interrupt is a claim of its own: [`interrupt`](crate::interrupt).
//!
//! Where a device is, is said by the device tree: `find` and `all`, which boot provides beside this.
//!
//! ```no_run
//! use magpie::device::{ClaimError, DmaMemory, Registers};
//!
//! /// The device's register that starts and stops it.
//! const CONTROL: usize = 0x10;
//!
//! fn quiet(registers: &Registers) {
//!     registers.write_u32(CONTROL, 0);
//! }
//!
//! fn begin() -> Result<(), ClaimError> {
//!     // SAFETY: the board has this device there, and it is told no addresses but those of its memory.
//!     let registers = unsafe { Registers::claim(0xfe20_0000..0xfe20_0100, quiet)? };
//!     let ring = DmaMemory::new(&registers, 4096, true)?;
//!     registers.write_u32(0x20, ring.address() as u32);
//!     registers.write_u32(CONTROL, 1);
//!     Ok(())
//! }
//! # let _ = begin();
//! ```

mod claims;
mod memory;
mod registers;

pub use claims::ClaimError;
#[cfg(target_os = "none")]
pub(crate) use claims::{adopt, keep};
pub use memory::DmaMemory;
pub use registers::Registers;

/// Shared memory is made of pages of so many bytes.
pub const DMA_PAGE_BYTES: usize = 4096;
