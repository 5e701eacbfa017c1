//! The I2C bus, with what QEMU hangs on it for this suite: a thermometer, and a memory of 256 bytes.

use core::time::Duration;

use embedded_hal::i2c::{I2c as Blocking, Operation};
use embedded_hal_async::i2c::I2c as Waiting;
use lm75::{Address, Lm75};
use magpie::device::ClaimError;
use magpie::sched::{JoinError, Spawn};
use magpie::time;
use magpie_drivers::DriverError;
use magpie_drivers::pi::gpio::{Input, Pull};
use magpie_drivers::pi::i2c::{I2c, I2cError};
use magpie_tests::{Failure, ensure, ensure_eq, kernel_test};

const THERMOMETER: u8 = 0x48;
const MEMORY: u8 = 0x50;
const NOBODY: u8 = 0x23;
const TAKEN: DriverError = DriverError::Registers(ClaimError::Taken);

fn open() -> Result<I2c, Failure> {
    I2c::open().map_err(Failure::from)
}

kernel_test! {
    /// A driver that somebody else wrote, for the blocking trait: what it sets is what the thermometer has.
    async fn a_driver_of_others_works() -> Outcome {
        let mut thermometer = Lm75::new(open()?, Address::default());
        ensure_eq!(thermometer.read_temperature().ok(), Some(0.0), "QEMU's temperature");
        ensure!(thermometer.set_os_temperature(61.5).is_ok(), "a limit is not taken");
        let mut bus = thermometer.destroy();
        let mut limit = [0; 2];
        Blocking::write_read(&mut bus, THERMOMETER, &[3], &mut limit).map_err(Failure::from)?;
        ensure_eq!(limit, [61, 0x80], "the limit");
        Ok(())
    }
}

kernel_test! {
    /// Both kinds of traits write and read the memory, by all that a transaction may be; what it may not be, and who is not there, is an error, and then it goes on.
    async fn what_is_written_is_read() -> Outcome {
        let mut bus = open()?;
        for round in 0..20_u8 {
            let bytes: [u8; 9] = core::array::from_fn(|at| if at == 0 { 16 } else { at as u8 ^ round });
            Waiting::write(&mut bus, MEMORY, &bytes).await.map_err(Failure::from)?;
            let mut read = [0; 8];
            Waiting::write_read(&mut bus, MEMORY, &[16], &mut read).await.map_err(Failure::from)?;
            ensure_eq!(read, bytes[1..], "what waits");
            // It goes on where it was.
            Blocking::write(&mut bus, MEMORY, &[17]).map_err(Failure::from)?;
            let (mut one, mut three) = ([0; 1], [0; 3]);
            let operations = &mut [Operation::Read(&mut one), Operation::Read(&mut three)];
            Blocking::transaction(&mut bus, MEMORY, operations).map_err(Failure::from)?;
            ensure_eq!((&one[..], &three[..]), (&bytes[2..3], &bytes[3..6]), "what blocks");
            ensure_eq!(Blocking::read(&mut bus, NOBODY, &mut one), Err(I2cError::NotAcknowledged), "a read from nobody");
            ensure_eq!(Waiting::write(&mut bus, NOBODY, &[1]).await, Err(I2cError::NotAcknowledged), "a write to nobody");
            let nobody = Waiting::write_read(&mut bus, NOBODY, &[1], &mut one).await;
            ensure_eq!(nobody, Err(I2cError::NotAcknowledged), "both");
            let reversed = &mut [Operation::Read(&mut one), Operation::Write(&[1])];
            ensure_eq!(Blocking::transaction(&mut bus, MEMORY, reversed), Err(I2cError::Unsupported), "reversed");
        }
        let mut all = [0; 256];
        Waiting::write_read(&mut bus, MEMORY, &[0], &mut all).await.map_err(Failure::from)?;
        let mut again = [0; 256];
        Blocking::write_read(&mut bus, MEMORY, &[0], &mut again).map_err(Failure::from)?;
        ensure!(all == again, "the whole memory differs");
        Ok(())
    }
}

kernel_test! {
    /// One has the bus and its pins; who crashes lets go of them; who gives up in the middle leaves the bus to the next transaction.
    async fn one_at_a_time_has_it() -> Outcome {
        for _ in 0..10 {
            let bus = open()?;
            ensure_eq!(I2c::open().err(), Some(TAKEN), "a second time");
            ensure_eq!(Input::claim(2, Pull::None).err(), Some(TAKEN), "its pin");
            drop(bus);
            drop(Input::claim(2, Pull::None).map_err(Failure::from)?);
            let crashes = Spawn::new().start(async {
                let bus = I2c::open();
                assert!(bus.is_err(), "on purpose");
            })?;
            ensure_eq!(crashes.await, Err(JoinError::Crashed), "its owner");
            let pin = Input::claim(3, Pull::None).map_err(Failure::from)?;
            ensure_eq!(I2c::open().err(), Some(TAKEN), "without its pin");
            drop(pin);
            let mut bus = open()?;
            let mut bytes = [0; 200];
            let reads = Waiting::read(&mut bus, MEMORY, &mut bytes);
            // Whether it was ready by then is chance.
            let _ = time::timeout(Duration::from_micros(1), reads).await;
            let mut one = [0; 1];
            Waiting::write_read(&mut bus, MEMORY, &[0], &mut one).await.map_err(Failure::from)?;
        }
        Ok(())
    }
}
