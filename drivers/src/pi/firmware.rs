//! What the Raspberry Pi's firmware knows: temperature, clocks, which board it is, its memory. Asked by properties, through the VideoCore's mailbox, by one process that
//! others ask by message.
//!
//! The kernel asks it for one thing, during boot; afterwards the mailbox is this driver's. Only what changes nothing can be asked: other properties switch power off, or
//! run code of the caller's.

use core::cell::UnsafeCell;
use core::convert::Infallible;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use magpie::channel::{AskError, ProcessAddr, ProcessMailbox, Request};
use magpie::device::{self, DMA_PAGE_BYTES, DmaMemory, Registers};
use magpie::interrupt::Interrupt;
use magpie::{registry, time};

use crate::DriverError;

// Registers of the two mailboxes: answers are read from the one, requests written to the other.
const READ: usize = 0x00;
const READ_STATUS: usize = 0x18;
const READ_CONFIG: usize = 0x1c;
const WRITE: usize = 0x20;
const WRITE_STATUS: usize = 0x38;
const FULL: u32 = 1 << 31;
const EMPTY: u32 = 1 << 30;
/// An interrupt while there is an answer.
const INTERRUPT: u32 = 1;
/// The channel of properties, in the lowest bits of an address.
const PROPERTIES: u32 = 8;
/// Where the firmware sees memory, below 1 GiB, past its own cache.
const UNCACHED: u32 = 0xc000_0000;
const REACH: u64 = 1 << 30;

const REQUEST: u32 = 0;
const ANSWERED: u32 = 1 << 31;
/// What a request has room for. Each is somewhere else than the one before, so that a late answer to a driver that was killed meets no other.
const SLOT_BYTES: usize = 64;
const SLOTS: u32 = (DMA_PAGE_BYTES / SLOT_BYTES) as u32;
/// How long an answer may take: it comes within a millisecond.
const PATIENCE: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_micros(100);
const MOST_ORDERS: usize = 64;

/// Requests and their answers. In the image, because most of a board's memory is where the firmware does not reach.
#[repr(align(4096))]
struct Letters(UnsafeCell<[u8; DMA_PAGE_BYTES]>);

// SAFETY: touched by who has claimed the mailbox, through the kernel, and by nobody else.
unsafe impl Sync for Letters {}

static LETTERS: Letters = Letters(UnsafeCell::new([0; DMA_PAGE_BYTES]));
/// How many requests there have been. Relaxed: one at a time has the mailbox, and its claim orders them.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// A property: its tag, and the word that is asked with.
type Property = (u32, u32);
type Ordered = Request<Property, Result<[u32; 2], FirmwareError>>;

/// Why the firmware does not say something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FirmwareError {
    /// Nobody drives the mailbox: its driver has not begun, has ended, or is being started anew.
    NoDriver,
    /// The firmware does not know it.
    Unknown,
    /// There is no memory.
    OutOfMemory,
}

impl fmt::Display for FirmwareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDriver => {
                "nobody drives the firmware's mailbox: its driver was not started, has ended, or is being started anew"
            }
            Self::Unknown => "the firmware does not know it",
            Self::OutOfMemory => "out of memory: give the machine more, or start less",
        })
    }
}

impl core::error::Error for FirmwareError {}

impl From<AskError> for FirmwareError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::OutOfMemory | AskError::Full => Self::OutOfMemory,
            _ => Self::NoDriver,
        }
    }
}

/// A clock, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[non_exhaustive]
pub enum Clock {
    /// Of the cards that are not on the board's own slot.
    Emmc = 1,
    /// Of the serial port.
    Uart = 2,
    /// Of the cores.
    Arm = 3,
    /// Of the VideoCore and of what hangs on it.
    Core = 4,
    /// Of the card slot.
    Emmc2 = 12,
}

/// A range of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Its first address.
    pub start: u32,
    /// How many bytes.
    pub bytes: u32,
}

