//! Two actors send one message to and fro.

use alloc::boxed::Box;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

struct Ball(u64);
struct Serve(Addr<Player>);

struct Player {
    other: Option<Addr<Player>>,
    /// Balls that come back before it is over; nothing for the one who only returns them.
    left: Option<u64>,
}

impl Actor for Player {}

impl Receive<Serve> for Player {
    type Reply = ();

    fn receive(&mut self, Serve(other): Serve, _: &mut Context<Self>) {
        self.other = Some(other);
        if self.left.is_some() {
            let _ = other.send(Ball(0));
        }
    }
}

impl Receive<Ball> for Player {
    type Reply = ();

    fn receive(&mut self, Ball(number): Ball, context: &mut Context<Self>) {
        if let Some(left) = &mut self.left {
            *left -= 1;
            if *left == 0 {
                stopwatch::done();
                return context.end();
            }
        }
        if let Some(other) = self.other {
            let _ = other.send(Ball(number + 1));
        }
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let trips = parameters[0];
    let ping = handle.spawn(Player { other: None, left: Some(trips) })?;
    let pong = handle.spawn(Player { other: None, left: None })?;
    pong.send(Serve(ping)).map_err(|_| Failed::Memory)?;
    Ok(Box::new(move || {
        stopwatch::begin(1);
        ping.send(Serve(pong)).map_err(|_| Failed::Memory)?;
        Ok(trips)
    }))
}
