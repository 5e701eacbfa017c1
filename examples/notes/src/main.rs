//! Files for exchange with other computers, on the Raspberry Pi 4's card or on a virtio disk: it lists what is there, says what stands in `HELLO.TXT`, and adds a line to
//! `NOTES/STARTS.TXT`.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::format;
use core::time::Duration;

use magpie::prelude::*;
use magpie_drivers::DriverError;
use magpie_drivers::block::{self, Disk};
use magpie_drivers::fat::{Fat, FatError};
use magpie_drivers::pi::sd;

magpie::entry!(notes);

const CARD: &str = "card";
const STARTS: &str = "NOTES/STARTS.TXT";

/// Whichever there is.
async fn drive() -> Result<(), DriverError> {
    match sd::drive(CARD).await {
        Err(DriverError::NoDevice("slot for a card")) => block::drive(CARD).await.map(drop),
        driven => driven.map(drop),
    }
}

async fn take_notes() -> Result<(), FatError> {
    let mut card = Fat::on(Disk::named(CARD));
    for entry in card.list("").await? {
        text!(
            "{}: {}",
            entry.name,
            if entry.is_folder { "a folder".into() } else { format!("{} bytes", entry.bytes) }
        );
    }
    match card.read("HELLO.TXT").await {
        Ok(bytes) => text!("hello says: {}", alloc::string::String::from_utf8_lossy(&bytes).trim_end()),
        Err(FatError::NotFound) => text!("there is no HELLO.TXT"),
        Err(error) => return Err(error),
    }
    match card.make_folder("NOTES").await {
        Ok(()) | Err(FatError::WrongKind) => {}
        Err(error) => return Err(error),
    }
    let before = match card.read(STARTS).await {
        Ok(bytes) => bytes.iter().filter(|byte| **byte == b'\n').count(),
        Err(FatError::NotFound) => 0,
        Err(error) => return Err(error),
    };
    card.append(STARTS, format!("start {}\n", before + 1).as_bytes()).await?;
    text!("started {before} times before");
    Ok(())
}

async fn notes() -> magpie::Result {
    let child =
        Child::process(CARD, |_| async { drive().await.inspect_err(|error| text!("the card: {error}")) });
    let driver = Supervisor::one_for_one().child(child.within(Duration::ZERO)).start()?;
    while Disk::named(CARD).sectors().await.is_err() {
        if driver.process().is_done() {
            return Err("there is no card: cargo xtask qemu notes --board rpi4 --card FILE".into());
        }
        time::sleep(Duration::from_millis(1)).await;
    }
    take_notes().await?;
    driver.stop().await?;
    Ok(())
}
