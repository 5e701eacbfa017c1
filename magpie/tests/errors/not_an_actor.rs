//! A state that is not declared an actor.
#![no_std]
#![no_main]
use magpie::prelude::*;

struct Counter(u64);

magpie::entry!(application);

async fn application() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    executor.handle().spawn(Counter(0))?;
    Ok(())
}
