//! Many receivers, and actors that know each other.

use super::Result;
use std::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive, Recipient, Shared};
use magpie::sched;

static HEARD: AtomicU64 = AtomicU64::new(0);

struct Ear;
struct Wall;

impl Actor for Ear {}
impl Actor for Wall {}

impl Receive<u64> for Ear {
    type Reply = ();

    fn receive(&mut self, message: u64, _: &mut Context<Self>) {
        HEARD.fetch_add(message, Ordering::Relaxed);
    }
}

impl Receive<u64> for Wall {
    type Reply = ();

    fn receive(&mut self, _: u64, _: &mut Context<Self>) {}
}

impl Receive<Shared<Vec<u64>>> for Ear {
    type Reply = ();

    fn receive(&mut self, message: Shared<Vec<u64>>, _: &mut Context<Self>) {
        HEARD.fetch_add(message.iter().sum(), Ordering::Relaxed);
    }
}

struct Parent;

impl Actor for Parent {}

struct Raise(u64);

impl Receive<Raise> for Parent {
    type Reply = ();

    fn receive(&mut self, message: Raise, context: &mut Context<Self>) {
        match context.spawn(Ear) {
            Ok(child) if child.send(message.0).is_ok() => {}
            // There is no memory, or the executor stops.
            _ => context.end(),
        }
    }
}

pub async fn chapter() -> Result {
    let executor = Executor::start(&Config::default())?;
    let handle = executor.handle();
    let ears: Vec<Addr<Ear>> = vec![handle.spawn(Ear)?, handle.spawn(Ear)?];

    let all: [Recipient<u64>; 2] = [ears[0].recipient(), handle.spawn(Wall)?.recipient()];
    Recipient::send_to_all(&all, &5)?;

    let letter = Shared::new(vec![1, 2, 3])?;
    Addr::send_to_all(&ears, &letter)?;

    handle.spawn(Parent)?.send(Raise(100))?;
    sched::out_of_work().await;
    assert_eq!(HEARD.load(Ordering::Relaxed), 5 + 6 + 6 + 100);
    executor.stop().await;
    Ok(())
}
