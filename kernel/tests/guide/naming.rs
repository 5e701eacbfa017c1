//! Names.

use super::Result;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive, stop};
use magpie::registry::{self, NotFound};
use magpie::sched;

struct Clock;

impl Actor for Clock {}

struct Tick;

impl Receive<Tick> for Clock {
    type Reply = ();

    fn receive(&mut self, _: Tick, _: &mut Context<Self>) {}
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    let clock = executor.handle().spawn(Clock)?;

    registry::register("clock", clock)?;
    registry::find::<Addr<Clock>>("clock")?.send(Tick)?;

    clock.send(stop::End)?;
    sched::out_of_work().await;
    assert_eq!(registry::find::<Addr<Clock>>("clock"), Err(NotFound::Nobody));

    executor.stop().await;
    Ok(())
}
