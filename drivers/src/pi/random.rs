//! The Raspberry Pi 4's own source of random numbers (RNG200), by registers alone. **Not tried on a board**, and QEMU has none: what is tried is this driver, against a model of what Linux
//! expects of the device.
//!
//! It is a ring oscillator's noise with a test of its own (`NIST` in its status); what that test refuses is thrown away. It gives some megabits in a second. Who needs more seeds a
//! generator with it.

use core::time::Duration;

use magpie::device::{self, Registers};
use magpie::time;

use crate::DriverError;

// Registers, as Linux names them (`drivers/char/hw_random/iproc-rng200.c`).
const CONTROL: usize = 0x00;
const RESET: usize = 0x04;
const GENERATOR_RESET: usize = 0x08;
const STATUS: usize = 0x18;
const DATA: usize = 0x20;
const COUNT: usize = 0x24;
const BYTES: usize = 0x28;

/// The generator runs if any of these is one; the lowest is what makes it run.
const RUNS_BITS: u32 = 0x1fff;
const RUNS: u32 = 1;
/// Its own test has failed, or it has given up.
const IS_BAD: u32 = 1 << 5 | 1 << 31;
/// So many words are thrown away after a start: the first are less random, says the board's maker.
const FIRST_WORDS: u32 = 0x4_0000 / 32;
const WORDS: u32 = 0xff;

/// How often it is looked at whether there are any; for two seconds.
const SOON: Duration = Duration::from_micros(100);
const LOOKS: u32 = 20_000;
/// How many of its failures are borne by one call.
const MOST_FAILURES: u32 = 10;

/// What has such registers: the device, or a test's model of it.
trait Bank {
    fn read(&self, register: usize) -> u32;
    fn write(&self, register: usize, value: u32);
    async fn wait(&self);
}

impl Bank for Registers {
    fn read(&self, register: usize) -> u32 {
        self.read_u32(register)
    }

    fn write(&self, register: usize, value: u32) {
        self.write_u32(register, value);
    }

    async fn wait(&self) {
        time::sleep(SOON).await;
    }
}

/// In the end, or in a crash: it makes none any more.
fn quiet(registers: &Registers) {
    registers.write_u32(CONTROL, 0);
}

/// The source, which this process drives.
///
/// ```
/// use magpie_drivers::DriverError;
/// use magpie_drivers::pi::random::Source;
///
/// async fn seed() -> Result<[u8; 32], DriverError> {
///     let mut seed = [0; 32];
///     Source::open()?.fill(&mut seed).await?;
///     Ok(seed)
/// }
/// # assert!(Source::open().is_err(), "the host has none");
/// # let _ = seed;
/// ```
#[derive(Debug)]
pub struct Source {
    registers: Registers,
    /// How many words are to be thrown away.
    first: u32,
}

impl Source {
    /// Takes the source. It is this process's, and ends with it.
    ///
    /// # Errors
    /// There is none, or it is somebody else's.
    pub fn open() -> Result<Self, DriverError> {
        let none = || DriverError::NoDevice("source of random numbers of a BCM2711");
        let found = device::find("brcm,bcm2711-rng200").next().ok_or_else(none)?;
        let range = found.registers(0).filter(|range| range.len() >= BYTES).ok_or_else(none)?;
        // SAFETY: the tree says that the source is there, which reads and writes no memory.
        let registers = unsafe { Registers::claim(range, quiet)? };
        let first = begin(&registers);
        Ok(Self { registers, first })
    }

    /// Fills this with random bytes, and waits for them: a quarter of a second for the first.
    ///
    /// # Errors
    /// It makes none, or its own test fails again and again. What was filled until then is no use.
    pub async fn fill(&mut self, bytes: &mut [u8]) -> Result<(), DriverError> {
        fill(&self.registers, &mut self.first, bytes).await
    }
}

/// Starts it, whatever it did before. How many words are to be thrown away.
fn begin(bank: &impl Bank) -> u32 {
    let control = bank.read(CONTROL) & !RUNS_BITS;
    bank.write(CONTROL, control);
    bank.write(STATUS, u32::MAX);
    for (reset, value) in [(GENERATOR_RESET, 1), (RESET, 1), (RESET, 0), (GENERATOR_RESET, 0)] {
        bank.write(reset, value);
    }
    bank.write(CONTROL, control | RUNS);
    FIRST_WORDS
}

