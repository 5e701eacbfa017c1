//! What it costs that crashes left something: all cores stand still until it is known who can reach what.

use alloc::boxed::Box;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};
use magpie::internals::mem::heap::HEAP;
use magpie::sched::{Spawn, yield_now};
use magpie::stats;

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

/// Blocks that one crash leaves behind, and how many crashes: more words than a collection waits for.
const BLOCKS: usize = 500;
const CRASHES: usize = 8;

struct Crash;

/// What crashes, and what it owns.
struct Victim {
    blocks: [Option<Box<u64>>; BLOCKS],
}

impl Actor for Victim {}

impl Receive<Crash> for Victim {
    type Reply = ();

    fn receive(&mut self, _: Crash, _: &mut Context<Self>) {
        panic!("on purpose, with {} blocks", self.blocks.len());
    }
}

/// The operation is a KiB in use. The parameter says how many there are to be besides the others, in blocks of 64 bytes with a list's
/// links and small numbers.
pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let mut list = List { next: None, _numbers: [0; 7] };
    for number in 0..parameters[0] * 1024 / 64 {
        list = List { next: Some(Box::new(list)), _numbers: [number; 7] };
    }
    let spawn = || {
        let blocks = core::array::from_fn(|number| Some(Box::new(number as u64)));
        handle.spawn(Victim { blocks }).map_err(|_| Failed::Memory)
    };
    let victims = (0..CRASHES).map(|_| spawn()).collect::<Result<Vec<Addr<Victim>>, _>>()?;
    Ok(Box::new(move || {
        let kib = HEAP.usage().0 as u64 / 1024;
        Spawn::new()
            .start(async move {
                let before = stats::collections().finished;
                stopwatch::begin(1);
                for victim in victims {
                    let _ = victim.send(Crash);
                }
                while stats::collections().finished == before {
                    yield_now().await;
                }
                stopwatch::done();
                list.free();
            })
            .map_err(|_| Failed::Memory)?;
        Ok(kib)
    }))
}

struct List {
    next: Option<Box<List>>,
    _numbers: [u64; 7],
}

impl List {
    /// Link by link: to drop it needs a stack as deep as it is long.
    fn free(mut self) {
        while let Some(mut next) = self.next.take() {
            self.next = next.next.take();
        }
    }
}
