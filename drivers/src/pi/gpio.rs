//! The pins of the Raspberry Pi 4, claimed one by one: as outputs and inputs for whatever is written for `embedded-hal`.
//!
//! A pin belongs to who claims it, a process or in a behaviour an actor, and to nobody else. Dropped, or when its owner crashes or is killed, it is an input at
//! once, without a pull, which leaves alone what hangs on it; then the next may claim it.
//!
//! Claimed can be the pins of the header, 0 to 27, and the [LED](LED)'s. Not 14 and 15: they are the serial port's, which the kernel gives them at boot. After that it
//! does not touch pins. What the board has wired to its other pins, its power supply for one, is not to be had.
//!
//! An edge of an input wakes nobody yet.

use core::convert::Infallible;

use embedded_hal::digital::{Error, ErrorKind, ErrorType, InputPin, OutputPin, PinState, StatefulOutputPin};
use magpie::device::{self, Registers};

use crate::DriverError;

/// The pin of the green LED, which is on when it is high.
pub const LED: u32 = 42;

/// The pins of the header, and those of them that the serial port has.
const HEADER: core::ops::Range<u32> = 0..28;
const SERIAL: core::ops::RangeInclusive<u32> = 14..=15;

// Registers (BCM2711 ARM Peripherals, 5.2): of each the first.
/// What pins are for: ten in each, three bits a pin.
const FUNCTIONS: usize = 0x00;
/// A one makes an output high, or low; and the levels: 32 pins in each.
const SET: usize = 0x1c;
const CLEAR: usize = 0x28;
const LEVELS: usize = 0x34;
/// Pulls: sixteen pins in each, two bits a pin.
const PULLS: usize = 0xe4;
/// So many bytes has all of it. The tree says less, because the pulls are where they were not in earlier chips.
const BYTES: usize = 0xf4;

/// What a pin is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
enum Function {
    Input = 0,
    Output = 1,
    /// The first of what else it can be.
    Other0 = 4,
    /// The fifth of it.
    Other4 = 3,
}

/// What draws an input to a level while nothing else does: some 50 kΩ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u32)]
pub enum Pull {
    /// Nothing: its level is anything until something else says.
    #[default]
    None = 0,
    /// To high.
    Up = 1,
    /// To low.
    Down = 2,
}

/// Where the bits of a pin are, of which each register has so many: the register's offset behind the first, and the bit.
const fn place(pin: u32, pins: u32) -> (usize, u32) {
    ((pin / pins) as usize * 4, pin % pins * (32 / pins))
}

/// In the end, or in a crash: an input without a pull.
fn quiet(registers: &Registers) {
    let Some(pin) = registers.part() else { return };
    for (first, pins, mask) in [(FUNCTIONS, 10, 0b111), (PULLS, 16, 0b11)] {
        let (offset, bit) = place(pin, pins);
        registers.write_u32(first + offset, registers.read_u32(first + offset) & !(mask << bit));
    }
}

/// A pin that is somebody's.
#[derive(Debug)]
struct Pin(Registers);

impl Pin {
    fn claim(pin: u32) -> Result<Self, DriverError> {
        let device =
            device::find("brcm,bcm2711-gpio").next().ok_or(DriverError::NoDevice("pins of a BCM2711"))?;
        if SERIAL.contains(&pin) || !HEADER.contains(&pin) && pin != LED {
            return Err(DriverError::NoPin(pin));
        }
        let start = device.registers(0).ok_or(DriverError::NoDevice("pins of a BCM2711"))?.start;
        // SAFETY: the tree says that the pins' registers are there, which read and write no memory. Of those that pins share, only the bits of this one are
        // changed, by `update_u32`, or in `quiet`.
        Ok(Self(unsafe { Registers::claim_part(start..start + BYTES, pin, quiet)? }))
    }

    /// Its number.
    fn number(&self) -> u32 {
        self.0.part().unwrap_or(0)
    }

    fn become_a(&self, function: Function, pull: Pull) -> Result<(), DriverError> {
        let (offset, bit) = place(self.number(), 16);
        self.0.update_u32(PULLS + offset, 0b11 << bit, (pull as u32) << bit)?;
        let (offset, bit) = place(self.number(), 10);
        Ok(self.0.update_u32(FUNCTIONS + offset, 0b111 << bit, (function as u32) << bit)?)
    }

    fn set(&self, level: PinState) -> Result<(), DriverError> {
        let (offset, bit) = place(self.number(), 32);
        let first = if level == PinState::High { SET } else { CLEAR };
        // The zeros do nothing. Not just written: if the pin's owner has crashed it may be another's.
        Ok(self.0.update_u32(first + offset, u32::MAX, 1 << bit)?)
    }

    fn is_high(&self) -> bool {
        let (offset, bit) = place(self.number(), 32);
        self.0.read_u32(LEVELS + offset) >> bit & 1 != 0
    }
}

