//! A process that keeps, while it waits, what cannot change cores.
#![no_std]
#![no_main]
extern crate alloc;

use alloc::rc::Rc;
use magpie::prelude::*;

magpie::entry!(application);

async fn application() -> magpie::Result {
    let process = sched::spawn(async {
        let count = Rc::new(1);
        sched::yield_now().await;
        drop(count);
    })?;
    Ok(process.await?)
}
