//! Drivers whose interrupts are lost, come twice, and come late: they go on.

use alloc::vec::Vec;
use core::time::Duration;

use magpie_drivers::misled::{Misled, mislead};
use magpie_tests::{Failure, amount, ensure, ensure_eq, kernel_test};

use crate::card::Carried;
use crate::disk::{self, DISK, content};

/// Back to what is usual, however a test ends.
struct Usual;

impl Drop for Usual {
    fn drop(&mut self) {
        mislead(0, 0, Duration::ZERO);
    }
}

fn since(before: Misled) -> Misled {
    let now = mislead(0, 0, Duration::ZERO);
    Misled {
        lost: now.lost - before.lost,
        doubled: now.doubled - before.doubled,
        late: now.late - before.late,
    }
}

/// Writes and reads, with more sectors than one request has.
async fn write_and_read(rounds: u64) -> Result<(), Failure> {
    for round in 0..rounds {
        let at = 3000 + 30 * round;
        let bytes: Vec<u8> = (at..at + 30).flat_map(|sector| content(sector, round as u8)).collect();
        DISK.write(at, bytes.clone()).await.map_err(Failure::from)?;
        DISK.flush().await.map_err(Failure::from)?;
        let read = DISK.read(at, bytes.len()).await.map_err(Failure::from)?;
        ensure!(read == bytes, "round {round}: what was read is not what was written");
    }
    Ok(())
}

kernel_test! {
    /// Each of the next interrupts is lost, and the disk, which nobody acknowledges, is silent: the driver looks by itself after a second.
    #[machine("virtio devices")]
    async fn a_disk_whose_interrupts_are_lost_goes_on() -> Outcome {
        let (driver, _usual) = (disk::driver().await?, Usual);
        let before = mislead(amount("lost", 3), 0, Duration::ZERO);
        write_and_read(4).await?;
        ensure_eq!(since(before).lost, amount("lost", 3), "lost interrupts");
        disk::end(driver).await;
        Ok(())
    }
}

kernel_test! {
    /// Interrupts that come twice, and late, so that others have done something before.
    #[machine("virtio devices")]
    async fn a_disk_whose_interrupts_are_doubled_and_late_goes_on() -> Outcome {
        let (driver, _usual) = (disk::driver().await?, Usual);
        let before = mislead(0, u64::MAX, Duration::from_millis(2));
        write_and_read(20).await?;
        let done = since(before);
        ensure!(done.doubled >= 20 && done.late >= 20, "{done:?}");
        disk::end(driver).await;
        Ok(())
    }
}

kernel_test! {
    /// The same of a network card, whose slots for what comes are always with it.
    #[machine("virtio devices")]
    async fn a_card_whose_interrupts_are_lost_goes_on() -> Outcome {
        let (carried, _usual) = (Carried::start().await?, Usual);
        let before = mislead(amount("lost", 3), 0, Duration::ZERO);
        for _ in 0..10 {
            carried.goes_and_comes().await?;
        }
        ensure_eq!(since(before).lost, amount("lost", 3), "lost interrupts");
        carried.end().await;
        Ok(())
    }
}

kernel_test! {
    #[machine("virtio devices")]
    async fn a_card_whose_interrupts_are_doubled_and_late_goes_on() -> Outcome {
        let (carried, _usual) = (Carried::start().await?, Usual);
        let before = mislead(0, u64::MAX, Duration::from_millis(2));
        for _ in 0..20 {
            carried.goes_and_comes().await?;
        }
        let done = since(before);
        ensure!(done.doubled >= 20 && done.late >= 20, "{done:?}");
        carried.end().await;
        Ok(())
    }
}
