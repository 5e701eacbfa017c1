//! Defining, spawning, sending.

use super::Result;

use magpie::actor::{Actor, Config, Context, Executor, Outcome, Receive};
use magpie::actor::{Request, stop};

struct Counter {
    sum: u64,
}

impl Actor for Counter {}

struct Add(u64);
struct Read;

impl Receive<Add> for Counter {
    fn receive(&mut self, message: Add, _: &mut Context<Self>) -> Outcome {
        self.sum += message.0;
        Outcome::Continue
    }
}

impl Receive<Request<Read, u64>> for Counter {
    fn receive(&mut self, request: Request<Read, u64>, _: &mut Context<Self>) -> Outcome {
        // An error only says that nobody waits for the answer any more.
        let _ = request.reply.send(self.sum);
        Outcome::Continue
    }
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    let counter = executor.handle().spawn(Counter { sum: 0 })?;
    counter.send(Add(1))?.send(Add(2))?;

    assert_eq!(counter.ask(Read).await?, 3);

    counter.send(stop::Delete)?;
    executor.all_ended().await;
    let undelivered = executor.stop().await;
    assert_eq!(undelivered, 0);
    Ok(())
}
