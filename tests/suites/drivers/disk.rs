//! A disk: what is written is read, by many at once, and whatever becomes of its driver.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::channel::AskError;
use magpie::internals::mem::heap::HEAP;
use magpie::mem::MemoryLimit;
use magpie::registry;
use magpie::sched::{JoinHandle, Spawn, yield_now};
use magpie::supervise::{Backoff, Child, Supervisor};
use magpie::time;
use magpie_drivers::DriverError;
use magpie_drivers::block::{self, Disk, DiskError, SECTOR_BYTES};
use magpie_tests::{Failure, amount, ensure, ensure_eq, kernel_test};

pub const DISK: Disk = Disk::named("tests/disk");

pub type Driver = JoinHandle<Result<core::convert::Infallible, DriverError>>;

/// Starts the driver, and waits until it serves.
pub async fn driver() -> Result<Driver, Failure> {
    let driver = Spawn::new().start(block::drive("tests/disk"))?;
    while DISK.sectors().await == Err(DiskError::NoDriver) {
        if driver.process().is_done() {
            return Err(alloc::format!("the disk is not driven: {:?}", driver.await).into());
        }
        yield_now().await;
    }
    Ok(driver)
}

/// Ends it, so that the next test finds the disk free.
pub async fn end(driver: Driver) {
    driver.process().kill();
    let _ = driver.await;
}

/// What belongs into a sector, in that round.
pub fn content(sector: u64, round: u8) -> Vec<u8> {
    (0..SECTOR_BYTES).map(|at| (sector as usize * 7 + at) as u8 ^ round).collect()
}

kernel_test! {
    /// What is written is read, whether it is one sector or many, and anything else is refused.
    #[machine("virtio devices")]
    async fn what_is_written_is_read() -> Outcome {
        let driver = driver().await?;
        let sectors = DISK.sectors().await.map_err(Failure::from)?;
        ensure_eq!(sectors, 8192, "sectors");
        for (at, count) in [(0, 1), (1, 8), (9, 9), (sectors - 100, 100)] {
            let bytes: Vec<u8> = (at..at + count).flat_map(|sector| content(sector, 3)).collect();
            DISK.write(at, bytes.clone()).await.map_err(Failure::from)?;
            DISK.flush().await.map_err(Failure::from)?;
            let read = DISK.read(at, bytes.len()).await.map_err(Failure::from)?;
            ensure!(read == bytes, "{count} sectors from {at} are not what was written");
        }
        ensure_eq!(DISK.read(5, 0).await, Ok(Vec::new()), "nothing");
        ensure_eq!(DISK.read(0, usize::MAX - 511).await, Err(DiskError::Outside), "more than any disk has");
        for (at, bytes) in [(0, 511), (sectors, 512), (sectors - 1, 1024), (u64::MAX, 512)] {
            ensure_eq!(DISK.read(at, bytes).await, Err(DiskError::Outside), "a read outside");
            ensure_eq!(DISK.write(at, vec![0; bytes]).await, Err(DiskError::Outside), "a write outside");
        }
        end(driver).await;
        ensure_eq!(DISK.read(0, 512).await, Err(DiskError::NoDriver), "a read without a driver");
        Ok(())
    }
}

kernel_test! {
    /// Who reads pays for what is read, and the driver for nothing: it may have a limit below that.
    #[machine("virtio devices")]
    async fn who_reads_pays() -> Outcome {
        const LONG: usize = 256 * 1024;
        let limit = MemoryLimit::new(LONG / 2)?;
        let driver = Spawn::new().memory(&limit).start(block::drive("tests/disk"))?;
        while DISK.sectors().await == Err(DiskError::NoDriver) {
            ensure!(!driver.process().is_done(), "the disk is not driven");
            yield_now().await;
        }
        ensure_eq!(DISK.read(0, LONG).await.map(|bytes| bytes.len()), Ok(LONG), "of one who may");
        let other = MemoryLimit::new(LONG / 2)?;
        let read = Spawn::new().memory(&other).start(async { DISK.read(0, LONG).await.map(drop) })?;
        ensure_eq!(read.await?, Err(DiskError::OutOfMemory), "of one who may not");
        ensure_eq!(DISK.read(0, LONG).await.map(|bytes| bytes.len()), Ok(LONG), "afterwards");
        end(driver).await;
        Ok(())
    }
}