/// The firmware, by the name under which its mailbox is [driven](drive).
///
/// ```
/// use magpie_drivers::pi::firmware::{Clock, Firmware, FirmwareError};
///
/// async fn is_hot() -> Result<bool, FirmwareError> {
///     let firmware = Firmware::named("firmware");
///     Ok(firmware.temperature().await? > 80_000 && firmware.clock(Clock::Arm).await? > 600_000_000)
/// }
/// # let _ = is_hot();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Firmware {
    name: &'static str,
}

impl Firmware {
    /// The one that is driven under this name, now or later.
    pub const fn named(name: &'static str) -> Self {
        Self { name }
    }

    /// How warm the chip is, in thousandths of a degree Celsius.
    ///
    /// # Errors
    /// [`FirmwareError`]; so it is with all.
    pub async fn temperature(&self) -> Result<u32, FirmwareError> {
        Ok(self.ask(0x0003_0006, 0).await?[1])
    }

    /// The temperature, in the same unit, above which it makes the clocks slower.
    ///
    /// # Errors
    /// [`FirmwareError`].
    pub async fn most_temperature(&self) -> Result<u32, FirmwareError> {
        Ok(self.ask(0x0003_000a, 0).await?[1])
    }

    /// The rate of a clock in hertz, as it was set; 0 if there is no such clock.
    ///
    /// # Errors
    /// [`FirmwareError`].
    pub async fn clock(&self, clock: Clock) -> Result<u32, FirmwareError> {
        Ok(self.ask(0x0003_0002, clock as u32).await?[1])
    }

    /// Which board it is: the [revision code](https://www.raspberrypi.com/documentation/computers/raspberry-pi.html#raspberry-pi-revision-codes).
    ///
    /// # Errors
    /// [`FirmwareError`].
    pub async fn board_revision(&self) -> Result<u32, FirmwareError> {
        Ok(self.ask(0x0001_0002, 0).await?[0])
    }

    /// The board's serial number.
    ///
    /// # Errors
    /// [`FirmwareError`].
    pub async fn board_serial(&self) -> Result<u64, FirmwareError> {
        let [low, high] = self.ask(0x0001_0004, 0).await?;
        Ok(u64::from(low) | u64::from(high) << 32)
    }

    /// The first range of memory that the cores have.
    ///
    /// # Errors
    /// [`FirmwareError`].
    pub async fn memory(&self) -> Result<Memory, FirmwareError> {
        let [start, bytes] = self.ask(0x0001_0005, 0).await?;
        Ok(Memory { start, bytes })
    }

    /// The VideoCore's own memory.
    ///
    /// # Errors
    /// [`FirmwareError`].
    pub async fn video_memory(&self) -> Result<Memory, FirmwareError> {
        let [start, bytes] = self.ask(0x0001_0006, 0).await?;
        Ok(Memory { start, bytes })
    }

    async fn ask(&self, tag: u32, word: u32) -> Result<[u32; 2], FirmwareError> {
        let driver =
            registry::find::<ProcessAddr<Ordered>>(self.name).map_err(|_| FirmwareError::NoDriver)?;
        driver.ask((tag, word)).await?
    }
}

/// In the end, or in a crash. A request that is with the firmware is answered all the same, in the page that is the mailbox's.
fn quiet(registers: &Registers) {
    registers.write_u32(READ_CONFIG, 0);
}

/// Drives the mailbox, under this name: a [`Firmware`] of that name asks. It returns only if it cannot, or cannot any more; best a supervisor's child, which waits for no
/// time before it kills it.
///
/// ```
/// use core::time::Duration;
/// use magpie::supervise::{Child, StartError, Supervisor, SupervisorRef};
/// use magpie_drivers::pi::firmware;
///
/// fn start() -> Result<SupervisorRef, StartError> {
///     let child = Child::process("firmware", |_| firmware::drive("firmware")).within(Duration::ZERO);
///     Supervisor::one_for_one().child(child).start()
/// }
/// # let _ = start;
/// ```
///
/// # Errors
/// [`DriverError`].
pub async fn drive(name: &'static str) -> Result<Infallible, DriverError> {
    let mut mailbox = Mailbox::open()?;
    let mut orders = ProcessMailbox::new(MOST_ORDERS)?;
    // Kept, so that it has one although its name is taken away.
    let address = orders.address();
    registry::register(name, address.clone())?;
    loop {
        let Some(Request { message: property, reply }) = orders.receive().await else { continue };
        let answer = mailbox.ask(property).await?;
        // Who does not wait any more loses it.
        let _ = reply.send(answer.ok_or(FirmwareError::Unknown));
    }
}

