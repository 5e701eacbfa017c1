//! The first step of the guide: an actor, and messages to it.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

use magpie::prelude::*;

magpie::entry!(first);

/// Counts the coins in a box.
#[derive(Default)]
struct CashBox {
    coins: u32,
}

impl Actor for CashBox {}

/// So many coins.
struct PutIn(u32);

impl Receive<PutIn> for CashBox {
    type Reply = ();

    fn receive(&mut self, PutIn(coins): PutIn, _: &mut Context<Self>) {
        self.coins += coins;
        text!("{coins} more, {} in the box", self.coins);
    }
}

async fn first() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let cash_box = executor.handle().spawn(CashBox::default())?;
    cash_box.send(PutIn(3))?;
    cash_box.send(PutIn(4))?;
    sched::out_of_work().await;
    Ok(())
}