kernel_test! {
    /// Many at once, each in sectors of its own.
    #[machine("virtio devices")]
    async fn many_at_once() -> Outcome {
        let driver = driver().await?;
        let mut all = Vec::new();
        for place in 0..24_u64 {
            all.push(Spawn::new().start(async move {
                for round in 0..10 {
                    let at = 200 + place * 20;
                    let bytes: Vec<u8> = (at..at + 20).flat_map(|sector| content(sector, round)).collect();
                    DISK.write(at, bytes.clone()).await?;
                    if DISK.read(at, bytes.len()).await? != bytes {
                        return Ok(false);
                    }
                }
                Ok::<_, DiskError>(true)
            })?);
        }
        for one in all {
            ensure!(one.await?.map_err(Failure::from)?, "one has read what it has not written");
        }
        end(driver).await;
        Ok(())
    }
}

kernel_test! {
    /// The driver is killed again and again while others read and write: who waits is told, a supervisor starts it anew, the next orders go well, and no memory
    /// is left behind.
    #[machine("virtio devices")]
    async fn a_killed_driver_is_started_anew() -> Outcome {
        const KILLS: usize = 30;
        let started = Supervisor::one_for_one()
            .restarts(KILLS * 2, Duration::from_secs(3600))
            .backoff(Backoff::NONE)
            .child(Child::process("disk", |_| block::drive("tests/disk")).within(Duration::ZERO))
            .start()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut users = Vec::new();
        for place in 0..4_u64 {
            let stop = stop.clone();
            users.push(Spawn::new().start(async move {
                let (mut done, mut told) = (0_u32, 0_u32);
                let at = 1000 + place * 40;
                while !stop.load(Ordering::Relaxed) {
                    let bytes: Vec<u8> = (at..at + 30).flat_map(|sector| content(sector, done as u8)).collect();
                    let written = DISK.write(at, bytes.clone()).await;
                    let read = DISK.read(at, bytes.len()).await;
                    match (written, read) {
                        (Ok(()), Ok(read)) if read == bytes => done += 1,
                        (Ok(()), Ok(_)) => return Err(DiskError::Failed),
                        (written, read) => {
                            let errors = [written.err(), read.err()];
                            if errors.iter().flatten().any(|error| *error != DiskError::NoDriver) {
                                return Err(DiskError::Failed);
                            }
                            told += 1;
                            time::sleep(Duration::from_micros(100)).await;
                        }
                    }
                }
                Ok((done, told))
            })?);
        }
        for _ in 0..KILLS {
            while DISK.sectors().await.is_err() {
                time::sleep(Duration::from_micros(100)).await;
            }
            time::sleep(Duration::from_micros(500)).await;
            // It may have ended just now.
            let _ = registry::kill("tests/disk");
        }
        while DISK.sectors().await.is_err() {
            time::sleep(Duration::from_micros(100)).await;
        }
        stop.store(true, Ordering::Relaxed);
        let (mut done, mut told) = (0, 0);
        for user in users {
            let (its, was) = user.await?.map_err(Failure::from)?;
            (done, told) = (done + its, told + was);
        }
        magpie::log::text!("{done} rounds were done, and {told} were told of a driver's end");
        ensure!(done > 0 && told > 0, "{done} done, {told} told");
        started.stop().await.map_err(|error: AskError| Failure::from(error))?;
        Ok(())
    }
}

kernel_test! {
    /// Drivers that are killed leave their memory to others: together they have more than there is.
    #[machine("virtio devices")]
    async fn what_killed_drivers_leave_is_used_again() -> Outcome {
        const LEFT: usize = 4 << 20;
        let mut taken: Vec<Vec<u8>> = Vec::new();
        taken.try_reserve_exact(64).map_err(Failure::from)?;
        for bytes in [8 << 20, 1 << 20] {
            while HEAP.usage().1 > LEFT + bytes && taken.len() < 64 {
                let mut some = Vec::new();
                if some.try_reserve_exact(bytes).is_err() {
                    break;
                }
                taken.push(some);
            }
        }
        for _ in 0..amount("drivers", 100) {
            let driver = driver().await?;
            DISK.read(0, 4096).await.map_err(Failure::from)?;
            end(driver).await;
        }
        ensure!(black_box(&taken).len() > 1, "no memory was used up");
        Ok(())
    }
}
