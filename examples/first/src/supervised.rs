//! The fourth step of the guide: the actor is started anew when it has crashed.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

use core::time::Duration;
use magpie::prelude::*;

magpie::entry!(first);

/// Counts the coins in a box.
#[derive(Default)]
struct CashBox {
    coins: u32,
}

impl Actor for CashBox {
    fn started() -> Option<Hook<Self>> {
        Some(|_, context| {
            // Who does not get the name is not found under it.
            let _ = registry::register("cash box", context.address());
        })
    }
}

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

/// Whoever is the cash box, as soon as somebody is.
async fn cash_box() -> Addr<CashBox> {
    loop {
        match registry::find("cash box") {
            Ok(found) => return found,
            Err(_) => time::sleep(Duration::from_millis(1)).await,
        }
    }
}

async fn first() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let child = Child::actor("cash box", executor.handle(), CashBox::default);
    let supervisor = Supervisor::one_for_one().child(child).start()?;

    let first_life = cash_box().await;
    first_life.send(PutIn(7))?;
    if let Err(error) = first_life.ask(TakeOut(8)).await {
        text!("no answer: {error}");
    }

    let second_life = cash_box().await;
    second_life.send(PutIn(2))?;
    text!("{} in the box", second_life.ask(Count).await?);
    supervisor.stop().await?;
    Ok(())
}
