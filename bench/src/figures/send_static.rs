//! One sender, one receiver, a window of messages, then an acknowledgement.

use alloc::boxed::Box;
use core::hint::black_box;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use super::{Go, WINDOW};
use crate::failed::Failed;
use crate::stopwatch;

#[derive(Clone, Copy)]
struct Pair(i32, i32);
struct Acknowledge;
struct Start(Addr<Receiver>);

struct Receiver {
    sender: Addr<Sender>,
    left: u64,
}

impl Actor for Receiver {}

impl Receive<Pair> for Receiver {
    type Reply = ();

    fn receive(&mut self, pair: Pair, _: &mut Context<Self>) {
        black_box(pair.0 + pair.1);
        self.left -= 1;
        if self.left == 0 {
            self.left = WINDOW;
            let _ = self.sender.send(Acknowledge);
        }
    }
}

struct Sender {
    receiver: Option<Addr<Receiver>>,
    windows: u64,
}

impl Actor for Sender {}

impl Sender {
    fn send(&mut self, context: &mut Context<Self>) {
        let Some(receiver) = self.receiver else { return context.end() };
        if self.windows == 0 {
            stopwatch::done();
            return context.end();
        }
        self.windows -= 1;
        for _ in 0..WINDOW {
            let _ = receiver.send(Pair(1, 2));
        }
    }
}

impl Receive<Start> for Sender {
    type Reply = ();

    fn receive(&mut self, Start(receiver): Start, context: &mut Context<Self>) {
        self.receiver = Some(receiver);
        self.send(context);
    }
}

impl Receive<Acknowledge> for Sender {
    type Reply = ();

    fn receive(&mut self, _: Acknowledge, context: &mut Context<Self>) {
        self.send(context);
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let windows = parameters[0] / WINDOW;
    let sender = handle.spawn(Sender { receiver: None, windows })?;
    let receiver = handle.spawn(Receiver { sender, left: WINDOW })?;
    Ok(Box::new(move || {
        stopwatch::begin(1);
        sender.send(Start(receiver)).map_err(|_| Failed::Memory)?;
        Ok(windows * WINDOW)
    }))
}
