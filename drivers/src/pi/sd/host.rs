//! The host controller of cards (SD Host Controller Simplified Specification 3.00): commands, answers, and blocks that are moved by the cores. Registers are read and written as
//! words of 32 bits, which is all that the BCM2711's takes.
//!
//! Its interrupt is not used: on the board the controller of the radio has the same. What takes long is looked at from time to time.

use core::time::Duration;

use magpie::device::{self, Registers};
use magpie::time;

use crate::DriverError;
use crate::block::SECTOR_BYTES;

// Registers.
const BLOCKS: usize = 0x04;
const ARGUMENT: usize = 0x08;
const COMMAND: usize = 0x0c;
const ANSWER: usize = 0x10;
const DATA: usize = 0x20;
const PRESENT: usize = 0x24;
const HOST: usize = 0x28;
const CLOCK: usize = 0x2c;
const HAPPENED: usize = 0x30;
const SEEN: usize = 0x34;
const SIGNALLED: usize = 0x38;
const CAPABILITIES: usize = 0x40;

// What there is, in `PRESENT`.
const COMMAND_INHIBITED: u32 = 1 << 0;
const DATA_INHIBITED: u32 = 1 << 1;
// What has happened.
const COMMAND_DONE: u32 = 1 << 0;
const DATA_DONE: u32 = 1 << 1;
const WRITE_READY: u32 = 1 << 4;
const READ_READY: u32 = 1 << 5;
const ERRORS: u32 = 0xffff_8000;
/// All of that, and what may go wrong: what is to be seen, though it interrupts nobody.
const ALL: u32 = 0x03ff_8000 | COMMAND_DONE | DATA_DONE | WRITE_READY | READ_READY;
// In `HOST`: four lines, and 3.3 volts.
const FOUR_LINES: u32 = 1 << 1;
const POWER: u32 = 0xf << 8;
// In `CLOCK`.
const RUNS: u32 = 1 << 0;
const IS_STABLE: u32 = 1 << 1;
const CARD_HAS_IT: u32 = 1 << 2;
const LONGEST: u32 = 0xe << 16;
const RESET_ALL: u32 = 1 << 24;
const RESET_LINES: u32 = 0b110 << 24;
/// The rate in megahertz that is divided, where the controller does not say it: the most that the board's firmware sets. With less a card is slower.
const MOST_MEGAHERTZ: u32 = 200;

/// How long anything may take: a card's writes take half a second at most.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked at before others have a turn, and how long then.
const LOOKS: u32 = 20;
const SOON: Duration = Duration::from_micros(50);

/// It has not done what it was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Failed;

/// What a card answers.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Answers {
    Nothing = 0,
    /// 48 bits with a checksum and the command's number.
    Usual = 1 << 20 | 1 << 19 | 0b10 << 16,
    /// The same, and then it is busy.
    Busy = 1 << 20 | 1 << 19 | 0b11 << 16,
    /// 48 bits of its own.
    Bare = 0b10 << 16,
    /// 136 bits.
    Long = 1 << 19 | 0b01 << 16,
}

