//! Pins: driven and read, refused, and what becomes of them in a crash.

use alloc::vec::Vec;
use core::cell::RefCell;

use critical_section::Mutex;
use embedded_hal::digital::{InputPin, OutputPin, PinState, StatefulOutputPin};
use magpie::arch::CoreId;
use magpie::device::{ClaimError, Registers};
use magpie::machine;
use magpie::sched::{JoinError, Spawn};
use magpie_boot::tree;
use magpie_drivers::DriverError;
use magpie_drivers::pi::gpio::{Input, LED, Output, Pull};
use magpie_tests::{Failure, amount, ensure, ensure_eq, kernel_test};

const TAKEN: DriverError = DriverError::Registers(ClaimError::Taken);
const REVOKED: DriverError = DriverError::Registers(ClaimError::Revoked);
const BYTES: usize = 0xf4;
/// No pin of the chip: whoever has this part disturbs none.
const NO_PIN: u32 = 1000;

fn start() -> Result<usize, Failure> {
    let pins = tree::find("brcm,bcm2711-gpio").next().and_then(|pins| pins.registers(0));
    Ok(pins.ok_or("the tree has no pins")?.start)
}

/// The registers, to be read.
fn registers() -> Result<Registers, Failure> {
    let start = start()?;
    // SAFETY: nothing is written.
    Ok(unsafe { Registers::claim_part(start..start + BYTES, NO_PIN, |_| ())? })
}

/// What the pin is for: 0 for an input, 1 for an output.
fn function(registers: &Registers, pin: u32) -> u32 {
    registers.read_u32(pin as usize / 10 * 4) >> (pin % 10 * 3) & 0b111
}

fn pull(registers: &Registers, pin: u32) -> u32 {
    registers.read_u32(0xe4 + pin as usize / 16 * 4) >> (pin % 16 * 2) & 0b11
}

/// The pins that can be had.
fn pins() -> impl Iterator<Item = u32> {
    (0..14).chain(16..28).chain([LED])
}

kernel_test! {
    /// Each pin alone goes up and down, and is an input afterwards.
    async fn pins_are_driven_and_read() -> Outcome {
        let registers = registers()?;
        let levels = || u64::from(registers.read_u32(0x34)) | u64::from(registers.read_u32(0x38)) << 32;
        for pin in pins() {
            let mut output = Output::claim(pin, PinState::Low).map_err(Failure::from)?;
            ensure_eq!((function(&registers, pin), output.is_set_low()), (1, Ok(true)), "pin {pin}");
            let others = levels() & !(1 << pin);
            for level in [true, true, false, false, true] {
                output.set_state(level.into()).map_err(Failure::from)?;
                ensure_eq!(output.is_set_high(), Ok(level), "pin {pin}, as it says itself");
                ensure_eq!(levels(), others | u64::from(level) << pin, "pin {pin}, and the others");
            }
            output.toggle().map_err(Failure::from)?;
            ensure_eq!(output.is_set_high(), Ok(false), "pin {pin}, toggled");
            drop(output);
            ensure_eq!(function(&registers, pin), 0, "pin {pin}, dropped");
            let bright = Output::claim(pin, PinState::High).map_err(Failure::from)?;
            ensure_eq!(levels(), others | 1 << pin, "pin {pin}, high from the beginning");
            drop(bright);
        }
        for (wanted, bits) in [(Pull::Up, 1), (Pull::Down, 2), (Pull::None, 0), (Pull::Up, 1)] {
            let mut input = Input::claim(17, wanted).map_err(Failure::from)?;
            ensure_eq!((function(&registers, 17), pull(&registers, 17)), (0, bits), "an input, {wanted:?}");
            ensure_eq!(input.is_high(), Ok(levels() >> 17 & 1 == 1), "what is read");
            drop(input);
            ensure_eq!(pull(&registers, 17), 0, "after {wanted:?}");
        }
        Ok(())
    }
}

kernel_test! {
    /// Not the serial port's, none that the board uses, none that there is not, none twice; not one beside the whole, nor the whole beside one.
    async fn pins_are_refused_for_a_reason() -> Outcome {
        for pin in (0..100).filter(|pin| pins().all(|other| other != *pin)).chain([u32::MAX]) {
            ensure_eq!(Output::claim(pin, PinState::Low).err(), Some(DriverError::NoPin(pin)), "an output");
            ensure_eq!(Input::claim(pin, Pull::Up).err(), Some(DriverError::NoPin(pin)), "an input");
        }
        let whole = start()?..start()? + BYTES;
        let led = Output::claim(LED, PinState::Low).map_err(Failure::from)?;
        ensure_eq!(Output::claim(LED, PinState::Low).err(), Some(TAKEN), "the same again");
        ensure_eq!(Input::claim(LED, Pull::None).err(), Some(TAKEN), "to read it");
        // SAFETY: nothing is written.
        let refused = unsafe { Registers::claim(whole.clone(), |_| ()) };
        ensure_eq!(refused.err(), Some(ClaimError::Taken), "the whole beside a pin");
        // SAFETY: nothing is written.
        let refused = unsafe { Registers::claim_part(whole.start..whole.end - 4, NO_PIN, |_| ()) };
        ensure_eq!(refused.err(), Some(ClaimError::Taken), "a part of something else");
        drop(led);
        // SAFETY: nothing is written.
        let all = unsafe { Registers::claim(whole, |_| ())? };
        ensure_eq!(Output::claim(LED, PinState::Low).err(), Some(TAKEN), "a pin beside the whole");
        drop(all);
        drop(Output::claim(LED, PinState::Low).map_err(Failure::from)?);
        Ok(())
    }
}

