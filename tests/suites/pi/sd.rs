//! The card in the slot: what is written is read, whatever becomes of its driver.

use alloc::vec::Vec;
use core::convert::Infallible;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::registry;
use magpie::sched::{JoinHandle, Spawn, yield_now};
use magpie::supervise::{Backoff, Child, Supervisor};
use magpie::time;
use magpie_drivers::DriverError;
use magpie_drivers::block::{Disk, DiskError, SECTOR_BYTES};
use magpie_drivers::pi::sd;
use magpie_tests::{Failure, ensure, ensure_eq, kernel_test};

const NAME: &str = "tests/card";
const CARD: Disk = Disk::named(NAME);

/// Starts the driver, and waits until it serves.
async fn driver() -> Result<JoinHandle<Result<Infallible, DriverError>>, Failure> {
    let driver = Spawn::new().start(sd::drive(NAME))?;
    while CARD.sectors().await == Err(DiskError::NoDriver) {
        if driver.process().is_done() {
            return Err(alloc::format!("the card is not driven: {:?}", driver.await).into());
        }
        yield_now().await;
    }
    Ok(driver)
}

/// What belongs into so many sectors, in that round.
fn content(sector: u64, count: u64, round: u8) -> Vec<u8> {
    let sectors = sector..sector + count;
    sectors
        .flat_map(|sector| (0..SECTOR_BYTES).map(move |at| (sector as usize * 7 + at) as u8 ^ round))
        .collect()
}

kernel_test! {
    /// One sector and many, at both ends and in the middle; anything else is refused.
    async fn what_is_written_is_read() -> Outcome {
        let driver = driver().await?;
        let sectors = CARD.sectors().await.map_err(Failure::from)?;
        ensure_eq!(sectors, 8192, "sectors");
        for (at, count) in [(0, 1), (1, 2), (7, 127), (200, 128), (400, 129), (1000, 300), (sectors - 1, 1), (sectors - 200, 200)] {
            let bytes = content(at, count, 3);
            CARD.write(at, bytes.clone()).await.map_err(Failure::from)?;
            let read = CARD.read(at, bytes.len()).await.map_err(Failure::from)?;
            ensure!(read == bytes, "{count} sectors from {at} are not what was written");
        }
        let read = CARD.read(0, SECTOR_BYTES * 134).await.map_err(Failure::from)?;
        ensure!(read[..512] == content(0, 1, 3) && read[3584..] == content(7, 127, 3), "what was written before");
        ensure!(read[1536..3584].iter().all(|byte| *byte == 0), "what was never written");
        ensure_eq!(CARD.read(5, 0).await, Ok(Vec::new()), "nothing");
        for (at, bytes) in [(0, 511), (sectors, 512), (sectors - 1, 1024), (u64::MAX, 512)] {
            ensure_eq!(CARD.read(at, bytes).await, Err(DiskError::Outside), "a read outside");
            ensure_eq!(CARD.write(at, alloc::vec![0; bytes]).await, Err(DiskError::Outside), "a write outside");
        }
        CARD.flush().await.map_err(Failure::from)?;
        let second = Spawn::new().start(sd::drive("tests/second"))?.await?;
        ensure!(matches!(second, Err(DriverError::Registers(_))), "a second driver: {second:?}");
        driver.process().kill();
        let _ = driver.await;
        ensure_eq!(CARD.read(0, 512).await, Err(DiskError::NoDriver), "a read without a driver");
        Ok(())
    }
}

kernel_test! {
    /// The driver is killed again and again while others read and write: who waits is told, and the next driver begins anew with the card.
    async fn a_killed_driver_is_started_anew() -> Outcome {
        const KILLS: u64 = 15;
        static DONE: AtomicU64 = AtomicU64::new(0);
        let started = Supervisor::one_for_one()
            .restarts(KILLS as usize * 2, Duration::from_secs(3600))
            .backoff(Backoff::NONE)
            .child(Child::process("card", |_| sd::drive(NAME)).within(Duration::ZERO))
            .start()?;
        let mut users = Vec::new();
        let kills = Spawn::new().start(async {
            for kill in 0..KILLS {
                // A round of anybody's, and then in the middle of any step of another.
                while DONE.load(Ordering::Relaxed) <= kill {
                    time::sleep(Duration::from_micros(200)).await;
                }
                time::sleep(Duration::from_micros(kill * 997)).await;
                // It may have ended just now.
                let _ = registry::kill(NAME);
            }
        })?;
        for place in 0..3_u64 {
            let kills = kills.process().clone();
            users.push(Spawn::new().start(async move {
                let (mut done, mut told, at) = (0_u32, 0_u32, 3000 + place * 200);
                while !kills.is_done() {
                    let bytes = content(at, 150, done as u8);
                    let written = CARD.write(at, bytes.clone()).await;
                    let read = CARD.read(at, bytes.len()).await;
                    match (written, read) {
                        (Ok(()), Ok(read)) if read == bytes => {
                            done += 1;
                            DONE.fetch_add(1, Ordering::Relaxed);
                        }
                        (Err(DiskError::NoDriver), _) | (_, Err(DiskError::NoDriver)) => {
                            told += 1;
                            time::sleep(Duration::from_micros(100)).await;
                        }
                        (written, read) => return Err(alloc::format!("{written:?}, {:?}", read.err())),
                    }
                }
                Ok((done, told))
            })?);
        }
        let (mut done, mut told) = (0, 0);
        for user in users {
            let (its, was) = user.await?.map_err(Failure::from)?;
            (done, told) = (done + its, told + was);
        }
        magpie::log::text!("{done} rounds were done, and {told} were told of a driver's end");
        ensure!(done > 0 && told > 0, "{done} done, {told} told");
        kills.await?;
        started.stop().await?;
        Ok(())
    }
}
