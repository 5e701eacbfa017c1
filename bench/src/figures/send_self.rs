//! One actor sends itself a message, handles it, and sends again. As the peers define it the message is of two numbers;
//! the other sizes say what a message by value costs.

use alloc::boxed::Box;
use core::hint::black_box;
use magpie::actor::{Actor, Context, ExecutorHandle, Message, Receive};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

#[derive(Clone, Copy)]
struct Pair(i32, i32);

/// A message of that many words of eight bytes.
struct Block<const WORDS: usize>([u64; WORDS]);

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

impl<const WORDS: usize> Receive<Block<WORDS>> for Lonely {
    type Reply = ();

    fn receive(&mut self, block: Block<WORDS>, context: &mut Context<Self>) {
        black_box(block.0[0] + block.0[WORDS - 1]);
        self.left -= 1;
        if self.left == 0 {
            stopwatch::done();
            return context.end();
        }
        let _ = context.address().send(block);
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    prepare_with(handle, parameters, Pair(1, 2))
}

pub fn prepare_block<const WORDS: usize>(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    prepare_with(handle, parameters, Block([1; WORDS]))
}

fn prepare_with<M: Message>(handle: &ExecutorHandle, parameters: &[u64], message: M) -> Result<Go, Failed>
where
    Lonely: Receive<M>,
{
    let messages = parameters[0];
    let lonely = handle.spawn(Lonely { left: messages })?;
    Ok(Box::new(move || {
        stopwatch::begin(1);
        lonely.send(message).map_err(|_| Failed::Memory)?;
        Ok(messages)
    }))
}