/// Blocks that follow a command.
pub(super) enum Blocks<'a> {
    None,
    In(&'a mut [u8]),
    Out(&'a [u8]),
}

pub(super) struct Host {
    registers: Registers,
}

/// In the end, or in a crash: a reset, after which it moves nothing.
fn quiet(registers: &Registers) {
    registers.write_u32(CLOCK, RESET_ALL);
}

impl Host {
    /// Takes the controller of the card slot.
    pub(super) fn open() -> Result<Self, DriverError> {
        let none = || DriverError::NoDevice("slot for a card");
        let found = device::find("brcm,bcm2711-emmc2").next().ok_or_else(none)?;
        let range = found.registers(0).filter(|range| range.len() >= 0x100).ok_or_else(none)?;
        // SAFETY: the tree says that the controller is there. It is never told to read or write memory.
        Ok(Self { registers: unsafe { Registers::claim(range, quiet)? } })
    }

    /// As after power-on, with a clock for cards that are not known yet.
    pub(super) async fn reset(&mut self) -> Result<(), Failed> {
        self.registers.write_u32(CLOCK, RESET_ALL);
        self.until(CLOCK, RESET_ALL, false).await?;
        self.registers.write_u32(HOST, POWER);
        self.registers.write_u32(SIGNALLED, 0);
        self.registers.write_u32(SEEN, ALL);
        self.set_clock(400).await?;
        // Power and clock are steady for a while before the first command.
        time::sleep(Duration::from_millis(2)).await;
        Ok(())
    }

    /// At most so many kilohertz for the card.
    pub(super) async fn set_clock(&mut self, kilohertz: u32) -> Result<(), Failed> {
        let base = match self.registers.read_u32(CAPABILITIES) >> 8 & 0xff {
            0 => MOST_MEGAHERTZ,
            megahertz => megahertz,
        };
        // Twice this divides it.
        let half = (base * 1000).div_ceil(2 * kilohertz).clamp(1, 0x3ff);
        let divisor = (half & 0xff) << 8 | (half >> 8) << 6;
        self.registers.write_u32(CLOCK, LONGEST);
        self.registers.write_u32(CLOCK, LONGEST | divisor | RUNS);
        self.until(CLOCK, IS_STABLE, true).await?;
        self.registers.write_u32(CLOCK, LONGEST | divisor | RUNS | CARD_HAS_IT);
        Ok(())
    }

    pub(super) fn use_four_lines(&mut self) {
        self.registers.write_u32(HOST, POWER | FOUR_LINES);
    }

    /// Gives a command, moves the blocks that follow it, and waits until all is done. The answer's words, the lowest first.
    pub(super) async fn command(
        &mut self,
        (number, argument): (u32, u32),
        answers: Answers,
        blocks: Blocks<'_>,
    ) -> Result<[u32; 4], Failed> {
        let result = self.try_command(number, argument, answers, blocks).await;
        if result.is_err() {
            self.registers.write_u32(CLOCK, self.registers.read_u32(CLOCK) | RESET_LINES);
            self.until(CLOCK, RESET_LINES, false).await?;
        }
        result
    }

    async fn try_command(
        &mut self,
        number: u32,
        argument: u32,
        answers: Answers,
        blocks: Blocks<'_>,
    ) -> Result<[u32; 4], Failed> {
        self.until(PRESENT, COMMAND_INHIBITED | DATA_INHIBITED, false).await?;
        self.registers.write_u32(HAPPENED, u32::MAX);
        // Counted; several are ended by a command that the controller gives itself; and which way.
        let (count, mode) = match &blocks {
            Blocks::None => (0, 0),
            Blocks::In(bytes) => (bytes.len() / SECTOR_BYTES, 1 << 21 | 1 << 4 | 1 << 1),
            Blocks::Out(bytes) => (bytes.len() / SECTOR_BYTES, 1 << 21 | 1 << 1),
        };
        let mode = if count > 1 { mode | 1 << 5 | 1 << 2 } else { mode };
        let is_busy = answers == Answers::Busy || count > 0;
        // Fewer than 65,536, by the caller.
        self.registers.write_u32(BLOCKS, (count as u32) << 16 | SECTOR_BYTES as u32);
        self.registers.write_u32(ARGUMENT, argument);
        self.registers.write_u32(COMMAND, number << 24 | answers as u32 | mode);
        self.happened(COMMAND_DONE).await?;
        let answer = [0, 4, 8, 12].map(|offset| self.registers.read_u32(ANSWER + offset));
        match blocks {
            Blocks::None => {}
            Blocks::In(bytes) => {
                for block in bytes.chunks_exact_mut(SECTOR_BYTES) {
                    self.happened(READ_READY).await?;
                    for word in block.chunks_exact_mut(4) {
                        word.copy_from_slice(&self.registers.read_u32(DATA).to_le_bytes());
                    }
                }
            }
            Blocks::Out(bytes) => {
                for block in bytes.chunks_exact(SECTOR_BYTES) {
                    self.happened(WRITE_READY).await?;
                    for word in block.as_chunks::<4>().0 {
                        self.registers.write_u32(DATA, u32::from_le_bytes(*word));
                    }
                }
            }
        }
        if is_busy {
            self.happened(DATA_DONE).await?;
        }
        Ok(answer)
    }

    /// Waits until that has happened, and takes note.
    async fn happened(&self, what: u32) -> Result<(), Failed> {
        self.until(HAPPENED, what | ERRORS, true).await?;
        let happened = self.registers.read_u32(HAPPENED);
        if happened & ERRORS != 0 {
            return Err(Failed);
        }
        self.registers.write_u32(HAPPENED, what);
        Ok(())
    }

    /// Waits until one of these bits is one, or all are zero.
    async fn until(&self, register: usize, bits: u32, is_one: bool) -> Result<(), Failed> {
        let is_so = || (self.registers.read_u32(register) & bits != 0) == is_one;
        if (0..LOOKS).any(|_| is_so()) {
            return Ok(());
        }
        let later = async {
            while !is_so() {
                time::sleep(SOON).await;
            }
        };
        time::timeout(PATIENCE, later).await.map_err(|_| Failed)
    }
}
