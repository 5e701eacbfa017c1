//! The I2C bus at the Raspberry Pi 4's header: pins 2 (data) and 3 (clock), at 90 kilohertz, for whatever is written for `embedded-hal`, blocking or not.
//!
//! The board's tree has it if its `config.txt` says `dtparam=i2c_arm=on`. It belongs to who has opened it, and so do the two pins; who crashes lets go of all three.
//!
//! The controller can begin anew without a stop only after a write, and only if that fits into its sixteen bytes. So a transaction is a write, a read, or a write of at most sixteen
//! bytes and a read; operations of one kind that follow one another are one. Anything else is refused.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use embedded_hal::i2c::{Error, ErrorKind, ErrorType, I2c as Blocking, NoAcknowledgeSource, Operation};
use embedded_hal_async::i2c::I2c as Waiting;
use magpie::device::{self, Registers};
use magpie::time::{self, Instant};

use super::gpio::{Lent, Pull};
use crate::DriverError;

const DATA_PIN: u32 = 2;
const CLOCK_PIN: u32 = 3;

// Registers (BCM2711 ARM Peripherals, 3.3).
const CONTROL: usize = 0x00;
const STATUS: usize = 0x04;
const LENGTH: usize = 0x08;
const ADDRESS: usize = 0x0c;
const FIFO: usize = 0x10;
const DIVIDER: usize = 0x14;
// In `CONTROL`.
const ENABLED: u32 = 1 << 15;
const START: u32 = 1 << 7;
const CLEAR: u32 = 1 << 4;
const READ: u32 = 1 << 0;
// In `STATUS`; the first three are cleared by writing ones.
const STRETCHED: u32 = 1 << 9;
const NOT_ACKNOWLEDGED: u32 = 1 << 8;
const DONE: u32 = 1 << 1;
const HAS_DATA: u32 = 1 << 5;
const HAS_ROOM: u32 = 1 << 4;
const ACTIVE: u32 = 1 << 0;

/// The core's clock is 550 MHz at most; with 500 it is 91 kilohertz.
const DIVISOR: u32 = 5500;
const FIFO_BYTES: usize = 16;
const MOST_BYTES: usize = 0xffff;
/// How long nothing may happen: a byte takes 100 µs, and a device may hold the clock for a while.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often it is looked at by who lets others have a turn meanwhile.
const SOON: Duration = Duration::from_micros(100);
/// How often it is looked at whether a start has begun, with nobody else on this core.
const LOOKS: u32 = 200;

/// Why a transaction has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum I2cError {
    /// Nobody has that address, or it does not take a byte.
    NotAcknowledged,
    /// A device holds the clock for too long, or nothing happens.
    Stuck,
    /// The controller cannot do these operations in one transaction, or not so many bytes.
    Unsupported,
    /// There is no memory.
    OutOfMemory,
}

impl fmt::Display for I2cError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAcknowledged => "nobody has that address on the bus, or it does not take a byte",
            Self::Stuck => "a device holds the clock, or the bus has no pull-ups",
            Self::Unsupported => {
                "a transaction is a write, a read, or a write of up to 16 bytes and a read, of up to 65535"
            }
            Self::OutOfMemory => "out of memory: give the machine more, or start less",
        })
    }
}

impl core::error::Error for I2cError {}

impl Error for I2cError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotAcknowledged => ErrorKind::NoAcknowledge(NoAcknowledgeSource::Unknown),
            Self::Stuck => ErrorKind::Bus,
            Self::Unsupported | Self::OutOfMemory => ErrorKind::Other,
        }
    }
}

/// The bus.
///
/// ```
/// use magpie_drivers::DriverError;
/// use magpie_drivers::pi::i2c::{I2c, I2cError};
///
/// /// Of a thermometer of the kind LM75, in halves of a degree.
/// async fn temperature(bus: &mut I2c) -> Result<i16, I2cError> {
///     use embedded_hal_async::i2c::I2c;
///     let mut bytes = [0; 2];
///     bus.write_read(0x48_u8, &[0], &mut bytes).await?;
///     Ok(i16::from_be_bytes(bytes) >> 7)
/// }
/// # assert!(I2c::open().is_err(), "the host has no bus");
/// ```
///
/// The traits that wait let others have a turn; the blocking ones look again and again until it is done, which takes 100 µs for each byte: they are preempted like anybody who computes.
#[derive(Debug)]
pub struct I2c {
    registers: Registers,
    // Inputs again after the controller is off.
    _pins: [Lent; 2],
}

