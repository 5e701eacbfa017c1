//! Keeps its state on a disk: how often it was started, and the last number that it has counted to. Whenever it is ended, by a power loss, too, the next start goes on
//! from the last number that it said lasts. The boot argument `entries=N` says how far it counts.
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::time::Duration;

use magpie::prelude::*;
use magpie_drivers::block::{self, Disk, DiskError};
use magpie_drivers::journal::{Journal, JournalError};

magpie::entry!(journal);

const DISK: Disk = Disk::named("disk");

/// What is kept.
#[derive(Default)]
struct State {
    starts: u64,
    last: u64,
}

impl State {
    fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.starts.to_le_bytes());
        bytes[8..].copy_from_slice(&self.last.to_le_bytes());
        bytes
    }

    /// Each entry has all of it, so the last one counts.
    fn take(&mut self, entry: &[u8]) {
        let Some((starts, last)) = entry.split_first_chunk() else { return };
        let Some(last) = last.first_chunk() else { return };
        *self = Self { starts: u64::from_le_bytes(*starts), last: u64::from_le_bytes(*last) };
    }

    /// Waits until it lasts.
    async fn keep(&self, journal: &mut Journal<Disk>) -> Result<(), JournalError> {
        match journal.append(&self.bytes()).await {
            Err(JournalError::Full) => journal.begin_anew(&self.bytes()).await,
            appended => appended,
        }
    }
}

/// The disk's driver, which is started anew if it crashes. Returns when it serves, or says why it does not.
async fn start_driver() -> magpie::Result {
    let disk = Child::process("disk", |_| async {
        block::drive("disk").await.inspect_err(|error| text!("the disk: {error}"))
    });
    let driver = Supervisor::one_for_one().child(disk.within(Duration::ZERO)).start()?;
    while DISK.sectors().await == Err(DiskError::NoDriver) {
        if driver.process().is_done() {
            return Err("there is no disk: cargo xtask qemu journal --disk FILE".into());
        }
        time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

async fn journal() -> magpie::Result {
    start_driver().await?;
    let mut state = State::default();
    let mut kept = Journal::open(DISK, 0..64, |entry| state.take(entry)).await?;
    text!("started {} times before, counted to {}", state.starts, state.last);
    state.starts += 1;
    let entries = machine::argument("entries").and_then(|text| text.parse().ok()).unwrap_or(5);
    for _ in 0..entries {
        state.last += 1;
        state.keep(&mut kept).await?;
        text!("{} lasts", state.last);
    }
    Ok(())
}
