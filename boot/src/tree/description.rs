//! What boot needs of the device tree, and what may be wrong with one: types alone.
//!
//! How they are filled is beside this: see `read.rs`.

use core::fmt;

use magpie::arch::MAX_CORES;
use magpie::machine::Location;

use crate::memory::Range;

/// The most ranges of memory that are read.
pub(super) const MOST_MEMORY: usize = 8;
/// The most ranges of reserved memory that are read.
pub(super) const MOST_RESERVED: usize = 16;

/// What is wrong with the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TreeError {
    /// There is no tree at the given address, or it is damaged.
    Unreadable,
    /// It is longer than boot maps.
    TooLong,
    /// It names no memory.
    NoMemory,
    /// It names no interrupt controller that the kernel knows.
    NoInterruptController,
    /// It names no timer.
    NoTimer,
    /// It puts the registers of a device that boot needs into memory, or onto another's.
    DeviceOverlaps(Range),
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeviceOverlaps(registers) => {
                return write!(
                    f,
                    "the device tree puts a device's registers, {:#x} to {:#x}, onto memory or another device",
                    registers.start, registers.end
                );
            }
            Self::Unreadable => "the device tree is missing or damaged: boot the flat image, not the ELF",
            Self::TooLong => "the device tree is longer than 2 MiB: pack it (`dtc -I dtb -O dtb`)",
            Self::NoMemory => "the device tree names no memory",
            Self::NoInterruptController => "the device tree names no GICv2 or GICv3",
            Self::NoTimer => "the device tree names no Armv8 timer",
        })
    }
}

/// How a core is started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StartMethod {
    /// By a call to the firmware.
    #[default]
    Psci,
    /// By writing its entry address to this address.
    SpinTable(usize),
}

/// How the firmware is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirmwareCall {
    /// The hypervisor call.
    Hvc,
    /// The secure monitor call.
    Smc,
}

/// The interrupt controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterruptController {
    /// GICv2: distributor and CPU interface.
    V2(Range, Range),
    /// GICv3: distributor and redistributors.
    V3(Range, Range),
}

/// What boot needs of the tree.
#[derive(Clone, Debug)]
pub struct Description<'a> {
    /// Memory.
    pub memory: [Range; MOST_MEMORY],
    /// Parts of the memory that are the firmware's.
    pub reserved: [Range; MOST_RESERVED],
    /// How many cores are named, at most [`MAX_CORES`] of them.
    pub cores: usize,
    /// How many more there are.
    pub cores_beyond: usize,
    /// Where each sits.
    pub places: [Location; MAX_CORES],
    /// How each is started.
    pub start: [StartMethod; MAX_CORES],
    /// The interrupt controller.
    pub interrupts: InterruptController,
    /// The virtual timer's interrupt number.
    pub timer_interrupt: u32,
    /// The console's registers, if it is a PL011.
    pub uart: Option<Range>,
    /// Its interrupt.
    pub uart_interrupt: Option<u32>,
    /// How the firmware is called, if there is one that takes calls.
    pub firmware: Option<FirmwareCall>,
    /// The boot arguments, up to the first byte that is not text.
    pub arguments: &'a str,
    /// How many bytes of them follow that.
    pub arguments_cut: usize,
    /// The initrd.
    pub input: Option<Range>,
}

impl Description<'_> {
    /// The registers that boot maps.
    pub fn devices(&self) -> impl Iterator<Item = Range> {
        let (InterruptController::V2(first, second) | InterruptController::V3(first, second)) =
            self.interrupts;
        [Some(first), Some(second), self.uart].into_iter().flatten()
    }
}
