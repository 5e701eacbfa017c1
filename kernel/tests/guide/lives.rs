//! Outcomes, stop messages, storage.

use super::Result;

use magpie::actor::{Actor, Config, Context, Executor, Hook, Receive, SendError, StaticActor, stop};
use magpie::sched;

struct Candle {
    hours: u32,
    is_lit: bool,
}

impl Actor for Candle {
    fn started() -> Option<Hook<Self>> {
        Some(|candle, _| candle.is_lit = true)
    }

    fn stopped() -> Option<Hook<Self>> {
        Some(|candle, _| candle.is_lit = false)
    }
}

impl Candle {
    fn new(hours: u32) -> Self {
        Self { hours, is_lit: false }
    }
}

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

    let candle = handle.spawn(Candle::new(1))?;
    candle.send(Burn)?;
    sched::out_of_work().await;
    match candle.send(Burn) {
        Err(SendError::Ended(Burn)) => {}
        _ => return Err("the candle burns on".into()),
    }

    let first = handle.spawn(Candle::new(5))?;
    first.send(stop::Vacate)?;
    sched::out_of_work().await;
    let second = handle.respawn(first, Candle::new(7))?;
    assert!(second.is_alive() && !first.is_alive());

    second.send(stop::Retire)?;
    sched::out_of_work().await;
    let stump = second.take().ok_or("it was taken already")?;
    assert_eq!(stump.hours, 7);

    let candle = ALTAR.start(handle, Candle::new(9))?;
    candle.send(Burn)?.send(stop::Retire)?;
    sched::out_of_work().await;
    let stump = ALTAR.take().ok_or("it was taken already")?;
    assert!(stump.hours == 8 && !stump.is_lit);

    let candle = handle.spawn(Candle::new(1000))?;
    candle.kill()?;
    executor.all_ended().await;
    assert!(!candle.is_alive());

    executor.stop().await;
    Ok(())
}
