//! To allocate a block and free it: by a process without a limit, beside others that have one, and under one.

use alloc::boxed::Box;
use core::hint::black_box;
use magpie::actor::ExecutorHandle;
use magpie::arch::CoreId;
use magpie::machine;
use magpie::mem::MemoryLimit;
use magpie::sched::Spawn;

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

/// Without any limit in the system.
pub fn prepare(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    measure(parameters, Spawn::new(), None)
}

/// Without a limit, while there is one.
pub fn prepare_beside(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let limit = MemoryLimit::new(1 << 20).map_err(|_| Failed::Memory)?;
    measure(parameters, Spawn::new(), Some(limit))
}

/// Under a limit, the same for all cores.
pub fn prepare_limited(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let limit = MemoryLimit::new(1 << 20).map_err(|_| Failed::Memory)?;
    measure(parameters, Spawn::new().memory(&limit), Some(limit))
}

/// One process on each core.
fn measure(parameters: &[u64], how: Spawn, limit: Option<MemoryLimit>) -> Result<Go, Failed> {
    let rounds = parameters[0];
    Ok(Box::new(move || {
        let cores = machine::cores();
        stopwatch::begin(cores as u64);
        for core in (0..cores).filter_map(CoreId::new) {
            let body = async move {
                for round in 0..rounds {
                    drop(black_box(Box::new([round; 10])));
                }
                stopwatch::done();
            };
            how.pinned(core).start(body).map_err(|_| Failed::Memory)?;
        }
        // It stays in force for whom it was given to.
        drop(limit);
        Ok(rounds * cores as u64)
    }))
}
