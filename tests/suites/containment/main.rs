//! Containment: whatever a process or an actor does to itself, the kernel and everybody else go on.
//!
//! What is done wrong here is done in safe code alone: it is what an application can do by mistake. `memory` uses the
//! allocator as a collection does, and one test of `stacks` sets its stack pointer by hand, to have every value of it.
#![no_std]
#![no_main]

extern crate alloc;

mod alone;
mod by_name;
mod crashes;
mod ends;
mod futures;
mod intervals;
mod killing;
mod killing_actors;
mod limit_corners;
mod limits;
mod linking;
mod memory;
mod misdeeds;
mod mutex;
mod orphans;
mod points;
mod records;
mod refusals;
mod remains;
mod soundness;
mod stacks;
mod starved;
mod stopping;
mod supervising;
mod timers;
mod trees;
mod urgency;
mod wake_ups;
mod wakers;
mod watching;
mod ways;

use alloc::vec::Vec;
use core::hint::black_box;

use magpie::actor::{Actor, Addr, ExecutorHandle, NotSpawned, StaticActor};
use magpie::internals::mem::stack;
use magpie::internals::sched::reserves;
use magpie::{sched, time};
use magpie_tests::{Failure, Outcome};

magpie_tests::suite!();

/// What is written over memory that was given back: as a pointer or an index it is far from anything.
const OVERWRITTEN: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// Free stacks: those of the pool, and what cores have in reserve, which is one core's or another's.
fn free_stacks() -> u32 {
    stack::usage().1 + reserves()
}

/// Uses stacks and heap again that were given back, and leaves other things in them.
async fn use_memory_again() -> Outcome {
    let mut processes = Vec::new();
    for _ in 0..8 {
        let process = sched::spawn(async {
            let state = black_box([OVERWRITTEN; 64]);
            sched::yield_now().await;
            fill_stack(black_box(8));
            state[black_box(7)]
        });
        processes.push(process.map_err(not_started)?);
    }
    for process in processes {
        process.await?;
    }
    let blocks: Vec<Vec<u64>> = (1..128).map(|words| alloc::vec![OVERWRITTEN; words]).collect();
    drop(black_box(blocks));
    Ok(())
}

fn fill_stack(depth: u64) -> u64 {
    let frame = black_box([OVERWRITTEN; 128]);
    let below = if depth == 0 { 0 } else { fill_stack(depth - 1) };
    below ^ frame[black_box(depth as usize)]
}

fn not_started(error: sched::SpawnError) -> Failure {
    Failure(alloc::format!("a process was not started: {error}"))
}

/// Waits until an actor has crashed.
async fn crashed<A: Actor>(actor: Addr<A>) -> Outcome {
    let gone = async {
        while actor.is_alive() {
            sched::yield_now().await;
        }
    };
    time::background_timeout(magpie_tests::HANGS_AFTER, gone)
        .await
        .map_err(|_| Failure("an actor did not crash".into()))
}

/// An actor that has ended is not alive any more a moment before its storage is free: the core that ends it may be
/// a virtual one that the host has put aside in between.
async fn start_when_free<A: Actor>(
    storage: &'static StaticActor<A>,
    executor: &ExecutorHandle,
    mut actor: A,
) -> Result<Addr<A>, Failure> {
    let started = async {
        loop {
            match storage.start(executor, actor) {
                Err(NotSpawned::NotFree(back)) => actor = back,
                result => return result.map_err(Failure::from),
            }
            sched::yield_now().await;
        }
    };
    time::background_timeout(magpie_tests::HANGS_AFTER, started)
        .await
        .map_err(|_| Failure("the storage of one that crashed is not free".into()))?
}
