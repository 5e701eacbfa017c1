//! The firmware's mailbox, as QEMU answers it: what it says, to many at once, and whatever becomes of its driver.

use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use magpie::registry;
use magpie::sched::{JoinHandle, Spawn, yield_now};
use magpie::supervise::{Backoff, Child, Supervisor};
use magpie::time;
use magpie_drivers::DriverError;
use magpie_drivers::pi::firmware::{self, Clock, Firmware, FirmwareError, Memory};
use magpie_tests::{Failure, amount, ensure, ensure_eq, kernel_test};

const NAME: &str = "tests/firmware";
const FIRMWARE: Firmware = Firmware::named(NAME);

/// Starts the driver, and waits until it serves.
async fn driver() -> Result<JoinHandle<Result<Infallible, DriverError>>, Failure> {
    let driver = Spawn::new().start(firmware::drive(NAME))?;
    while FIRMWARE.temperature().await == Err(FirmwareError::NoDriver) {
        if driver.process().is_done() {
            return Err(alloc::format!("it is not driven: {:?}", driver.await).into());
        }
        yield_now().await;
    }
    Ok(driver)
}

kernel_test! {
    /// What QEMU's firmware says of its board.
    async fn it_says_what_it_knows() -> Outcome {
        ensure_eq!(Firmware::named("tests/nobody").temperature().await, Err(FirmwareError::NoDriver), "no driver");
        let driver = driver().await?;
        ensure_eq!(FIRMWARE.temperature().await, Ok(25_000), "the temperature");
        ensure_eq!(FIRMWARE.most_temperature().await, Ok(99_000), "the most");
        ensure_eq!(FIRMWARE.board_revision().await, Ok(0x00b0_3115), "a Pi 4 with 2 GB");
        ensure_eq!(FIRMWARE.memory().await, Ok(Memory { start: 0, bytes: 0x3c00_0000 }), "memory");
        ensure_eq!(FIRMWARE.video_memory().await, Ok(Memory { start: 0x3c00_0000, bytes: 0x0400_0000 }), "the VideoCore's");
        ensure_eq!(FIRMWARE.clock(Clock::Uart).await, Ok(3_000_000), "the serial port's clock");
        ensure_eq!(FIRMWARE.clock(Clock::Emmc).await, Ok(50_000_000), "that of cards");
        ensure!(FIRMWARE.board_serial().await.is_ok(), "no serial number");
        let second = Spawn::new().start(firmware::drive("tests/second"))?.await?;
        ensure!(matches!(second, Err(DriverError::Registers(_))), "a second driver: {second:?}");
        driver.process().kill();
        let _ = driver.await;
        Ok(())
    }
}

kernel_test! {
    /// Many ask at once while the driver is killed again and again: each is answered what it has asked, or told.
    async fn answers_go_to_who_has_asked() -> Outcome {
        const KILLS: usize = 20;
        let started = Supervisor::one_for_one()
            .restarts(KILLS * 2, Duration::from_secs(3600))
            .backoff(Backoff::NONE)
            .child(Child::process("firmware", |_| firmware::drive(NAME)).within(Duration::ZERO))
            .start()?;
        let mut all = Vec::new();
        for place in 0..8_u32 {
            all.push(Spawn::new().start(async move {
                let (mut said, mut told) = (0_u32, 0_u32);
                while said < 100 {
                    let answer = match (place + said) % 4 {
                        0 => FIRMWARE.temperature().await.map(|found| found == 25_000),
                        1 => FIRMWARE.board_revision().await.map(|found| found == 0x00b0_3115),
                        2 => FIRMWARE.clock(Clock::Uart).await.map(|found| found == 3_000_000),
                        _ => FIRMWARE.memory().await.map(|found| found.bytes == 0x3c00_0000),
                    };
                    match answer {
                        Ok(true) => said += 1,
                        Ok(false) => return Err(FirmwareError::Unknown),
                        Err(FirmwareError::NoDriver) => {
                            told += 1;
                            time::sleep(Duration::from_micros(100)).await;
                        }
                        Err(error) => return Err(error),
                    }
                }
                Ok(told)
            })?);
        }
        for kill in 0..amount("kills", KILLS as u64) {
            while FIRMWARE.board_revision().await.is_err() {
                time::sleep(Duration::from_micros(100)).await;
            }
            time::sleep(Duration::from_micros(kill * 37 % 500)).await;
            // It may have ended just now.
            let _ = registry::kill(NAME);
        }
        let mut told = 0;
        for one in all {
            told += one.await?.map_err(Failure::from)?;
        }
        magpie::log::text!("{told} were told of a driver's end");
        started.stop().await?;
        Ok(())
    }
}
