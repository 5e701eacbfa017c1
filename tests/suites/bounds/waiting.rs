//! How long work waits that stays with whoever made it: behind a turn that goes on for long, while other cores idle.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::{CoreId, CoreSet};
use magpie::channel::ProcessMailbox;
use magpie::internals::arch::cpu;
use magpie::machine;
use magpie::sched::{Priority, Spawn};
use magpie::time::{self, Instant};
use magpie_tests::{Failure, Outcome, ensure_eq, kernel_test};

use crate::{SLACK, needs_counted_time, slice, within};

/// After so long nobody will come any more.
const GIVEN_UP: Duration = Duration::from_millis(20);
const ROUNDS: u64 = 10;

/// What was waited for, and for how long.
#[derive(Default)]
struct Waited {
    longest_nanoseconds: AtomicU64,
    arrived: AtomicU64,
}

impl Waited {
    fn note(&self, since: Instant) {
        self.longest_nanoseconds.fetch_max(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.arrived.fetch_add(1, Ordering::Relaxed);
    }

    /// Spins until so many have arrived, or nobody will any more.
    fn spin_until(&self, arrived: u64) {
        let began = Instant::now();
        while self.arrived.load(Ordering::Relaxed) < arrived && began.elapsed() < GIVEN_UP {
            // Lets the other virtual cores go on, as the cores of a machine would.
            cpu::relax();
        }
    }

    fn judge(&self, arrived: u64, what: &str) -> Outcome {
        ensure_eq!(self.arrived.load(Ordering::Relaxed), arrived, "arrived");
        let longest = Duration::from_nanos(self.longest_nanoseconds.load(Ordering::Relaxed));
        magpie::log::text!("{what} waits {} us", longest.as_micros());
        within(longest, 2 * slice() + SLACK, what)
    }
}

struct Neighbour(Arc<Waited>);

impl Actor for Neighbour {}

impl Receive<Instant> for Neighbour {
    type Reply = ();

    fn receive(&mut self, sent: Instant, _: &mut Context<Self>) {
        self.0.note(sent);
    }
}

/// Sends to each of its neighbours and spins until all have been heard of.
struct Hog {
    neighbours: Vec<Addr<Neighbour>>,
    waited: Arc<Waited>,
}

impl Actor for Hog {}

struct Go(u64);

impl Receive<Go> for Hog {
    type Reply = ();

    fn receive(&mut self, Go(arrived): Go, _: &mut Context<Self>) {
        for neighbour in &self.neighbours {
            let _ = neighbour.send(Instant::now());
        }
        self.waited.spin_until(arrived);
    }
}

fn far() -> CoreId {
    CoreId::new(machine::cores() - 1).unwrap_or(CoreId::BOOT)
}

/// Executors idle, and so do all cores but this one.
async fn until_quiet() {
    time::sleep(10 * slice()).await;
}

/// Sends the hog off from the first core, so that it spins there.
async fn send_off(hog: Addr<Hog>, arrived: u64) -> Outcome {
    let sender = Spawn::new().pinned(CoreId::BOOT).start(async move { hog.send(Go(arrived)).is_ok() })?;
    ensure_eq!(sender.await, Ok(true), "whether the hog was sent off");
    Ok(())
}

/// A behaviour on the first core sends to so many actors of the last worker, and spins.
async fn behind_a_behaviour(neighbours: u64) -> Outcome {
    let waited = Arc::new(Waited::default());
    let executor = Executor::start(&Config::default())?;
    let mut addresses = Vec::new();
    for _ in 0..neighbours {
        addresses.push(executor.handle().spawn_on(far(), Neighbour(waited.clone()))?);
    }
    let hog =
        executor.handle().spawn_on(CoreId::BOOT, Hog { neighbours: addresses, waited: waited.clone() })?;
    for round in 1..=ROUNDS {
        until_quiet().await;
        send_off(hog, round * neighbours).await?;
    }
    until_quiet().await;
    executor.stop().await;
    waited.judge(ROUNDS * neighbours, "mail for an idle worker, sent by a behaviour that spins,")
}

kernel_test! {
    /// The sender's worker is the host of a guest, and gets to nothing but the behaviour.
    #[cores(2)]
    async fn a_guest_leaves_a_host_that_spins() -> Outcome {
        needs_counted_time()?;
        behind_a_behaviour(1).await
    }
}

kernel_test! {
    /// All of them, not only the one that has waited longest.
    #[cores(2)]
    async fn all_guests_leave_a_host_that_spins() -> Outcome {
        needs_counted_time()?;
        behind_a_behaviour(12).await
    }
}

/// A process on the first core sends to an actor of the last worker, and spins.
async fn behind_a_process(priority: Priority) -> Outcome {
    let waited = Arc::new(Waited::default());
    let executor = Executor::start(&Config::default())?;
    let neighbour = executor.handle().spawn_on(far(), Neighbour(waited.clone()))?;
    for round in 1..=ROUNDS {
        until_quiet().await;
        let waited = waited.clone();
        let sender = Spawn::new().priority(priority).pinned(CoreId::BOOT).start(async move {
            let sent = neighbour.send(Instant::now()).is_ok();
            waited.spin_until(round);
            sent
        })?;
        ensure_eq!(sender.await, Ok(true), "whether the message was sent");
    }
    executor.stop().await;
    waited.judge(ROUNDS, "mail for an idle worker, sent by a process that spins,")
}

kernel_test! {
    #[cores(2)]
    async fn mail_leaves_a_process_that_spins() -> Outcome {
        needs_counted_time()?;
        behind_a_process(Priority::Normal).await
    }
}

kernel_test! {
    /// The worker on its core would never get a turn.
    #[cores(2)]
    async fn mail_leaves_an_urgent_process_that_spins() -> Outcome {
        needs_counted_time()?;
        behind_a_process(Priority::Max).await
    }
}

kernel_test! {
    /// The workers of all executors are told on the core that comes to help. Each must look for itself, also those that see
    /// the others waiting.
    #[cores(2)]
    async fn mail_of_each_of_several_executors_leaves_an_urgent_process_that_spins() -> Outcome {
        needs_counted_time()?;
        let waited = Arc::new(Waited::default());
        let (mut executors, mut neighbours) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let executor = Executor::start(&Config::default())?;
            neighbours.push(executor.handle().spawn_on(CoreId::BOOT, Neighbour(waited.clone()))?);
            executors.push(executor);
        }
        let count = neighbours.len() as u64;
        for round in 1..=ROUNDS {
            until_quiet().await;
            let (neighbours, waited) = (neighbours.clone(), waited.clone());
            let process = Spawn::new().pinned(CoreId::BOOT).priority(Priority::Max).start(async move {
                let sent = neighbours.iter().all(|neighbour| neighbour.send(Instant::now()).is_ok());
                waited.spin_until(round * count);
                sent
            })?;
            ensure_eq!(process.await, Ok(true), "whether the messages were sent");
        }
        until_quiet().await;
        for executor in executors {
            executor.stop().await;
        }
        waited.judge(ROUNDS * count, "mail of several executors")
    }
}

