//! Five philosophers share five forks. A fork is an actor, which answers who asks for it when it is free: it keeps the handles of those who wait.
//! A philosopher is a process, which awaits two forks and eats. Each takes the fork with the lower number first, so nobody
//! waits in a circle.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use magpie::actor::{Reply, Request};
use magpie::prelude::*;

magpie::entry!(philosophers);

const PHILOSOPHERS: usize = 5;
const MEALS: u32 = 200;

#[derive(Default)]
struct Fork {
    is_taken: bool,
    waiting: VecDeque<Reply<()>>,
}

impl Actor for Fork {}

struct Take;
struct PutDown;

impl Receive<Request<Take, ()>> for Fork {
    type Reply = ();

    fn receive(&mut self, request: Request<Take, ()>, _: &mut Context<Self>) {
        self.waiting.push_back(request.reply);
        self.hand_out();
    }
}

impl Receive<PutDown> for Fork {
    type Reply = ();

    fn receive(&mut self, _: PutDown, _: &mut Context<Self>) {
        self.is_taken = false;
        self.hand_out();
    }
}

impl Fork {
    fn hand_out(&mut self) {
        while !self.is_taken
            && let Some(next) = self.waiting.pop_front()
        {
            // Whoever does not wait any more does not get it.
            self.is_taken = next.send(()).is_ok();
        }
    }
}

/// What a philosopher does; how often they have eaten.
async fn philosophise(first: Addr<Fork>, second: Addr<Fork>) -> magpie::Result<u32> {
    let mut meals = 0;
    while meals < MEALS {
        first.ask(Take).await?;
        second.ask(Take).await?;
        meals += 1;
        second.send(PutDown)?;
        first.send(PutDown)?;
    }
    Ok(meals)
}

async fn philosophers() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let mut forks = Vec::new();
    for _ in 0..PHILOSOPHERS {
        forks.push(executor.handle().spawn(Fork::default())?);
    }
    let mut table = Vec::new();
    for seat in 0..PHILOSOPHERS {
        let (left, right) = (seat, (seat + 1) % PHILOSOPHERS);
        table.push(sched::spawn(philosophise(forks[left.min(right)], forks[left.max(right)]))?);
    }
    for (seat, philosopher) in table.into_iter().enumerate() {
        text!("philosopher {seat} has eaten {} times", philosopher.await??);
    }
    Ok(())
}