async fn fill(bank: &impl Bank, first: &mut u32, bytes: &mut [u8]) -> Result<(), DriverError> {
    let (mut failures, mut looks, mut done) = (0, 0, 0);
    // What has failed by the last word may be in it, so the end is looked at, too.
    while done < bytes.len() || bank.read(STATUS) & IS_BAD != 0 {
        if bank.read(STATUS) & IS_BAD != 0 {
            failures += 1;
            if failures > MOST_FAILURES {
                return Err(DriverError::Faulty("its numbers fail its own test"));
            }
            // All of this call, because nobody knows which of them are bad.
            done = 0;
            *first = begin(bank);
        } else if bank.read(COUNT) & WORDS == 0 {
            looks += 1;
            if looks > LOOKS {
                return Err(DriverError::Faulty("it makes no random numbers"));
            }
            bank.wait().await;
        } else {
            looks = 0;
            let word = bank.read(DATA).to_le_bytes();
            if *first > 0 {
                *first -= 1;
                continue;
            }
            let count = word.len().min(bytes.len() - done);
            bytes[done..done + count].copy_from_slice(&word[..count]);
            done += count;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::{
        Bank, CONTROL, COUNT, DATA, FIRST_WORDS, GENERATOR_RESET, RESET, RUNS_BITS, STATUS, begin, fill,
    };

    /// The device: makes sixteen words at a time while it runs and nobody resets it, and counts up in what it gives, from each start.
    #[derive(Default)]
    struct Model {
        control: Cell<u32>,
        resets: Cell<u32>,
        words: Cell<u32>,
        next: Cell<u32>,
        status: Cell<u32>,
        /// At this number its test fails; so often.
        fails_at: Cell<u32>,
        fails: Cell<u32>,
        is_dead: bool,
    }

    impl Bank for Model {
        fn read(&self, register: usize) -> u32 {
            match register {
                CONTROL => self.control.get(),
                STATUS => self.status.get(),
                COUNT => self.words.get() | 2 << 8,
                DATA => {
                    self.words.set(self.words.get().checked_sub(1).expect("a word that there is not"));
                    let next = self.next.get();
                    self.next.set(next + 1);
                    if next == self.fails_at.get() && self.fails.get() > 0 {
                        self.fails.set(self.fails.get() - 1);
                        self.status.set(if next.is_multiple_of(2) { 1 << 5 } else { 1 << 31 });
                    }
                    next
                }
                other => panic!("{other:#x} is not read"),
            }
        }

        fn write(&self, register: usize, value: u32) {
            match register {
                CONTROL => self.control.set(value),
                STATUS => self.status.set(self.status.get() & !value),
                RESET | GENERATOR_RESET => {
                    assert_eq!(self.control.get() & RUNS_BITS, 0, "a reset while it runs");
                    let own = if register == RESET { 1 } else { 2 };
                    self.resets.set((self.resets.get() & !own) | (own * value));
                    self.words.set(0);
                    self.next.set(0);
                }
                other => panic!("{other:#x} is not written"),
            }
        }

        async fn wait(&self) {
            let runs = self.control.get() & RUNS_BITS != 0 && self.resets.get() == 0 && !self.is_dead;
            if runs {
                self.words.set(16);
            }
        }
    }

    fn finish<T>(future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(ready) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return ready;
            }
        }
    }

    /// What is given after a start.
    fn words(count: u32) -> Vec<u8> {
        (FIRST_WORDS..FIRST_WORDS + count).flat_map(u32::to_le_bytes).collect()
    }

    fn failing(at: u32, times: u32) -> Model {
        Model { fails_at: Cell::new(FIRST_WORDS + at), fails: Cell::new(times), ..Model::default() }
    }

    #[test]
    fn the_first_are_thrown_away_and_each_is_given_once() {
        let model = failing(0, 0);
        let mut first = begin(&model);
        let (mut bytes, mut more) = ([0; 403], [0; 8]);
        finish(fill(&model, &mut first, &mut bytes)).unwrap();
        finish(fill(&model, &mut first, &mut more)).unwrap();
        let all = words(103);
        // The rest of a word is not given.
        assert_eq!((&bytes[..], &more[..]), (&all[..403], &all[404..]));
        assert_eq!(finish(fill(&model, &mut first, &mut [])), Ok(()));
    }

    #[test]
    fn what_fails_its_test_is_thrown_away() {
        // In the middle, several times; and at the last word, when nobody asks for another.
        for (at, times) in [(20, 3), (21, 10), (99, 1)] {
            let model = failing(at, times);
            let (mut first, mut bytes) = (begin(&model), [0; 400]);
            finish(fill(&model, &mut first, &mut bytes)).unwrap();
            assert_eq!((bytes[..] == words(100), model.fails.get()), (true, 0), "{times} times at {at}");
        }
        let always = failing(7, u32::MAX);
        let mut first = begin(&always);
        assert!(finish(fill(&always, &mut first, &mut [0; 400])).is_err());
    }

    #[test]
    fn one_that_makes_none_is_an_error() {
        let model = Model { is_dead: true, ..Model::default() };
        let mut first = begin(&model);
        assert!(finish(fill(&model, &mut first, &mut [0; 4])).is_err());
    }
}
