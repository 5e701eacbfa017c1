//! Those who are linked to a victim: they end with its failure, however late they were linked, and are told of as killed.

use magpie::actor::{Actor, Addr, ExecutorHandle};
use magpie::internals::Random;
use magpie::sched::{self, JoinHandle};
use magpie::watch::{Linkable, link};
use magpie_tests::{Failure, Outcome};

use crate::until;
use crate::watchers::Watchers;
use crate::ways::KILLED;

pub struct Idle;

impl Actor for Idle {}

/// One that does nothing.
pub enum Partner {
    Process(JoinHandle<()>),
    Actor(Addr<Idle>),
}

impl Partner {
    /// One that is watched, and linked to a victim that ends as a failure, or has ended.
    pub fn of(
        victim: &impl Linkable,
        watchers: &Watchers,
        handle: &ExecutorHandle,
        random: &Random,
    ) -> Result<Self, Failure> {
        Ok(if random.below(2) == 0 {
            let process = sched::spawn(core::future::pending())?;
            watchers.watch_one(random, process.process(), KILLED, 0x600)?;
            link(process.process(), victim)?;
            Self::Process(process)
        } else {
            let actor = handle.spawn(Idle)?;
            watchers.watch_one(random, &actor, KILLED, 0x700)?;
            link(victim, &actor)?;
            Self::Actor(actor)
        })
    }

    /// Waits until it has ended with its victim.
    pub async fn ended(self) -> Outcome {
        match self {
            Self::Process(process) => until("a linked process ends", || process.process().is_done()).await,
            Self::Actor(actor) => until("a linked actor ends", || !actor.is_alive()).await,
        }
    }
}
