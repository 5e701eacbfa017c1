//! A limit for what an executor's actors have in use.

use super::Result;

use magpie::actor::{Config, Executor};
use magpie::mem::MemoryLimit;
use magpie::sched::Spawn;

pub async fn chapter() -> Result {
    let limit = MemoryLimit::new(4 << 20)?;
    let executor = Executor::start(&Config::default().memory(&limit))?;
    let clerk = Spawn::new().memory(&limit).start(async { /* shares it */ })?;
    println!("{} of {} bytes, {} at most", limit.used(), limit.bytes(), limit.most_used());
    clerk.await?;
    executor.stop().await;
    Ok(())
}
