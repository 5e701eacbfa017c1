//! Counts the words of the file that the host hands over.
//!
//! The text is cut into chunks, which go to counters: actors that all begin in the mailboxes of one worker,
//! and spread because the others steal. When all chunks are counted each counter sends what it has to one
//! merger.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod count;

use alloc::vec::Vec;

use count::Count;
use magpie::ExitCode;
use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::log::text;
use magpie::{machine, sched};

magpie::entry!(wordcount);

/// Bytes of a chunk, about.
const CHUNK_BYTES: usize = 64 * 1024;
/// Counters; several for each mailbox of the worker they begin on.
const COUNTERS: usize = 32;

struct Chunk(&'static [u8]);
struct Finish(Addr<Merger>);

#[derive(Default)]
struct Counter(Count);

impl Actor for Counter {}

impl Receive<Chunk> for Counter {
    type Reply = ();

    fn receive(&mut self, Chunk(text): Chunk, _: &mut Context<Self>) {
        self.0.add(text);
    }
}

impl Receive<Finish> for Counter {
    type Reply = ();

    fn receive(&mut self, Finish(merger): Finish, context: &mut Context<Self>) {
        if merger.send(core::mem::take(&mut self.0)).is_err() {
            text!("error: the merger takes no more counts");
        }
        context.end();
    }
}

struct Merger {
    total: Count,
    missing: usize,
}

impl Actor for Merger {}

impl Receive<Count> for Merger {
    type Reply = ();

    fn receive(&mut self, count: Count, context: &mut Context<Self>) {
        self.total.merge(count);
        self.missing -= 1;
        if self.missing > 0 {
            return;
        }
        // Its state, with the total, is left to whoever takes it.
        context.retire();
    }
}

async fn wordcount() -> ExitCode {
    let Some(input) = machine::input() else {
        text!("error: there is no input; give one with --input FILE");
        return ExitCode::Failure;
    };
    match run(input).await {
        Ok(total) => {
            total.print();
            ExitCode::Success
        }
        Err(reason) => {
            text!("error: {reason}");
            ExitCode::Failure
        }
    }
}

async fn run(input: &'static [u8]) -> Result<Count, &'static str> {
    let executor =
        Executor::start(&Config::default()).map_err(|_| "the executor does not start: too little memory")?;
    let actors = executor.handle();
    let merger = Merger { total: Count::default(), missing: COUNTERS };
    let merger = actors.spawn(merger).map_err(|_| "no memory for the merger")?;
    let mut counters = Vec::new();
    for _ in 0..COUNTERS {
        counters
            .push(actors.spawn_on(CoreId::BOOT, Counter::default()).map_err(|_| "no memory for a counter")?);
    }
    for (index, chunk) in count::chunks(input, CHUNK_BYTES).enumerate() {
        counters[index % COUNTERS].send(Chunk(chunk)).map_err(|_| "no memory for a message")?;
    }
    for counter in &counters {
        counter.send(Finish(merger)).map_err(|_| "no memory for a message")?;
    }
    sched::out_of_work().await;
    let merged = merger.take();
    executor.stop().await;
    merged.map(|merger| merger.total).ok_or("a counter crashed, so the count is not complete")
}
