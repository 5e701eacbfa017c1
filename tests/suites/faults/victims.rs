//! Victims: processes and actors that are watched before, during and after their crash, and linked to others.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Hook, Limits, NotSpawned, Receive, StaticActor};
use magpie::internals::Random;
use magpie::sched::{self, JoinError};
use magpie::time;
use magpie::watch::Linkable;
use magpie_tests::{Failure, HANGS_AFTER, Outcome, ensure, ensure_eq};

use crate::links::Partner;
use crate::moments::{Moment, Sink, Ties, Will, a_little, linger, somewhere, spin};
use crate::until;
use crate::watchers::{Watched, Watchers};
use crate::ways::{GONE, Way};

/// Who make others crash, at the same time.
pub const CULPRITS: usize = 4;

/// A victim with a state of so many bytes.
pub struct Victim<const BYTES: usize> {
    ties: Ties,
    state: [u8; BYTES],
    will: Option<Will>,
}

impl<const BYTES: usize> Victim<BYTES> {
    fn new(ties: &Ties) -> Self {
        Self { ties: ties.clone(), state: [1; BYTES], will: None }
    }
}

impl<const BYTES: usize> Actor for Victim<BYTES> {
    fn started() -> Option<Hook<Self>> {
        Some(|victim, _| {
            if victim.ties.moment == Moment::Early && victim.ties.way.is_crash() {
                victim.ties.way.crash();
            }
        })
    }

    fn stopped() -> Option<Hook<Self>> {
        Some(|victim, _| {
            if victim.ties.moment == Moment::Late {
                victim.ties.way.crash();
            }
        })
    }
}

/// Now it is to crash.
#[derive(Clone, Copy)]
struct Now;

impl<const BYTES: usize> Receive<Now> for Victim<BYTES> {
    type Reply = u64;

    fn receive(&mut self, _: Now, context: &mut Context<Self>) -> u64 {
        let ties = &self.ties;
        if ties.way == Way::Kill {
            match ties.moment {
                Moment::Suspended | Moment::Sending => spin(),
                Moment::Late => linger(),
                _ => {}
            }
            return u64::from(self.state[0]);
        }
        match ties.moment {
            // Its state is dropped, or its last hook runs.
            Moment::Dropping => {
                self.will = Some(Will(ties.way));
                context.end();
                0
            }
            Moment::Late => {
                context.end();
                0
            }
            Moment::WithMutex => match ties.mutex.try_lock() {
                Ok(held) => ties.crash_with(held),
                Err(_) => 0,
            },
            _ => ties.crash(),
        }
    }
}

static STORAGE: [StaticActor<Victim<24>>; CULPRITS] = [const { StaticActor::new() }; CULPRITS];

/// What culprits need.
#[derive(Clone)]
pub struct Scene {
    pub handle: ExecutorHandle,
    pub watchers: Watchers,
    pub sinks: [Addr<Sink>; 3],
    /// Innocents, to be in one batch with.
    pub beside: Vec<Addr<Sink>>,
    /// What some of the victims are held to.
    pub limits: Limits,
}

impl Scene {
    /// One crash, by the culprit with that index.
    pub async fn one(&self, culprit: usize, random: &mut Random) -> Outcome {
        let ties = Ties::any(Way::of_victim(random), self.sinks, random);
        let outcome = match random.below(8) {
            0..3 => self.process(&ties, random).await,
            3 if random.below(2) == 0 => {
                let limited = self.handle.spawn_limited(Victim::<40>::new(&ties), self.limits)?;
                self.actor(limited, &ties, random).await
            }
            3 => self.actor(self.handle.spawn(Victim::<40>::new(&ties))?, &ties, random).await,
            4 => {
                let beside = self.beside[random.below(self.beside.len())];
                self.actor(self.handle.spawn_beside(beside, Victim::<40>::new(&ties))?, &ties, random).await
            }
            5 if random.below(2) == 0 => {
                let limited = self.handle.spawn_limited(Victim::<1500>::new(&ties), self.limits)?;
                self.actor(limited, &ties, random).await
            }
            5 => self.actor(self.handle.spawn(Victim::<1500>::new(&ties))?, &ties, random).await,
            6 => {
                let core = self.handle.cores().iter().nth(random.below(self.handle.workers()));
                let core = core.ok_or("no such core")?;
                self.actor(self.handle.spawn_on(core, Victim::<40>::new(&ties))?, &ties, random).await
            }
            _ => {
                let victim = start_when_free(&STORAGE[culprit], &self.handle, Victim::new(&ties)).await?;
                self.actor(victim, &ties, random).await
            }
        };
        outcome.map_err(|failure| Failure(alloc::format!("{:?} {:?}: {}", ties.way, ties.moment, failure.0)))
    }

