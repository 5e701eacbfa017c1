//! Idle actors, until all have started once; and what each costs in memory.

use alloc::boxed::Box;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use super::Go;
use crate::driver::drive;
use crate::failed::Failed;
use crate::stopwatch;

struct Begin;

/// A state of 16 bytes.
struct Idle {
    started: u64,
    number: u64,
}

impl Actor for Idle {}

impl Receive<Begin> for Idle {
    type Reply = ();

    fn receive(&mut self, _: Begin, _: &mut Context<Self>) {
        self.started += self.number;
        stopwatch::done();
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let count = parameters[0];
    // The list of addresses is the driver's, and gone when memory is looked at.
    let mut all: Vec<Addr<Idle>> = Vec::with_capacity(count as usize);
    let handle = handle.clone();
    Ok(Box::new(move || {
        let spawner = handle.clone();
        drive(&handle, move || {
            stopwatch::begin(count);
            for number in 0..count {
                if let Ok(idle) = spawner.spawn(Idle { started: 0, number }) {
                    let _ = idle.send(Begin);
                    all.push(idle);
                }
            }
        })?;
        Ok(count)
    }))
}
