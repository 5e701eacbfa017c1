//! A journal on a disk whose driver is killed: what was said to be appended is there. What happens when the power fails is tried on the host, at every write
//! (`drivers/src/journal/tests.rs`), and by ending QEMU.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::registry;
use magpie::sched::Spawn;
use magpie::supervise::{Backoff, Child, Supervisor};
use magpie::time;
use magpie_drivers::block::{self, Disk};
use magpie_drivers::journal::{Journal, JournalError};
use magpie_tests::{Failure, ensure, kernel_test};

const NAME: &str = "tests/journal";
const DISK: Disk = Disk::named(NAME);
/// The last that was said to be there.
static SAID: AtomicU64 = AtomicU64::new(0);
/// At the end of the disk, where no other test writes.
const RANGE: core::ops::Range<u64> = 7000..7040;

/// Opens it, as soon as there is a driver.
async fn open() -> Result<(Journal<Disk>, Vec<Vec<u8>>), JournalError> {
    loop {
        let mut entries = Vec::new();
        match Journal::open(DISK, RANGE, |entry| entries.push(entry.to_vec())).await {
            Ok(journal) => return Ok((journal, entries)),
            Err(JournalError::Disk(_)) => time::sleep(Duration::from_micros(200)).await,
            Err(error) => return Err(error),
        }
    }
}

kernel_test! {
    #[machine("virtio devices")]
    async fn what_was_appended_outlives_its_driver() -> Outcome {
        const KILLS: usize = 20;
        let started = Supervisor::one_for_one()
            .restarts(KILLS * 2, Duration::from_secs(3600))
            .backoff(Backoff::NONE)
            .child(Child::process("disk", |_| block::drive(NAME)).within(Duration::ZERO))
            .start()?;
        let kills = Spawn::new().start(async {
            for kill in 0..KILLS as u64 {
                // A few entries each, and then in the middle of any step of another.
                while SAID.load(Ordering::Relaxed) < kill * 3 {
                    time::sleep(Duration::from_micros(200)).await;
                }
                time::sleep(Duration::from_micros(kill * 97)).await;
                // It may be that there is none just now.
                let _ = registry::kill(NAME);
            }
        })?;
        let (mut said, mut lost) = (0_u64, 0_u64);
        while !kills.process().is_done() {
            let (mut journal, entries) = open().await.map_err(Failure::from)?;
            let last = entries.last().and_then(|entry| entry.first_chunk()).map_or(0, |last| u64::from_le_bytes(*last));
            // The one whose end nobody was told may be there, too.
            ensure!((said..=said + 1).contains(&last), "{said} was said to be there, {last} is");
            said = last;
            loop {
                let entry = (said + 1).to_le_bytes();
                let appended = match journal.append(&entry).await {
                    Err(JournalError::Full) => journal.begin_anew(&entry).await,
                    appended => appended,
                };
                match appended {
                    Ok(()) => said += 1,
                    Err(JournalError::Disk(_)) => break,
                    Err(error) => return Err(Failure::from(error)),
                }
                SAID.store(said, Ordering::Relaxed);
                if kills.process().is_done() {
                    break;
                }
            }
            lost += 1;
        }
        ensure!(said >= 3 * (KILLS as u64 - 1) && lost > 1, "{said} entries, opened {lost} times");
        kills.await?;
        started.stop().await?;
        Ok(())
    }
}