/// A pin that is some other device's, until this is dropped.
#[derive(Debug)]
pub(crate) struct Lent(#[expect(dead_code, reason = "held: its end makes the pin an input")] Pin);

impl Lent {
    /// Gives the pin to the first of the devices that can have it. A pull is what that needs.
    pub(super) fn first(pin: u32, pull: Pull) -> Result<Self, DriverError> {
        let pin = Pin::claim(pin)?;
        pin.become_a(Function::Other0, pull)?;
        Ok(Self(pin))
    }

    /// The same of the fifth of them.
    pub(crate) fn fifth(pin: u32, pull: Pull) -> Result<Self, DriverError> {
        let pin = Pin::claim(pin)?;
        pin.become_a(Function::Other4, pull)?;
        Ok(Self(pin))
    }
}

/// A pin that is driven high or low.
///
/// ```
/// use core::time::Duration;
/// use embedded_hal::digital::{OutputPin, PinState};
/// use magpie::time;
/// use magpie_drivers::DriverError;
/// use magpie_drivers::pi::gpio::{LED, Output};
///
/// async fn flash() -> Result<(), DriverError> {
///     let mut led = Output::claim(LED, PinState::High)?;
///     time::sleep(Duration::from_millis(100)).await;
///     led.set_low()
/// }
/// # let _ = flash;
/// ```
#[derive(Debug)]
pub struct Output(Pin);

impl Output {
    /// Takes the pin for the caller, and drives it to this level at once.
    ///
    /// # Errors
    /// The machine has no such pins; it is not to be had, or somebody else's.
    pub fn claim(pin: u32, level: PinState) -> Result<Self, DriverError> {
        let pin = Pin::claim(pin)?;
        pin.set(level)?;
        pin.become_a(Function::Output, Pull::None)?;
        Ok(Self(pin))
    }

    /// From now on it ends with the caller, to whom this was moved.
    ///
    /// # Errors
    /// Its owner has crashed: it is an input, or another's.
    pub fn belong_to_caller(&self) -> Result<(), DriverError> {
        Ok(self.0.0.belong_to_caller()?)
    }
}

/// A pin whose level is read.
///
/// ```
/// use embedded_hal::digital::InputPin;
/// use magpie_drivers::DriverError;
/// use magpie_drivers::pi::gpio::{Input, Pull};
///
/// /// A button between pin 17 and ground.
/// fn is_pressed() -> Result<bool, DriverError> {
///     Ok(Input::claim(17, Pull::Up)?.is_low().unwrap_or_else(|never| match never {}))
/// }
/// # assert!(is_pressed().is_err(), "the host has no pins");
/// ```
#[derive(Debug)]
pub struct Input(Pin);

impl Input {
    /// Takes the pin for the caller.
    ///
    /// # Errors
    /// As [`Output::claim`].
    pub fn claim(pin: u32, pull: Pull) -> Result<Self, DriverError> {
        let pin = Pin::claim(pin)?;
        pin.become_a(Function::Input, pull)?;
        Ok(Self(pin))
    }

    /// From now on it ends with the caller, to whom this was moved.
    ///
    /// # Errors
    /// Its owner has crashed: it may be another's.
    pub fn belong_to_caller(&self) -> Result<(), DriverError> {
        Ok(self.0.0.belong_to_caller()?)
    }
}

impl Error for DriverError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

impl ErrorType for Output {
    type Error = DriverError;
}

impl OutputPin for Output {
    fn set_low(&mut self) -> Result<(), DriverError> {
        self.0.set(PinState::Low)
    }

    fn set_high(&mut self) -> Result<(), DriverError> {
        self.0.set(PinState::High)
    }
}

/// The level is that of the pin itself, not what it was told: a short circuit shows.
impl StatefulOutputPin for Output {
    fn is_set_high(&mut self) -> Result<bool, DriverError> {
        Ok(self.0.is_high())
    }

    fn is_set_low(&mut self) -> Result<bool, DriverError> {
        Ok(!self.0.is_high())
    }
}

impl ErrorType for Input {
    type Error = Infallible;
}

impl InputPin for Input {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        Ok(self.0.is_high())
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        Ok(!self.0.is_high())
    }
}

#[cfg(test)]
mod tests {
    use super::{HEADER, LED, PULLS, place};

    #[test]
    fn bits_are_where_the_chip_has_them() {
        // GPFSEL4, bits 6 to 8; GPSET1, bit 10; GPIO_PUP_PDN_CNTRL_REG2, bits 20 and 21.
        assert_eq!(place(LED, 10), (0x10, 6));
        assert_eq!(place(LED, 32), (4, 10));
        assert_eq!(place(LED, 16), (8, 20));
        assert_eq!((place(15, 10), place(15, 16)), ((4, 15), (0, 30)));
        assert!(HEADER.chain([LED]).all(|pin| PULLS + place(pin, 16).0 <= 0xf0));
    }
}
