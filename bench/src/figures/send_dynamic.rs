//! For each operation a new actor and a new message; the actor handles it and ends. In batches: the last of a
//! batch wakes the driver.

use alloc::boxed::Box;
use core::hint::black_box;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use super::{Go, WINDOW};
use crate::failed::Failed;
use crate::stopwatch;

struct Pair(i32, i32);
struct Next;

/// An actor for one message.
struct Brief(Addr<Driver>);

impl Actor for Brief {}

impl Receive<Box<Pair>> for Brief {
    type Reply = ();

    fn receive(&mut self, pair: Box<Pair>, context: &mut Context<Self>) {
        black_box(pair.0 + pair.1);
        if stopwatch::part_done() {
            let _ = self.0.send(Next);
        }
        context.end();
    }
}

struct Driver {
    batches: u64,
}

impl Actor for Driver {}

impl Receive<Next> for Driver {
    type Reply = ();

    fn receive(&mut self, _: Next, context: &mut Context<Self>) {
        if self.batches == 0 {
            stopwatch::end();
            return context.end();
        }
        self.batches -= 1;
        stopwatch::expect(WINDOW);
        for number in 0..WINDOW {
            if let Ok(brief) = context.spawn(Brief(context.address())) {
                let _ = brief.send(Box::new(Pair(number as i32, 2)));
            }
        }
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let batches = parameters[0] / WINDOW;
    let driver = handle.spawn(Driver { batches })?;
    Ok(Box::new(move || {
        stopwatch::begin(WINDOW);
        driver.send(Next).map_err(|_| Failed::Memory)?;
        Ok(batches * WINDOW)
    }))
}
