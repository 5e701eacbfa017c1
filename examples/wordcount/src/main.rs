//! Counts the words of the file that the host hands over.
//!
//! The text is cut into chunks, which go to counters: actors that all begin in the mailboxes of one worker,
//! and spread because the others steal. Each is then asked for what it has counted.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod count;

use alloc::vec::Vec;

use count::Count;
use magpie::prelude::*;

magpie::entry!(wordcount);

/// Bytes of a chunk, about.
const CHUNK_BYTES: usize = 64 * 1024;
/// Counters; several for each mailbox of the worker they begin on.
const COUNTERS: usize = 32;

struct Chunk(&'static [u8]);
struct Finish;

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
    type Reply = Count;

    fn receive(&mut self, Finish: Finish, context: &mut Context<Self>) -> Count {
        context.end();
        core::mem::take(&mut self.0)
    }
}

async fn wordcount() -> magpie::Result {
    let input = machine::input().ok_or("there is no input; give one with --input FILE")?;
    let executor = Executor::start(&Config::default())?;
    let actors = executor.handle();
    let mut counters = Vec::new();
    for _ in 0..COUNTERS {
        counters.push(actors.spawn_on(CoreId::BOOT, Counter::default())?);
    }
    for (index, chunk) in count::chunks(input, CHUNK_BYTES).enumerate() {
        counters[index % COUNTERS].send(Chunk(chunk))?;
    }
    // A counter handles its messages in order, so it has counted all of its chunks before it answers.
    let mut total = Count::default();
    for counter in counters {
        total.merge(counter.ask(Finish).await?);
    }
    executor.stop().await;
    total.print();
    Ok(())
}