kernel_test! {
    /// Who crashes or is killed leaves inputs behind, at once; a pin that went to another is that one's only if it says so.
    async fn a_crash_lets_go_of_pins() -> Outcome {
        let registers = registers()?;
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            let crashes = Spawn::new().pinned(core).start(async {
                let all = [4, 5, LED].map(|pin| Output::claim(pin, PinState::High));
                assert!(!all.iter().all(Result::is_ok), "on purpose");
            })?;
            ensure_eq!(crashes.await, Err(JoinError::Crashed), "the owner");
            for pin in [4, 5, LED] {
                ensure_eq!(function(&registers, pin), 0, "pin {pin} after a crash");
                drop(Output::claim(pin, PinState::Low).map_err(Failure::from)?);
            }
            let mut kept = Output::claim(6, PinState::Low).map_err(Failure::from)?;
            let mut lost = Output::claim(7, PinState::Low).map_err(Failure::from)?;
            let takes = Spawn::new().start(async move {
                (kept.belong_to_caller(), Output::claim(8, PinState::High), kept)
            })?;
            let (said, gives, again) = takes.await?;
            kept = again;
            ensure_eq!(said, Ok(()), "a pin that went elsewhere");
            // Its owner has returned, which is no crash.
            gives.map_err(Failure::from)?.set_low().map_err(Failure::from)?;
            kept.set_high().map_err(Failure::from)?;
            let killed = Spawn::new().start(async move {
                let _own = lost.belong_to_caller();
                lost.set_high().ok();
                core::future::pending::<()>().await;
            })?;
            while function(&registers, 7) == 1 && registers.read_u32(0x34) >> 7 & 1 == 0 {
                magpie::sched::yield_now().await;
            }
            killed.process().kill();
            ensure!(killed.await.is_err(), "it was not killed");
            ensure_eq!(function(&registers, 7), 0, "a killed one's pin");
            drop(kept);
        }
        Ok(())
    }
}

kernel_test! {
    /// A handle that outlives its owner changes nothing any more, also when the pin has another owner.
    async fn a_handle_that_was_left_behind_is_revoked() -> Outcome {
        static LEFT: Mutex<RefCell<Option<Output>>> = Mutex::new(RefCell::new(None));
        let crashes = Spawn::new().start(async {
            let claimed = Output::claim(12, PinState::High).ok();
            let before = critical_section::with(|section| LEFT.borrow(section).replace(claimed));
            assert!(before.is_some(), "on purpose");
        })?;
        ensure_eq!(crashes.await, Err(JoinError::Crashed), "the owner");
        let left = critical_section::with(|section| LEFT.borrow(section).take());
        let mut left = left.ok_or("it was not claimed")?;
        ensure_eq!(left.set_high(), Err(REVOKED), "without an owner");
        let mut next = Output::claim(12, PinState::Low).map_err(Failure::from)?;
        ensure_eq!(left.set_high(), Err(REVOKED), "with another owner");
        ensure_eq!(left.belong_to_caller(), Err(REVOKED), "taken back");
        drop(left);
        ensure_eq!((next.is_set_low(), function(&registers()?, 12)), (Ok(true), 1), "the pin of the next");
        Ok(())
    }
}

kernel_test! {
    /// Pins that share registers are claimed and dropped on all cores at once: none loses what it was told because of another.
    async fn neighbours_do_not_disturb_each_other() -> Outcome {
        let rounds = amount("pins", 400);
        let mut all = Vec::new();
        for (index, pin) in pins().enumerate() {
            let core = CoreId::new(index % machine::cores()).ok_or("no such core")?;
            all.push(Spawn::new().pinned(core).start(async move {
                for round in 0..rounds {
                    let mut output = Output::claim(pin, PinState::from(round % 2 == 0))?;
                    let start = tree::find("brcm,bcm2711-gpio").next().and_then(|pins| pins.registers(0));
                    let start = start.map_or(0, |range| range.start);
                    // SAFETY: nothing is written.
                    let looks = unsafe { Registers::claim_part(start..start + BYTES, NO_PIN + pin, |_| ())? };
                    for _ in 0..3 {
                        magpie::sched::yield_now().await;
                        let found = (function(&looks, pin), output.is_set_high()?);
                        if found != (1, round % 2 == 0) {
                            return Ok(Some((pin, round, found)));
                        }
                    }
                    drop(output);
                    if function(&looks, pin) != 0 {
                        return Ok(Some((pin, round, (1, false))));
                    }
                }
                Ok::<_, DriverError>(None)
            })?);
        }
        for one in all {
            ensure_eq!(one.await?.map_err(Failure::from)?, None, "a pin that was changed by another's owner");
        }
        Ok(())
    }
}
