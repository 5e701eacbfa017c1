//! The smallest actor: it adds up what it is told, and says the sum.
#![cfg_attr(target_os = "none", no_std, no_main)]
use magpie::prelude::*;

magpie::entry!(application);

struct Counter(u64);
impl Actor for Counter {}

impl Receive<u64> for Counter {
    type Reply = u64;
    fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        self.0 += number;
        self.0
    }
}

async fn application() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let counter = executor.handle().spawn(Counter(0))?;
    counter.send(40)?;
    text!("the sum is {}", counter.ask(2).await?);
    Ok(())
}
