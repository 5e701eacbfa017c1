//! Those who watch: actors, some of which take long or have a full mailbox, and processes with mailboxes.

use alloc::sync::Arc;
use alloc::vec::Vec;

use magpie::actor::{
    Actor, Addr, Bound, Config, Context, Executor, ExecutorHandle, Receive, Recipient, WhenFull,
};
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::internals::Random;
use magpie::mem::OutOfMemory;
use magpie::sched::{self, JoinError, JoinHandle, ProcessRef};
use magpie::watch::{Ended, Watch, Watcher};
use magpie_tests::{Failure, Outcome, ensure};

use crate::ledger::Ledger;
use crate::moments::linger;
use crate::ways::Exits;

/// One that can be watched.
pub trait Watched {
    fn watched_by(&self, watcher: &impl Watcher) -> Result<Watch, OutOfMemory>;
}

impl Watched for ProcessRef {
    fn watched_by(&self, watcher: &impl Watcher) -> Result<Watch, OutOfMemory> {
        self.watch(watcher)
    }
}

impl<A: Actor> Watched for Addr<A> {
    fn watched_by(&self, watcher: &impl Watcher) -> Result<Watch, OutOfMemory> {
        self.watch(watcher)
    }
}

struct Witness {
    ledger: &'static Ledger,
    takes_long: bool,
}

impl Actor for Witness {}

impl Receive<Ended> for Witness {
    type Reply = ();

    fn receive(&mut self, ended: Ended, _: &mut Context<Self>) {
        self.ledger.note(ended);
        if self.takes_long && ended.watch().number().is_multiple_of(16) {
            linger();
        }
    }
}

/// Mail that nobody minds the loss of.
struct Chatter;

impl Receive<Chatter> for Witness {
    type Reply = ();

    fn receive(&mut self, _: Chatter, _: &mut Context<Self>) {}
}

/// All of them.
#[derive(Clone)]
pub struct Watchers {
    pub ledger: &'static Ledger,
    actors: Arc<Vec<(Addr<Witness>, Recipient<Ended>)>>,
    mailboxes: Vec<ProcessAddr<Ended>>,
}

/// What is to be waited for at the end.
pub struct Company {
    receivers: Vec<JoinHandle<()>>,
    bounded: Executor,
}

const ACTORS: usize = 8;
const MAILBOXES: usize = 3;

impl Watchers {
    /// Some on that executor, some on one of their own whose mailboxes are bounded.
    pub async fn start(
        handle: &ExecutorHandle,
        config: &Config,
        ledger: &'static Ledger,
    ) -> Result<(Self, Company), Failure> {
        ledger.renew().await?;
        let bounded = Executor::start(&config.clone().bound(Bound::new(2, WhenFull::DropOldest)))?;
        let mut actors = Vec::new();
        for index in 0..ACTORS {
            let on = if index % 4 == 3 { bounded.handle() } else { handle };
            let witness = on.spawn(Witness { ledger, takes_long: index % 3 == 0 })?;
            actors.push((witness, witness.recipient()));
        }
        let (mut mailboxes, mut receivers) = (Vec::new(), Vec::new());
        for _ in 0..MAILBOXES {
            let mut ends = ProcessMailbox::<Ended>::new(1)?;
            mailboxes.push(ends.address());
            receivers.push(sched::spawn(async move {
                while let Some(ended) = ends.receive().await {
                    ledger.note(ended);
                }
            })?);
        }
        Ok((Self { ledger, actors: Arc::new(actors), mailboxes }, Company { receivers, bounded }))
    }

    fn begin(&self, random: &Random, who: &impl Watched) -> Result<Watch, OutOfMemory> {
        let choice = random.below(ACTORS + MAILBOXES);
        match (self.actors.get(choice), self.mailboxes.get(choice % MAILBOXES)) {
            (Some((actor, recipient)), _) => {
                // Its mailbox may be full of them.
                let _ = actor.send(Chatter);
                who.watched_by(recipient)
            }
            (None, Some(mailbox)) => who.watched_by(mailbox),
            (None, None) => Err(OutOfMemory),
        }
    }

    /// Has one of them told of one who is to end in one of these ways.
    pub fn watch(&self, random: &Random, who: &impl Watched, exits: Exits) -> Result<(), OutOfMemory> {
        self.watch_one(random, who, exits, 0)
    }

    /// The same, of somebody whom the ledger describes so.
    pub fn watch_one(
        &self,
        random: &Random,
        who: &impl Watched,
        exits: Exits,
        description: u16,
    ) -> Result<(), OutOfMemory> {
        let watch = self.begin(random, who)?;
        self.ledger.describe(watch.id().number(), description);
        if random.below(16) == 0 {
            self.ledger.give_up(watch, exits);
        } else {
            self.ledger.expect(watch.id().number(), exits);
        }
        Ok(())
    }

    /// Has one of them told, of what will be said later.
    pub fn watch_for_now(&self, random: &Random, who: &impl Watched) -> Result<u64, OutOfMemory> {
        Ok(self.begin(random, who)?.id().number())
    }
}

impl Company {
    /// Ends those who receive, once the last watch has told. The crashed have left addresses of theirs, which nobody drops.
    pub async fn end(self) -> Outcome {
        for receiver in self.receivers {
            receiver.process().kill();
            let ended = receiver.await;
            ensure!(matches!(ended, Ok(()) | Err(JoinError::Killed)), "one who was told of ends: {ended:?}");
        }
        self.bounded.stop().await;
        Ok(())
    }
}
