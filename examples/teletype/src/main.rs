//! Says in capitals what it hears at a virtio console. A line `end` ends it.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::string::ToString;
use alloc::vec::Vec;

use magpie::prelude::*;
use magpie_drivers::DriverError;
use magpie_drivers::console::Console;

magpie::entry!(teletype);

async fn teletype() -> magpie::Result {
    let mut console = Console::open().await.map_err(|error| match error {
        DriverError::NoDevice(_) => {
            "there is no virtio console: cargo xtask qemu teletype --console 7000".into()
        }
        error => error.to_string(),
    })?;
    text!("listening");
    let (mut bytes, mut last, mut heard) = ([0; 256], Vec::new(), 0_u64);
    loop {
        let count = console.read(&mut bytes).await?;
        let come = &mut bytes[..count];
        heard += count as u64;
        last.extend_from_slice(come);
        if last.ends_with(b"end\n") {
            text!("{heard} bytes");
            return Ok(());
        }
        // A line's end is all that matters.
        last.drain(..last.len().saturating_sub(4));
        come.make_ascii_uppercase();
        console.write_all(come).await?;
    }
}
