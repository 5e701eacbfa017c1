//! Mailboxes with a bound.

use super::Result;

use magpie::actor::{Actor, Bound, Config, Context, Executor, Receive, SendError, WhenFull};
use magpie::sched;

struct Clerk;

impl Actor for Clerk {}

impl Receive<u32> for Clerk {
    type Reply = ();

    fn receive(&mut self, _: u32, _: &mut Context<Self>) {}
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default().bound(Bound::new(100, WhenFull::Refuse)))?;
    let clerk = executor.handle().spawn(Clerk)?;
    let mut form = 0;
    while form < 1000 {
        match clerk.send(form) {
            Ok(_) => form += 1,
            Err(SendError::Full(_)) => sched::yield_now().await,
            Err(error) => return Err(error.into()),
        }
    }
    while form < 2000 {
        clerk.send_wait(form).await?;
        form += 1;
    }
    sched::out_of_work().await;
    executor.stop().await;
    alone().await
}

struct Display;

impl Actor for Display {}

impl Receive<u32> for Display {
    type Reply = ();

    fn receive(&mut self, _: u32, _: &mut Context<Self>) {}
}

async fn alone() -> Result {
    let executor = Executor::start(&Config::default().own_mailboxes(10))?;
    let display = executor.handle().spawn_bounded(Display, Bound::new(1, WhenFull::DropOldest))?;
    for reading in 0..1000 {
        display.send(reading)?;
    }
    sched::out_of_work().await;
    executor.stop().await;
    Ok(())
}
