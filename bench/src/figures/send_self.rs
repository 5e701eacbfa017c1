//! One actor sends itself a message, handles it, and sends again.

use alloc::boxed::Box;
use core::hint::black_box;
use magpie::actor::{Actor, Context, ExecutorHandle, Receive};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

#[derive(Clone, Copy)]
struct Pair(i32, i32);

struct Lonely {
    left: u64,
}

impl Actor for Lonely {}

impl Receive<Pair> for Lonely {
    type Reply = ();

    fn receive(&mut self, pair: Pair, context: &mut Context<Self>) {
        black_box(pair.0 + pair.1);
        self.left -= 1;
        if self.left == 0 {
            stopwatch::done();
            return context.end();
        }
        let _ = context.address().send(pair);
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let messages = parameters[0];
    let lonely = handle.spawn(Lonely { left: messages })?;
    Ok(Box::new(move || {
        stopwatch::begin(1);
        lonely.send(Pair(1, 2)).map_err(|_| Failed::Memory)?;
        Ok(messages)
    }))
}
