//! The third step of the guide: the actor crashes.
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
struct TakeOut(u32);
struct Count;

impl Receive<PutIn> for CashBox {
    type Reply = ();

    fn receive(&mut self, PutIn(coins): PutIn, _: &mut Context<Self>) {
        self.coins += coins;
    }
}

impl Receive<TakeOut> for CashBox {
    type Reply = ();

    fn receive(&mut self, TakeOut(coins): TakeOut, _: &mut Context<Self>) {
        self.coins = self.coins.checked_sub(coins).expect("nobody takes more than there is");
    }
}

impl Receive<Count> for CashBox {
    type Reply = u32;

    fn receive(&mut self, _: Count, _: &mut Context<Self>) -> u32 {
        self.coins
    }
}

async fn first() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let cash_box = executor.handle().spawn(CashBox::default())?;
    cash_box.send(PutIn(7))?;
    match cash_box.ask(TakeOut(8)).await {
        Ok(()) => text!("{} in the box", cash_box.ask(Count).await?),
        Err(error) => text!("no answer: {error}"),
    }
    text!("the program goes on; is the box alive? {}", cash_box.is_alive());
    Ok(())
}
