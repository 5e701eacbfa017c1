//! A driver sends rounds of one message to each of some actors.

use alloc::boxed::Box;
use alloc::vec::Vec;
use magpie::actor::{Actor, Context, ExecutorHandle, Receive};

use super::Go;
use crate::driver::drive;
use crate::failed::Failed;
use crate::stopwatch;

struct Signal;

struct Counter {
    left: u64,
}

impl Actor for Counter {}

impl Receive<Signal> for Counter {
    type Reply = ();

    fn receive(&mut self, _: Signal, context: &mut Context<Self>) {
        self.left -= 1;
        if self.left == 0 {
            stopwatch::done();
            context.end();
        }
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (count, rounds) = (parameters[0], parameters[1]);
    let mut counters = Vec::new();
    for _ in 0..count {
        counters.push(handle.spawn(Counter { left: rounds })?);
    }
    let handle = handle.clone();
    Ok(Box::new(move || {
        drive(&handle, move || {
            stopwatch::begin(count);
            for _ in 0..rounds {
                for counter in &counters {
                    let _ = counter.send(Signal);
                }
            }
        })?;
        Ok(count * rounds)
    }))
}
