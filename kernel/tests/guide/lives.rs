//! Outcomes, stop messages, storage.

use super::Result;

use magpie::actor::{Actor, Config, Context, Executor, Receive, SendError, StaticActor, stop};
use magpie::sched;

struct Candle {
    hours: u32,
}

impl Actor for Candle {}

struct Burn;

impl Receive<Burn> for Candle {
    type Reply = ();

    fn receive(&mut self, _: Burn, context: &mut Context<Self>) {
        self.hours -= 1;
        if self.hours == 0 {
            context.end();
        }
    }
}

static ALTAR: StaticActor<Candle> = StaticActor::new();

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    let handle = executor.handle();

    let candle = handle.spawn(Candle { hours: 1 })?;
    candle.send(Burn)?;
    sched::out_of_work().await;
    match candle.send(Burn) {
        Err(SendError::Ended(Burn)) => {}
        _ => return Err("the candle burns on".into()),
    }

    let first = handle.spawn(Candle { hours: 5 })?;
    first.send(stop::Vacate)?;
    sched::out_of_work().await;
    let second = handle.respawn(first, Candle { hours: 7 })?;
    assert!(second.is_alive() && !first.is_alive());

    second.send(stop::Retire)?;
    sched::out_of_work().await;
    let stump = second.take().ok_or("it was taken already")?;
    assert_eq!(stump.hours, 7);

    let candle = ALTAR.start(handle, Candle { hours: 9 })?;
    candle.send(Burn)?.send(stop::Retire)?;
    sched::out_of_work().await;
    let stump = ALTAR.take().ok_or("it was taken already")?;
    assert_eq!(stump.hours, 8);

    executor.stop().await;
    Ok(())
}
