//! Each actor sends pings, one at a time, to pseudo-random others, which answer.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use super::Go;
use crate::driver::drive;
use crate::failed::Failed;
use crate::random::Random;
use crate::stopwatch;

struct Everybody(Arc<Vec<Addr<Player>>>);
struct Start;
struct Ping(Addr<Player>);
struct Pong;

struct Player {
    all: Arc<Vec<Addr<Player>>>,
    random: Random,
    left: u64,
}

impl Actor for Player {}

impl Player {
    fn ping(&mut self, own: Addr<Self>) {
        let other = self.random.below(self.all.len());
        let _ = self.all[other].send(Ping(own));
    }
}

impl Receive<Everybody> for Player {
    type Reply = ();

    fn receive(&mut self, Everybody(all): Everybody, _: &mut Context<Self>) {
        self.all = all;
    }
}

impl Receive<Start> for Player {
    type Reply = ();

    fn receive(&mut self, _: Start, context: &mut Context<Self>) {
        self.ping(context.address());
    }
}

impl Receive<Ping> for Player {
    type Reply = ();

    fn receive(&mut self, Ping(from): Ping, _: &mut Context<Self>) {
        let _ = from.send(Pong);
    }
}

impl Receive<Pong> for Player {
    type Reply = ();

    fn receive(&mut self, _: Pong, context: &mut Context<Self>) {
        self.left -= 1;
        if self.left == 0 {
            stopwatch::done();
            return;
        }
        self.ping(context.address());
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (count, pings) = (parameters[0].max(1), parameters[1]);
    let nobody = Arc::new(Vec::new());
    let mut all = Vec::new();
    for number in 1..=count as u32 {
        let random = Random::new(number.wrapping_mul(7919) + 1);
        all.push(handle.spawn(Player { all: nobody.clone(), random, left: pings })?);
    }
    let all = Arc::new(all);
    for player in all.iter() {
        player.send(Everybody(all.clone())).map_err(|_| Failed::Memory)?;
    }
    let handle = handle.clone();
    Ok(Box::new(move || {
        drive(&handle, move || {
            stopwatch::begin(count);
            for player in all.iter() {
                let _ = player.send(Start);
            }
        })?;
        Ok(2 * count * pings)
    }))
}