    async fn process(&self, ties: &Ties, random: &mut Random) -> Outcome {
        let (gate, opened) = gate();
        let life = ties.clone().life();
        let process = somewhere(random, &self.handle).start(async move {
            gate.opened().await;
            life.await
        })?;
        let who = process.process().clone();
        let partners = self.begin(&who, ties, random)?;
        opened.open();
        a_little(random).await;
        if ties.way == Way::Kill {
            who.kill();
        }
        let late = self.during(&who, ties, random)?;
        let expected = if ties.way == Way::Kill { JoinError::Killed } else { JoinError::Crashed };
        let joined = time::background_timeout(HANGS_AFTER, process).await;
        ensure_eq!(joined, Ok(Err(expected)), "what the handle says");
        self.finish(&who, ties, random, (partners, late)).await?;
        let had_mutex =
            ties.way.is_crash() && matches!(ties.moment, Moment::WithMutex | Moment::WithEverything);
        ensure!(!had_mutex || ties.mutex.is_poisoned(), "the mutex of one that crashed with it is whole");
        Ok(())
    }

    async fn actor<const BYTES: usize>(
        &self,
        victim: Addr<Victim<BYTES>>,
        ties: &Ties,
        random: &mut Random,
    ) -> Outcome {
        // One that crashes in its first hook may have ended already.
        let is_early = ties.moment == Moment::Early && ties.way.is_crash();
        let partners = if is_early { Vec::new() } else { self.begin(&victim, ties, random)? };
        for _ in 0..=random.below(3) {
            // It may have crashed already.
            let _ = victim.send(Now);
        }
        a_little(random).await;
        if ties.way == Way::Kill {
            victim.kill()?;
        }
        let late = self.during(&victim, ties, random)?;
        until("an actor ends", || !victim.is_alive()).await?;
        ensure!(victim.send(Now).is_err(), "one that has ended takes messages");
        self.finish(&victim, ties, random, (partners, late)).await?;
        let had_mutex = ties.way.is_crash() && ties.moment == Moment::WithMutex;
        ensure!(!had_mutex || ties.mutex.is_poisoned(), "the mutex of one that crashed with it is whole");
        Ok(())
    }

    /// Watches and links before the crash: its own reason is told.
    fn begin(
        &self,
        who: &(impl Watched + Linkable),
        ties: &Ties,
        random: &mut Random,
    ) -> Result<Vec<Partner>, Failure> {
        for _ in 0..=random.below(3) {
            self.watchers.watch_one(random, who, ties.way.exits(), ties.described(1))?;
        }
        let mut partners = Vec::new();
        if random.below(4) == 0 {
            partners.push(Partner::of(who, &self.watchers, &self.handle, random)?);
        }
        Ok(partners)
    }

    /// Watches and links while it crashes: its reason is told, or that it has gone.
    fn during(
        &self,
        who: &(impl Watched + Linkable),
        ties: &Ties,
        random: &mut Random,
    ) -> Result<Option<Partner>, Failure> {
        for _ in 0..random.below(3) {
            self.watchers.watch_one(random, who, ties.way.exits() | GONE, ties.described(2))?;
        }
        let is_linked = random.below(8) == 0;
        is_linked.then(|| Partner::of(who, &self.watchers, &self.handle, random)).transpose()
    }

    /// Watches when it has ended, and waits for those who were linked.
    async fn finish(
        &self,
        who: &(impl Watched + Linkable),
        ties: &Ties,
        random: &mut Random,
        (partners, late): (Vec<Partner>, Option<Partner>),
    ) -> Outcome {
        if random.below(4) == 0 {
            // It is told by who ends it, which may not be done with that.
            self.watchers.watch_one(random, who, ties.way.exits() | GONE, ties.described(3))?;
        }
        for partner in partners.into_iter().chain(late) {
            partner.ended().await?;
        }
        Ok(())
    }
}

/// An actor that has ended is not alive any more a moment before its storage is free.
async fn start_when_free<A: Actor>(
    storage: &'static StaticActor<A>,
    handle: &ExecutorHandle,
    mut actor: A,
) -> Result<Addr<A>, Failure> {
    let started = async {
        loop {
            match storage.start(handle, actor) {
                Err(NotSpawned::NotFree(back)) => actor = back,
                result => return result.map_err(Failure::from),
            }
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, started)
        .await
        .map_err(|_| Failure("the storage of one that crashed is not free".into()))?
}

/// What a process waits behind until it is watched.
struct Gate(Arc<AtomicBool>);

fn gate() -> (Gate, Gate) {
    let gate = Arc::new(AtomicBool::new(false));
    (Gate(gate.clone()), Gate(gate))
}

impl Gate {
    fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    async fn opened(&self) {
        while !self.0.load(Ordering::Acquire) {
            sched::yield_now().await;
        }
    }
}
