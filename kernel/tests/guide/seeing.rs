//! Groups, and what can be seen of actors.

use super::Result;

use magpie::actor::{Actor, ActorState, Config, Context, Executor, Receive, actors};
use magpie::group::{Group, Publish, Subscribe};

struct Display;

impl Actor for Display {}

#[derive(Clone)]
struct Temperature(u32);

impl Receive<Temperature> for Display {
    type Reply = ();

    fn receive(&mut self, Temperature(degrees): Temperature, context: &mut Context<Self>) {
        assert_eq!(degrees, 21);
        context.end();
    }
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    let handle = executor.handle();
    let display = handle.spawn(Display)?;

    let weather = handle.spawn(Group::<Temperature>::new())?;
    weather.ask(Subscribe(display.recipient())).await??;
    weather.send(Publish(Temperature(21)))?;

    for actor in actors().filter(|actor| actor.state == ActorState::Suspended || actor.waiting > 1000) {
        println!("{} in mailbox {}: {} wait", actor.type_name, actor.mailbox, actor.waiting);
    }
    while display.is_alive() {
        magpie::sched::yield_now().await;
    }
    executor.stop().await;
    Ok(())
}
