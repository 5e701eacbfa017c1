//! Producers send to one sink, each with a window of messages, then an acknowledgement.

use alloc::boxed::Box;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use super::{Go, WINDOW};
use crate::driver::drive;
use crate::failed::Failed;
use crate::stopwatch;

/// From whom, in the last message of a window.
struct Item(Option<Addr<Producer>>);
struct Window;

struct Sink {
    left: u64,
}

impl Actor for Sink {}

impl Receive<Item> for Sink {
    type Reply = ();

    fn receive(&mut self, Item(from): Item, context: &mut Context<Self>) {
        if let Some(from) = from {
            let _ = from.send(Window);
        }
        self.left -= 1;
        if self.left == 0 {
            stopwatch::done();
            context.end();
        }
    }
}

struct Producer {
    sink: Addr<Sink>,
    windows: u64,
}

impl Actor for Producer {}

impl Receive<Window> for Producer {
    type Reply = ();

    fn receive(&mut self, _: Window, context: &mut Context<Self>) {
        if self.windows == 0 {
            return context.end();
        }
        self.windows -= 1;
        for _ in 1..WINDOW {
            let _ = self.sink.send(Item(None));
        }
        let _ = self.sink.send(Item(Some(context.address())));
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (count, windows) = (parameters[0], parameters[1] / WINDOW);
    let total = count * windows * WINDOW;
    let sink = handle.spawn(Sink { left: total })?;
    let mut producers = Vec::new();
    for _ in 0..count {
        producers.push(handle.spawn(Producer { sink, windows })?);
    }
    let handle = handle.clone();
    Ok(Box::new(move || {
        drive(&handle, move || {
            stopwatch::begin(1);
            for producer in producers {
                let _ = producer.send(Window);
            }
        })?;
        Ok(total)
    }))
}
