//! Why a driver cannot drive its device, or stops doing so.

use core::fmt;

use magpie::device::{self, NoLine};
use magpie::interrupt::{self, Revoked};
use magpie::registry::RegisterError;

/// Why a driver has ended, or has not begun.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DriverError {
    /// The machine has no such device, or others drive all that it has.
    NoDevice(&'static str),
    /// The pin of this number is not to be had: it is the serial port's, or the board has wired something to it.
    NoPin(u32),
    /// The serial port cannot send so many bits in a second.
    NoSpeed(u32),
    /// Its registers were not claimed, or no memory for it was found.
    Registers(device::ClaimError),
    /// The tree names no interrupt for it.
    NoLine(NoLine),
    /// Its interrupt was not claimed, or not any more.
    Interrupt(interrupt::ClaimError),
    /// It does not see the cores' caches, which no driver here can deal with.
    NotCoherent,
    /// It does not do what the standard says: what exactly.
    Faulty(&'static str),
    /// The network that it was to carry frames for has ended, or has another link.
    NoNetwork,
    /// Another serves others by this name.
    NameTaken,
    /// There is no memory.
    OutOfMemory,
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDevice(what) => write!(f, "this machine has no {what} that nobody drives"),
            Self::NoPin(pin) => write!(
                f,
                "pin {pin} is not to be had: it is the serial port's, or the board has wired something to it"
            ),
            Self::NoSpeed(baud) => {
                write!(f, "the serial port cannot send {baud} bits in a second: 115200 is usual")
            }
            Self::Registers(error) => error.fmt(f),
            Self::NoLine(error) => error.fmt(f),
            Self::Interrupt(error) => error.fmt(f),
            Self::NotCoherent => {
                f.write_str("the device does not see the cores' caches: that is not supported")
            }
            Self::Faulty(what) => write!(f, "the device does not do what its standard says: {what}"),
            Self::NoNetwork => f.write_str("the network has ended, or has another link"),
            Self::NameTaken => f.write_str("another serves by this name: give the driver another one"),
            Self::OutOfMemory => f.write_str("out of memory: give the machine more, or start less"),
        }
    }
}

impl core::error::Error for DriverError {}

impl From<device::ClaimError> for DriverError {
    fn from(error: device::ClaimError) -> Self {
        match error {
            device::ClaimError::OutOfMemory => Self::OutOfMemory,
            error => Self::Registers(error),
        }
    }
}

impl From<NoLine> for DriverError {
    fn from(error: NoLine) -> Self {
        Self::NoLine(error)
    }
}

impl From<interrupt::ClaimError> for DriverError {
    fn from(error: interrupt::ClaimError) -> Self {
        match error {
            interrupt::ClaimError::OutOfMemory => Self::OutOfMemory,
            error => Self::Interrupt(error),
        }
    }
}

impl From<Revoked> for DriverError {
    fn from(_: Revoked) -> Self {
        Self::Interrupt(interrupt::ClaimError::Revoked)
    }
}

impl From<RegisterError> for DriverError {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::Taken { .. } => Self::NameTaken,
            _ => Self::OutOfMemory,
        }
    }
}

impl From<magpie::mem::OutOfMemory> for DriverError {
    fn from(_: magpie::mem::OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}