/// In the end, or in a crash: off, and what was to be sent is forgotten.
fn quiet(registers: &Registers) {
    registers.write_u32(CONTROL, CLEAR);
}

impl I2c {
    /// Takes the bus and its pins for the caller.
    ///
    /// # Errors
    /// The machine has none; it, or one of the pins, is somebody else's.
    pub fn open() -> Result<Self, DriverError> {
        let none = || DriverError::NoDevice("I2C bus at the header (dtparam=i2c_arm=on)");
        let mut all = device::find("brcm,bcm2835-i2c");
        let found = all.find(|found| found.name() == "i2c@7e804000").ok_or_else(none)?;
        let range = found.registers(0).filter(|range| range.len() > DIVIDER + 3).ok_or_else(none)?;
        // SAFETY: the tree says that the controller is there, which reads and writes no memory.
        let registers = unsafe { Registers::claim(range, quiet)? };
        let pins = [Lent::first(DATA_PIN, Pull::Up)?, Lent::first(CLOCK_PIN, Pull::Up)?];
        registers.write_u32(CONTROL, CLEAR);
        registers.write_u32(DIVIDER, DIVISOR);
        Ok(Self { registers, _pins: pins })
    }

    fn status(&self) -> Result<u32, I2cError> {
        let status = self.registers.read_u32(STATUS);
        if status & NOT_ACKNOWLEDGED != 0 {
            Err(I2cError::NotAcknowledged)
        } else if status & STRETCHED != 0 {
            Err(I2cError::Stuck)
        } else {
            Ok(status)
        }
    }

    /// Begins a transfer; a write that a read follows is given wholly, and the read begun as soon as the write has.
    fn begin(&self, address: u8, plan: &mut Plan) -> Result<(), I2cError> {
        let registers = &self.registers;
        // Not enabled yet: QEMU takes that alone for a start.
        registers.write_u32(CONTROL, CLEAR);
        registers.write_u32(STATUS, STRETCHED | NOT_ACKNOWLEDGED | DONE);
        registers.write_u32(ADDRESS, address.into());
        if !plan.is_both() {
            registers.write_u32(LENGTH, (plan.out.len() + plan.wanted) as u32);
            let read = if plan.wanted > 0 { READ } else { 0 };
            registers.write_u32(CONTROL, ENABLED | START | read);
            return Ok(());
        }
        registers.write_u32(LENGTH, plan.out.len() as u32);
        // Nobody may come between: without the second start in time the controller says stop after the write.
        critical_section::with(|_| {
            registers.write_u32(CONTROL, ENABLED | START);
            for byte in &plan.out {
                registers.write_u32(FIFO, u32::from(*byte));
            }
            plan.given = plan.out.len();
            let has_begun =
                || registers.read_u32(STATUS) & (ACTIVE | DONE | NOT_ACKNOWLEDGED | STRETCHED) != 0;
            if !(0..LOOKS).any(|_| has_begun()) {
                return Err(I2cError::Stuck);
            }
            if self.status()? & DONE != 0 {
                // Quicker than looking, as an emulated one is.
                registers.write_u32(STATUS, DONE);
            }
            registers.write_u32(LENGTH, plan.wanted as u32);
            registers.write_u32(CONTROL, ENABLED | START | READ);
            Ok(())
        })
    }

    /// Moves what can be moved. Whether all is done.
    fn go_on(&self, plan: &mut Plan) -> Result<Progress, I2cError> {
        let mut has_moved = false;
        loop {
            let status = self.status()?;
            if plan.given < plan.out.len() && status & HAS_ROOM != 0 && status & DONE == 0 {
                self.registers.write_u32(FIFO, u32::from(plan.out[plan.given]));
                plan.given += 1;
            } else if plan.come.len() < plan.wanted && status & HAS_DATA != 0 {
                // There is room: it was reserved.
                plan.come.push(self.registers.read_u32(FIFO) as u8);
            } else {
                let is_whole = plan.given == plan.out.len() && plan.come.len() == plan.wanted;
                return match status & DONE {
                    0 => Ok(if has_moved { Progress::Some } else { Progress::None }),
                    _ if is_whole => Ok(Progress::All),
                    // It ended before everything had gone over.
                    _ => Err(I2cError::NotAcknowledged),
                };
            }
            has_moved = true;
        }
    }

    /// Whatever came of it: the controller is as before.
    fn end(&self) {
        self.registers.write_u32(CONTROL, CLEAR);
        self.registers.write_u32(STATUS, STRETCHED | NOT_ACKNOWLEDGED | DONE);
    }
}

