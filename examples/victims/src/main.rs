//! Choosing a victim rule by measuring. A worker that has run dry steals a mailbox from another one; the rule says from whom. Which is the best depends on the
//! program, so this one is run under each of them: actors that all begin on one core, with work that others would gladly take. The sum is the
//! same under every rule; the time is not, and differs from run to run.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::hint::black_box;
use core::time::Duration;
use magpie::actor::MailboxVictim;
use magpie::prelude::*;
use magpie::stats;
use magpie::time::Instant;

magpie::entry!(victims);

const ACTORS: u64 = 64;
const PIECES: u64 = 20;

struct Digger {
    dug: u64,
}

impl Actor for Digger {}

/// So deep.
struct Dig(u64);
struct Dug;

impl Receive<Dig> for Digger {
    type Reply = ();

    fn receive(&mut self, Dig(depth): Dig, _: &mut Context<Self>) {
        self.dug += (0..depth).fold(0, |dug, _| black_box(dug) + 1);
    }
}

impl Receive<Dug> for Digger {
    type Reply = u64;

    fn receive(&mut self, _: Dug, _: &mut Context<Self>) -> u64 {
        self.dug
    }
}

/// The work under one rule: what was dug, how long it took, and how many mailboxes were stolen.
async fn measure(rule: MailboxVictim) -> magpie::Result<(u64, Duration, u64)> {
    let executor = Executor::start(&Config::default().mailboxes(64).victim(rule))?;
    let mut diggers = Vec::new();
    for _ in 0..ACTORS {
        diggers.push(executor.handle().spawn_on(CoreId::BOOT, Digger { dug: 0 })?);
    }
    let stolen_before = stats::worker_total(|worker| worker.mailboxes_stolen.get());
    let began = Instant::now();
    for piece in 0..PIECES {
        for (digger, depth) in diggers.iter().zip(1..) {
            digger.send(Dig(100 * (1 + (depth + piece) % 16)))?;
        }
    }
    let mut dug = 0;
    for digger in &diggers {
        dug += digger.ask(Dug).await?;
    }
    let took = began.elapsed();
    executor.stop().await;
    Ok((dug, took, stats::worker_total(|worker| worker.mailboxes_stolen.get()) - stolen_before))
}

async fn victims() -> magpie::Result {
    let mut best = None;
    for rule in MailboxVictim::ALL {
        let (dug, took, stolen) = measure(rule).await?;
        text!("{rule:?}: dug {dug} in {} us, {stolen} mailboxes stolen", took.as_micros());
        if best.is_none_or(|(least, _)| took < least) {
            best = Some((took, rule));
        }
    }
    if let Some((_, rule)) = best {
        text!("this time {rule:?} was the fastest");
    }
    Ok(())
}
