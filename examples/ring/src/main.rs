//! A token goes round a ring of actors, and each member that passes it on counts one. A message to an actor whose worker is idle is handled by
//! the core that sent it, so the token does not wake a core at every hop.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use magpie::prelude::*;

magpie::entry!(ring);

const MEMBERS: usize = 100;
const HOPS: u64 = 50_000;

#[derive(Default)]
struct Member {
    next: Option<Addr<Member>>,
    passed_on: u64,
}

impl Actor for Member {}

/// Who comes next in the ring.
struct Next(Addr<Member>);
/// So many hops are left.
struct Token(u64);
struct PassedOn;

impl Receive<Next> for Member {
    type Reply = ();

    fn receive(&mut self, next: Next, _: &mut Context<Self>) {
        self.next = Some(next.0);
    }
}

impl Receive<Token> for Member {
    type Reply = ();

    fn receive(&mut self, token: Token, context: &mut Context<Self>) {
        if let (Some(next), 1..) = (self.next, token.0) {
            self.passed_on += 1;
            if next.send(Token(token.0 - 1)).is_err() {
                context.end();
            }
        }
    }
}

impl Receive<PassedOn> for Member {
    type Reply = u64;

    fn receive(&mut self, _: PassedOn, _: &mut Context<Self>) -> u64 {
        self.passed_on
    }
}

async fn ring() -> magpie::Result {
    let executor = Executor::start(&Config::default())?;
    let members: Vec<_> =
        (0..MEMBERS).map(|_| executor.handle().spawn(Member::default())).collect::<Result<_, _>>()?;
    for (member, next) in members.iter().zip(members.iter().cycle().skip(1)) {
        member.send(Next(*next))?;
    }
    // Behind `Next`, because messages from one sender to one actor are handled in the order in which they were sent. The others have theirs
    // by the time the token comes, because they were sent before it and nothing else is to be done.
    sched::out_of_work().await;
    members[0].send(Token(HOPS))?;
    sched::out_of_work().await;
    let mut hops = 0;
    for member in &members {
        hops += member.ask(PassedOn).await?;
    }
    text!("{MEMBERS} members, {hops} hops, {} each", members[MEMBERS / 2].ask(PassedOn).await?);
    Ok(())
}