/// How far a transfer has come.
enum Progress {
    All,
    Some,
    None,
}

/// What a transaction is for the controller.
struct Plan {
    out: Vec<u8>,
    given: usize,
    wanted: usize,
    come: Vec<u8>,
}

impl Plan {
    fn of(operations: &[Operation<'_>]) -> Result<Self, I2cError> {
        let mut plan = Self { out: Vec::new(), given: 0, wanted: 0, come: Vec::new() };
        let mut has_read = false;
        for operation in operations {
            match operation {
                Operation::Write(_) if has_read => return Err(I2cError::Unsupported),
                Operation::Write(bytes) => {
                    plan.out.try_reserve(bytes.len()).map_err(|_| I2cError::OutOfMemory)?;
                    plan.out.extend_from_slice(bytes);
                }
                Operation::Read(into) => {
                    has_read = true;
                    plan.wanted += into.len();
                }
            }
        }
        let is_too_long = plan.out.len() > MOST_BYTES || plan.wanted > MOST_BYTES;
        if is_too_long || plan.is_both() && plan.out.len() > FIFO_BYTES {
            return Err(I2cError::Unsupported);
        }
        plan.come.try_reserve_exact(plan.wanted).map_err(|_| I2cError::OutOfMemory)?;
        Ok(plan)
    }

    fn is_both(&self) -> bool {
        !self.out.is_empty() && self.wanted > 0
    }

    /// Hands out what has come.
    fn hand_out(&self, operations: &mut [Operation<'_>]) {
        let mut come = &self.come[..];
        for operation in operations {
            if let Operation::Read(into) = operation {
                let (own, rest) = come.split_at(into.len());
                into.copy_from_slice(own);
                come = rest;
            }
        }
    }
}

impl ErrorType for I2c {
    type Error = I2cError;
}

impl Blocking for I2c {
    fn transaction(&mut self, address: u8, operations: &mut [Operation<'_>]) -> Result<(), I2cError> {
        let mut plan = Plan::of(operations)?;
        let ends = Ends(self);
        ends.0.begin(address, &mut plan)?;
        let mut last = Instant::now();
        loop {
            match ends.0.go_on(&mut plan)? {
                Progress::All => break,
                Progress::Some => last = Instant::now(),
                Progress::None if last.elapsed() > PATIENCE => return Err(I2cError::Stuck),
                Progress::None => core::hint::spin_loop(),
            }
        }
        plan.hand_out(operations);
        Ok(())
    }
}

impl Waiting for I2c {
    async fn transaction(&mut self, address: u8, operations: &mut [Operation<'_>]) -> Result<(), I2cError> {
        let mut plan = Plan::of(operations)?;
        let ends = Ends(self);
        ends.0.begin(address, &mut plan)?;
        let mut last = Instant::now();
        loop {
            match ends.0.go_on(&mut plan)? {
                Progress::All => break,
                Progress::Some => last = Instant::now(),
                Progress::None if last.elapsed() > PATIENCE => return Err(I2cError::Stuck),
                Progress::None => time::sleep(SOON).await,
            }
        }
        plan.hand_out(operations);
        Ok(())
    }
}

/// Ends the transfer, also where who waited for it gave up.
struct Ends<'a>(&'a I2c);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::{I2cError, Operation, Plan};

    #[test]
    fn operations_of_one_kind_are_one_and_others_are_refused() {
        let (mut first, mut second) = ([0; 2], [0; 3]);
        let operations = &mut [
            Operation::Write(&[1, 2]),
            Operation::Write(&[3]),
            Operation::Read(&mut first),
            Operation::Read(&mut second),
        ];
        let mut plan = Plan::of(operations).unwrap();
        assert_eq!((&plan.out[..], plan.wanted, plan.is_both()), (&[1, 2, 3][..], 5, true));
        plan.come.extend([4, 5, 6, 7, 8]);
        plan.hand_out(operations);
        assert_eq!((first, second), ([4, 5], [6, 7, 8]));
        let after = &mut [Operation::Read(&mut first), Operation::Write(&[1])];
        assert_eq!(Plan::of(after).err(), Some(I2cError::Unsupported));
        let long = &mut [Operation::Write(&[0; 17]), Operation::Read(&mut second)];
        assert_eq!(Plan::of(long).err(), Some(I2cError::Unsupported));
        assert!(Plan::of(&[Operation::Write(&[0; 65_535])]).is_ok());
        assert_eq!(Plan::of(&[Operation::Write(&[0; 65_536])]).err(), Some(I2cError::Unsupported));
    }
}
