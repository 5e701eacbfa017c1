//! Defining, spawning, sending.

use super::Result;

use magpie::actor::{Actor, Config, Context, Executor, Receive, stop};

struct Counter {
    sum: u64,
}

impl Actor for Counter {}

struct Add(u64);
struct Read;

impl Receive<Add> for Counter {
    type Reply = ();

    fn receive(&mut self, message: Add, _: &mut Context<Self>) {
        self.sum += message.0;
    }
}

impl Receive<Read> for Counter {
    type Reply = u64;

    fn receive(&mut self, _: Read, _: &mut Context<Self>) -> u64 {
        self.sum
    }
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    let counter = executor.handle().spawn(Counter { sum: 0 })?;
    counter.send(Add(1))?.send(Add(2))?;

    assert_eq!(counter.ask(Read).await?, 3);

    counter.send(stop::End)?;
    executor.all_ended().await;
    let undelivered = executor.stop().await;
    assert_eq!(undelivered, 0);
    Ok(())
}
