//! Groups of actors: on every so-manieth receive an actor sends to each of its group, itself too.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};

use super::Go;
use crate::driver::drive;
use crate::failed::Failed;
use crate::stopwatch;

struct Signal;
struct Group(Arc<Vec<Addr<Member>>>);

struct Member {
    group: Arc<Vec<Addr<Member>>>,
    received: u64,
    last: u64,
}

impl Actor for Member {}

impl Receive<Group> for Member {
    type Reply = ();

    fn receive(&mut self, Group(group): Group, _: &mut Context<Self>) {
        self.group = group;
    }
}

impl Receive<Signal> for Member {
    type Reply = ();

    fn receive(&mut self, _: Signal, context: &mut Context<Self>) {
        if self.received == self.last {
            stopwatch::done();
            return context.end();
        }
        if self.received.is_multiple_of(self.group.len() as u64) {
            for member in self.group.iter() {
                let _ = member.send(Signal);
            }
        }
        self.received += 1;
    }
}

pub fn prepare(handle: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let (actors, group, rounds) = (parameters[0], parameters[1].max(1), parameters[2]);
    let last = group * rounds;
    let nobody = Arc::new(Vec::new());
    let mut all = Vec::new();
    for _ in 0..actors / group {
        let mut members = Vec::new();
        for _ in 0..group {
            members.push(handle.spawn(Member { group: nobody.clone(), received: 0, last })?);
        }
        all.extend_from_slice(&members);
        let members = Arc::new(members);
        for member in members.iter() {
            member.send(Group(members.clone())).map_err(|_| Failed::Memory)?;
        }
    }
    let handle = handle.clone();
    Ok(Box::new(move || {
        let actors = all.len() as u64;
        drive(&handle, move || {
            stopwatch::begin(actors);
            for member in all {
                let _ = member.send(Signal);
            }
        })?;
        Ok(actors * (last + 1))
    }))
}
