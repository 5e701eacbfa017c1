//! Actors in a ring hand on a token that counts down.

use alloc::boxed::Box;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

struct Token(u64);
struct Next(Addr<Link>);

struct Link {
    next: Option<Addr<Link>>,
}

impl Actor for Link {}

impl Receive<Next> for Link {
    type Reply = ();

    fn receive(&mut self, Next(next): Next, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

impl Receive<Token> for Link {
    type Reply = ();

    fn receive(&mut self, Token(hops): Token, _: &mut Context<Self>) {
        if hops == 0 {
            stopwatch::done();
        } else if let Some(next) = self.next {
            let _ = next.send(Token(hops - 1));
        }
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (links, hops) = (parameters[0].max(1), parameters[1]);
    let first = handle.spawn(Link { next: None })?;
    let mut next = first;
    for _ in 1..links {
        next = handle.spawn(Link { next: Some(next) })?;
    }
    first.send(Next(next)).map_err(|_| Failed::Memory)?;
    Ok(Box::new(move || {
        stopwatch::begin(1);
        first.send(Token(hops)).map_err(|_| Failed::Memory)?;
        Ok(hops)
    }))
}
