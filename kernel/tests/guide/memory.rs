//! A limit for what an executor's actors have in use, and limits for one of them, among others or alone.

use super::Result;

use magpie::actor::{Actor, Bound, Config, Context, Executor, Limits, Receive, WhenFull};
use magpie::mem::MemoryLimit;
use magpie::sched::{CpuShare, Spawn};

struct Parser;

impl Actor for Parser {}

impl Receive<u32> for Parser {
    type Reply = u32;

    fn receive(&mut self, number: u32, _: &mut Context<Self>) -> u32 {
        number + 1
    }
}

pub async fn chapter() -> Result {
    let limit = MemoryLimit::new(4 << 20)?;
    let executor = Executor::start(&Config::default().memory(&limit))?;
    let clerk = Spawn::new().memory(&limit).start(async { /* shares it */ })?;
    println!("{} of {} bytes, {} at most", limit.used(), limit.bytes(), limit.most_used());
    clerk.await?;
    executor.stop().await;
    beside().await?;
    alone().await
}

async fn beside() -> Result {
    let executor = Executor::start(&Config::default())?;
    let limit = MemoryLimit::new(1 << 20)?;
    let parser = executor.handle().spawn_limited(Parser, Limits::new().memory(&limit))?;
    println!("{} bytes are in use", limit.used());
    assert_eq!(parser.ask(1).await?, 2);
    if let Some(seen) = parser.inspect() {
        println!("{:?} messages, {:?} reductions, {:?} old", seen.messages, seen.reductions, seen.age);
    }
    executor.stop().await;
    Ok(())
}

async fn alone() -> Result {
    let (limit, share) = (MemoryLimit::new(1 << 20)?, CpuShare::percent(20)?);
    let config = Config::default().workers(1).mailboxes(1).own_mailboxes(1);
    // What is started under a limit and in a share has both.
    let alone = share.start(Spawn::new().memory(&limit), async move { Executor::start(&config) })?.await??;
    let parser = alone.handle().spawn_bounded(Parser, Bound::new(100, WhenFull::Refuse))?;
    assert_eq!(parser.ask(1).await?, 2);
    alone.stop().await;
    Ok(())
}