struct Mailbox {
    // In this order: it is quiet before the page is not its any more.
    registers: Registers,
    interrupt: Interrupt,
    letters: DmaMemory,
}

impl Mailbox {
    fn open() -> Result<Self, DriverError> {
        let none = || DriverError::NoDevice("mailbox to a VideoCore");
        let found = device::find("brcm,bcm2835-mbox").next().ok_or_else(none)?;
        let range = found.registers(0).filter(|range| range.len() > WRITE_STATUS).ok_or_else(none)?;
        // SAFETY: the tree says that the mailbox is there. What the firmware is told to read and write is the page below, which is nobody else's.
        let registers = unsafe { Registers::claim(range, quiet)? };
        let interrupt = Interrupt::claim(found.line(0)?)?;
        let page = NonNull::new(LETTERS.0.get()).ok_or(DriverError::OutOfMemory)?;
        // SAFETY: the static is this driver's alone, and it has the mailbox.
        let letters = unsafe { DmaMemory::over(&registers, page, found.is_dma_coherent())? };
        if letters.address() >= REACH {
            return Err(DriverError::Faulty("the image is where the firmware does not reach"));
        }
        let mailbox = Self { registers, interrupt, letters };
        // What it still says to whoever had it before.
        mailbox.take();
        mailbox.registers.write_u32(READ_CONFIG, INTERRUPT);
        Ok(mailbox)
    }

    /// The last answer that is there. What comes on other channels, or is another's, is nobody's.
    fn take(&self) -> Option<u32> {
        let mut last = None;
        // As many as it holds; one that never ends would hold this up for ever.
        for _ in 0..SLOTS {
            if self.registers.read_u32(READ_STATUS) & EMPTY != 0 {
                break;
            }
            last = Some(self.registers.read_u32(READ));
        }
        last
    }

    /// Asks, and waits for the answer; `None` if the firmware does not know that property.
    async fn ask(&mut self, (tag, word): Property) -> Result<Option<[u32; 2]>, DriverError> {
        let slot = (ASKED.fetch_add(1, Ordering::Relaxed) % SLOTS) as usize * SLOT_BYTES;
        // Bytes in all, request, one property with room for two words, and the end of the list.
        let question = [8 * 4, REQUEST, tag, 2 * 4, 0, word, 0, 0];
        for (index, word) in question.into_iter().enumerate() {
            self.letters.write(slot + index * 4, &word.to_le_bytes());
        }
        self.letters.sync();
        // Below 1 GiB, which was looked at, so nothing is lost.
        let message = (self.letters.address() as u32 + slot as u32) | UNCACHED | PROPERTIES;
        let registers = &self.registers;
        let room = async {
            while registers.read_u32(WRITE_STATUS) & FULL != 0 {
                time::sleep(SOON).await;
            }
            registers.write_u32(WRITE, message);
        };
        let late = DriverError::Faulty("the firmware does not answer");
        time::timeout(PATIENCE, room).await.map_err(|_| late.clone())?;
        while self.take() != Some(message) {
            time::timeout(PATIENCE, self.interrupt.wait()).await.map_err(|_| late.clone())??;
        }
        self.letters.sync();
        let word = |index: usize| {
            let mut bytes = [0; 4];
            self.letters.read(slot + index * 4, &mut bytes);
            u32::from_le_bytes(bytes)
        };
        // The list was understood, and this property has an answer.
        let is_known = word(1) == ANSWERED && word(2) == tag && word(4) & ANSWERED != 0;
        Ok(is_known.then(|| [word(5), word(6)]))
    }
}
