//! A message for which the actor has no behaviour: told, and asked.
#![no_std]
#![no_main]
use magpie::prelude::*;

struct Deaf;
impl Actor for Deaf {}

magpie::entry!(application);

async fn application() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let deaf = executor.handle().spawn(Deaf)?;
    deaf.send(1_u32)?;
    deaf.ask("how are you?").await?;
    Ok(())
}
