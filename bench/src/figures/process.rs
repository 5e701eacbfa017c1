//! Plain processes that take many short turns: what the dispatch schemes differ in. Started on one core, as a tree of
//! them would be, or as many on every core, where nothing needs to move.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::black_box;
use magpie::actor::ExecutorHandle;
use magpie::arch::CoreId;
use magpie::machine;
use magpie::sched::{Spawn, yield_now};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

/// What a turn does besides. Out of line, so that a turn without keeps nothing on the stack for it.
#[inline(never)]
fn work(turn: u64, steps: u64) {
    for step in 0..steps {
        black_box(turn ^ step);
    }
}

async fn turns(turns: u64, steps: u64) {
    for turn in 0..turns {
        if steps > 0 {
            work(turn, steps);
        }
        yield_now().await;
    }
    stopwatch::done();
}

pub fn prepare_one(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    prepare(parameters, 1)
}

pub fn prepare_each(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    prepare(parameters, machine::cores())
}

fn prepare(parameters: &[u64], parents: usize) -> Result<Go, Failed> {
    let (count, each, steps) = (parameters[0], parameters[1], parameters[2]);
    Ok(Box::new(move || {
        let children = count / parents as u64;
        let total = children * parents as u64;
        stopwatch::begin(total);
        // A process begins on its parent's core.
        let parents: Result<Vec<_>, _> = (0..parents)
            .filter_map(CoreId::new)
            .map(|core| {
                Spawn::new().pinned(core).start(async move {
                    for _ in 0..children {
                        if Spawn::new().start(turns(each, steps)).is_err() {
                            return;
                        }
                    }
                })
            })
            .collect();
        // What is short of memory never ends the stopwatch, and so is reported.
        parents.map_err(|_| Failed::Memory)?;
        Ok(total * each)
    }))
}
