//! A serial port that nobody has: found, claimed, set up, and waited for.

use core::time::Duration;

use magpie::device::{self, ClaimError, Device, Registers};
use magpie::interrupt::{self, Interrupt};
use magpie::{sched, time};

use super::{mini_uart, pl011};
use crate::DriverError;
use crate::pi::gpio::{Lent, Pull};

/// How often all are looked at again while another looks at them, too, which it claims to do so, or has just crashed.
const PATIENCE: usize = 100;
/// How often a port is looked at whose interrupt cannot be had.
const SOON: Duration = Duration::from_millis(1);

/// The ports of the Raspberry Pi 4 beside the console's, and the first of the two pins of each: that sends, and the next one receives (BCM2711 ARM Peripherals, 5.3).
const PI_PORTS: [(usize, u32); 4] = [(0xfe20_1400, 0), (0xfe20_1600, 4), (0xfe20_1800, 8), (0xfe20_1a00, 12)];
/// Their clock, as our `config.txt` asks for, and the mini UART's.
const PI_HERTZ: u32 = 48_000_000;
const PI_CORE_HERTZ: u32 = 500_000_000;
/// The clock of QEMU's `virt`.
const VIRT_HERTZ: u32 = 24_000_000;
const MINI_UART_NAME: &str = "brcm,bcm2835-aux-uart";
/// Which bit of the first register of what the mini UART is a part of lets it be reached.
const MINI_UART: u32 = 1;

/// What has come: a byte, or that one is garbled, or lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Come {
    Byte(u8),
    Garbled,
}

/// What a kind of ports is: what its registers are for.
pub struct Uart {
    /// Switches it on, at this clock and speed, with eight bits and queues; nothing is asked for.
    pub set_up: fn(&Registers, u32, u32) -> Result<(), DriverError>,
    /// What has come next.
    pub receive: fn(&Registers) -> Option<Come>,
    /// Sends a byte, if there is room for it.
    pub send: fn(&Registers, u8) -> bool,
    /// Asks for an interrupt when something has come, and for one when there is room again.
    pub ask: fn(&Registers, bool, bool),
    /// In the end, or in a crash.
    pub quiet: fn(&Registers),
}

/// A port that is this process's.
pub struct Port {
    registers: Registers,
    uart: &'static Uart,
    /// Where another has it the port is looked at now and then.
    interrupt: Option<Interrupt>,
    // Inputs again after the port is quiet.
    _pins: Option<[Lent; 2]>,
}

impl Port {
    /// The first that nobody has, at this speed: a PL011, or else the mini UART.
    pub async fn open(baud: u32) -> Result<Self, DriverError> {
        let kinds = [("arm,pl011", &pl011::UART), (MINI_UART_NAME, &mini_uart::UART)];
        for _ in 0..PATIENCE {
            let mut is_busy = false;
            for (name, uart) in kinds {
                for found in device::find(name) {
                    let Some(range) = found.registers(0) else { continue };
                    // SAFETY: the tree says that such a port is there, which reads and writes no memory.
                    match unsafe { Registers::claim(range, uart.quiet) } {
                        Ok(registers) => return Self::begin(&found, registers, uart, baud),
                        // The console.
                        Err(ClaimError::Kernels) => {}
                        Err(ClaimError::Taken) => is_busy = true,
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            if !is_busy {
                break;
            }
            sched::yield_now().await;
        }
        Err(DriverError::NoDevice("serial port beside the console's"))
    }

    fn begin(
        found: &Device<'_>,
        registers: Registers,
        uart: &'static Uart,
        baud: u32,
    ) -> Result<Self, DriverError> {
        let first_pin =
            PI_PORTS.iter().find(|(start, _)| *start == registers.range().start).map(|(_, pin)| *pin);
        let clock = match first_pin {
            Some(_) => PI_HERTZ,
            None if found.is_compatible(MINI_UART_NAME) => {
                reach_mini_uart()?;
                PI_CORE_HERTZ
            }
            None => VIRT_HERTZ,
        };
        (uart.set_up)(&registers, clock, baud)?;
        // Only then, so that the line rests while its pins become the port's.
        let pins = match first_pin {
            Some(pin) => Some([Lent::fifth(pin, Pull::None)?, Lent::fifth(pin + 1, Pull::Up)?]),
            None => None,
        };
        let interrupt = match found.line(0).map(Interrupt::claim) {
            Ok(Ok(interrupt)) => Some(interrupt),
            Ok(Err(interrupt::ClaimError::OutOfMemory)) => return Err(DriverError::OutOfMemory),
            // Another port's, too, or the tree does not say.
            Ok(Err(_)) | Err(_) => None,
        };
        Ok(Self { registers, uart, interrupt, _pins: pins })
    }

    /// What has come next.
    pub fn receive(&self) -> Option<Come> {
        (self.uart.receive)(&self.registers)
    }

    /// Sends a byte, if there is room for it.
    pub fn send(&self, byte: u8) -> bool {
        (self.uart.send)(&self.registers, byte)
    }

    /// Waits until something has come, or there is room, or perhaps. Who gives up waiting loses nothing.
    pub async fn wait(&mut self, what_comes: bool, room: bool) -> Result<(), DriverError> {
        let Some(interrupt) = &mut self.interrupt else {
            time::sleep(SOON).await;
            return Ok(());
        };
        (self.uart.ask)(&self.registers, what_comes, room);
        Ok(interrupt.wait().await?)
    }
}

/// Lets the mini UART be reached, which its other registers are not otherwise.
fn reach_mini_uart() -> Result<(), DriverError> {
    let none = DriverError::NoDevice("mini UART that can be reached");
    let Some(range) = device::find("brcm,bcm2835-aux").next().and_then(|found| found.registers(0)) else {
        return Err(none);
    };
    let enables = range.start..range.start + 8;
    // SAFETY: the registers that the tree says are there, which read and write no memory. Only the bit of this part is changed.
    let shared = unsafe { Registers::claim_part(enables, MINI_UART, |_| ())? };
    Ok(shared.update_u32(4, MINI_UART, MINI_UART)?)
}
