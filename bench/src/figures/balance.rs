//! Actors that all begin on one worker, or on every other one, and each send themselves messages with some
//! work in each: what stealing is for.

use alloc::boxed::Box;
use core::hint::black_box;
use magpie::actor::{Actor, Context, ExecutorHandle, Receive};
use magpie::arch::CoreId;

use super::Go;
use crate::busy::work;
use crate::driver::drive;
use crate::failed::Failed;
use crate::stopwatch;

struct Step;

struct Worker {
    left: u64,
    steps: u64,
}

impl Actor for Worker {}

impl Receive<Step> for Worker {
    type Reply = ();

    fn receive(&mut self, _: Step, context: &mut Context<Self>) {
        black_box(work(self.steps, self.left as u32));
        self.left -= 1;
        if self.left == 0 {
            stopwatch::done();
            return context.end();
        }
        let _ = context.address().send(Step);
    }
}

pub fn prepare_one(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    prepare(handle, parameters, 1)
}

/// On workers 0, 2, 4 and so on: the ideal with stealing is half the time.
pub fn prepare_multi(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let busy = handle.workers().div_ceil(2);
    prepare(handle, parameters, busy as u64)
}

fn prepare(handle: &ExecutorHandle, parameters: &[u64], busy: u64) -> Result<Go, Failed> {
    let (count, messages, steps) = (parameters[0], parameters[1], parameters[2]);
    let handle = handle.clone();
    Ok(Box::new(move || {
        let spawner = handle.clone();
        drive(&handle, move || {
            stopwatch::begin(count);
            for number in 0..count {
                let Some(core) = CoreId::new(2 * (number % busy) as usize) else { continue };
                if let Ok(actor) = spawner.spawn_on(core, Worker { left: messages, steps }) {
                    let _ = actor.send(Step);
                }
            }
        })?;
        Ok(count * messages)
    }))
}