kernel_test! {
    /// What is pinned to a core is never handled elsewhere, so its core is woken at once.
    #[cores(2)]
    async fn mail_for_a_pinned_actor_does_not_stay_with_its_sender() -> Outcome {
        needs_counted_time()?;
        let waited = Arc::new(Waited::default());
        let executor = Executor::start(&Config::default())?;
        let neighbour = executor.handle().spawn_pinned(far(), Neighbour(waited.clone()))?;
        let hog = executor.handle().spawn_on(CoreId::BOOT, Hog { neighbours: alloc::vec![neighbour], waited: waited.clone() })?;
        for round in 1..=ROUNDS {
            until_quiet().await;
            send_off(hog, round).await?;
        }
        until_quiet().await;
        executor.stop().await;
        let longest = Duration::from_nanos(waited.longest_nanoseconds.load(Ordering::Relaxed));
        within(longest, slice() / 2, "mail for a pinned actor")?;
        waited.judge(ROUNDS, "mail for a pinned actor")
    }
}

kernel_test! {
    /// A lone child of a parent that goes on.
    #[cores(2)]
    async fn a_lone_child_leaves_a_parent_that_spins() -> Outcome {
        needs_counted_time()?;
        let waited = Arc::new(Waited::default());
        for round in 1..=ROUNDS {
            until_quiet().await;
            let waited = waited.clone();
            let parent = Spawn::new().pinned(CoreId::BOOT).start(async move {
                let (child, began) = (waited.clone(), Instant::now());
                let child = Spawn::new().start(async move { child.note(began) });
                waited.spin_until(round);
                child.is_ok()
            })?;
            ensure_eq!(parent.await, Ok(true), "whether the child was started");
        }
        waited.judge(ROUNDS, "a child of a parent that spins")
    }
}

kernel_test! {
    /// The child is of no use to the core that comes first, for its mask names the parent's core and the last one; and the
    /// parent is more urgent, so no stack is lent to the child.
    #[cores(3)]
    async fn a_masked_child_leaves_an_urgent_parent_that_spins() -> Outcome {
        needs_counted_time()?;
        let waited = Arc::new(Waited::default());
        let cores: CoreSet = [far(), CoreId::BOOT].into_iter().collect();
        for round in 1..=ROUNDS {
            until_quiet().await;
            let waited = waited.clone();
            let parent = Spawn::new().pinned(CoreId::BOOT).priority(Priority::Max).start(async move {
                let (child, began) = (waited.clone(), Instant::now());
                let child = Spawn::new().affinity(cores).start(async move { child.note(began) });
                waited.spin_until(round);
                child.is_ok()
            })?;
            ensure_eq!(parent.await, Ok(true), "whether the child was spawned");
        }
        waited.judge(ROUNDS, "a child with a mask beside an urgent parent that spins")
    }
}

kernel_test! {
    /// A process that was woken by one that goes on.
    #[cores(2)]
    async fn a_receiver_leaves_a_sender_that_spins() -> Outcome {
        needs_counted_time()?;
        let waited = Arc::new(Waited::default());
        let mut mail = ProcessMailbox::<Instant>::new(16)?;
        let to = mail.address();
        let seen = waited.clone();
        let receiver = Spawn::new().start(async move {
            while let Some(sent) = mail.receive().await {
                seen.note(sent);
            }
        })?;
        for round in 1..=ROUNDS {
            until_quiet().await;
            let (to, waited) = (to.clone(), waited.clone());
            let sender = Spawn::new().pinned(CoreId::BOOT).start(async move {
                let sent = to.send(Instant::now()).is_ok();
                waited.spin_until(round);
                sent
            })?;
            ensure_eq!(sender.await, Ok(true), "whether the message was sent");
        }
        drop(to);
        receiver.await.map_err(|error| Failure(alloc::format!("{error}")))?;
        waited.judge(ROUNDS, "a process woken by one that spins")
    }
}
