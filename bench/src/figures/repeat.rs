//! A client sends to every server, collects the replies, and does so again.

use alloc::boxed::Box;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

struct Request {
    from: Addr<Client>,
    number: u64,
}

struct Reply(#[expect(dead_code, reason = "the message carries it, as those of the peers do")] u64);
struct Start;

struct Server;

impl Actor for Server {}

impl Receive<Request> for Server {
    type Reply = ();

    fn receive(&mut self, request: Request, _: &mut Context<Self>) {
        let _ = request.from.send(Reply(request.number));
    }
}

struct Client {
    servers: Vec<Addr<Server>>,
    missing: usize,
    rounds: u64,
}

impl Actor for Client {}

impl Client {
    /// Begins the next round. Whether there is one.
    fn ask(&mut self, from: Addr<Self>) -> bool {
        if self.rounds == 0 {
            stopwatch::done();
            return false;
        }
        self.rounds -= 1;
        self.missing = self.servers.len();
        for server in &self.servers {
            let _ = server.send(Request { from, number: self.rounds });
        }
        true
    }
}

impl Receive<Start> for Client {
    type Reply = ();

    fn receive(&mut self, _: Start, context: &mut Context<Self>) {
        if !self.ask(context.address()) {
            context.end();
        }
    }
}

impl Receive<Reply> for Client {
    type Reply = ();

    fn receive(&mut self, _: Reply, context: &mut Context<Self>) {
        self.missing -= 1;
        if self.missing == 0 && !self.ask(context.address()) {
            context.end();
        }
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (count, rounds) = (parameters[0], parameters[1]);
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.push(handle.spawn(Server)?);
    }
    let client = handle.spawn(Client { servers, missing: 0, rounds })?;
    Ok(Box::new(move || {
        stopwatch::begin(1);
        client.send(Start).map_err(|_| Failed::Memory)?;
        Ok(2 * count * rounds)
    }))
}
