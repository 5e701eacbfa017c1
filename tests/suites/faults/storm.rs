//! Memory that is refused at random, everybody's, while all goes on: what can be refused is an error of its type, who asks for it otherwise ends
//! alone as out of memory, and afterwards all is as before. No executor is started meanwhile: that takes memory in a way that cannot be refused
//! (`actor/run/start.rs`).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::pending;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;

use magpie::actor::{self, Actor, Addr, AskError, Config, Context, Executor, NotSpawned, Receive, Shared};
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::internals::Random;
use magpie::internals::mem::heap::HEAP;
use magpie::internals::mem::refusal::refuse_one_in;
use magpie::message::SendError;
use magpie::registry::{self, RegisterError};
use magpie::sched::{self, JoinError, Setting, SpawnError};
use magpie::supervise::{self, Backoff, Child, Shutdown, Supervisor, SupervisorRef};
use magpie::watch::{Ended, Exit, link};
use magpie::{crash, machine, stats, time};
use magpie_tests::{Changed, Failure, HANGS_AFTER, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::innocents::Innocents;
use crate::ledger::Ledger;
use crate::moments::{Later, Sink};
use crate::watchers::Watchers;
use crate::ways::{FAILED, GONE, KILLED, NORMAL, out_of_memory};
use crate::{seed, until};

/// Who work, at the same time.
const WORKERS: usize = 6;
/// Watches for each of their steps, the kernel's own among them.
const WATCHES: usize = 64;
/// One allocation in so many is refused, storm by storm.
const STORMS: [u32; 4] = [50, 7, 2, 12];
/// What storms may leave, and each core besides: blocks to which something alive seems to lead.
const BYTES_LEFT: u64 = 256 * 1024;

const HOUR: Duration = Duration::from_secs(3600);

/// What workers need. They allocate nothing that cannot be refused.
#[derive(Clone)]
struct Storm {
    executor: actor::ExecutorHandle,
    watchers: Watchers,
    sinks: [Addr<Sink>; 3],
    refused: Arc<AtomicU64>,
    /// What each worker does, by the number in [`Storm::work`].
    does: Arc<[AtomicUsize; WORKERS]>,
}

/// Asks for memory in a way that cannot be refused.
fn be_greedy() -> u64 {
    let boxes: Vec<Box<[u64; 6]>> = (0..10).map(|number| Box::new([number; 6])).collect();
    black_box(&boxes).iter().map(|numbers| numbers[0]).sum()
}

struct Greedy;

impl Actor for Greedy {}

impl Receive<u64> for Greedy {
    type Reply = ();

    fn receive(&mut self, _: u64, context: &mut Context<Self>) {
        be_greedy();
        context.end();
    }
}

/// A child that is greedy now and then.
async fn greedy_child(mut shutdown: Shutdown) {
    while !shutdown.is_requested() {
        be_greedy();
        if time::timeout(Duration::from_micros(300), shutdown.requested()).await.is_ok() {
            return;
        }
    }
}

impl Storm {
    fn note_refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// What there is, unless that was refused.
    fn unless_refused<T, E>(
        &self,
        result: Result<T, E>,
        is_refusal: impl Fn(&E) -> bool,
    ) -> Result<Option<T>, Failure>
    where
        E: core::fmt::Display,
    {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_refusal(&error) => {
                self.note_refusal();
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sent<T, M>(&self, result: Result<T, SendError<M>>) -> Result<Option<T>, Failure> {
        self.unless_refused(result.map_err(|error| error.without_message()), |error| {
            matches!(error, SendError::OutOfMemory(()))
        })
    }

    async fn work(&self, worker: usize, mut random: Random, steps: u64) -> Outcome {
        for _ in 0..steps {
            let what = random.below(8);
            self.does[worker].store(what, Ordering::Relaxed);
            match what {
                0 => self.process(&mut random).await?,
                1 => self.actor(&mut random).await?,
                2 => self.ask(&random.below(3)).await?,
                3 => {
                    let alarm = self.sinks[random.below(3)].send_after(Duration::from_micros(300), Later);
                    self.sent(alarm)?;
                }
                4 => self.mailbox().await?,
                5 => self.name()?,
                6 => {
                    let shared = Shared::new(7_u64).map_err(|error| error.without_message());
                    if let Some(shared) = self.unless_refused(shared, |_| true)? {
                        ensure_eq!(*shared, 7, "what is shared");
                    }
                }
                _ => self.supervisor(&mut random).await?,
            }
            sched::yield_now().await;
        }
        Ok(())
    }

    async fn process(&self, random: &mut Random) -> Outcome {
        let is_killed = random.below(3) == 0;
        let started = sched::spawn(async move {
            be_greedy();
            if is_killed {
                pending::<()>().await;
            }
            time::sleep(Duration::from_micros(50)).await;
        });
        let Some(process) = self.unless_refused(started, |error| *error == SpawnError::OutOfMemory)? else {
            return Ok(());
        };
        let who = process.process().clone();
        let exits = if is_killed { KILLED } else { NORMAL };
        // No memory for that is no failure.
        let _ = self.watchers.watch(random, &who, exits | out_of_memory() | GONE);
        if is_killed {
            let other = sched::spawn(pending::<()>());
            if let Some(other) = self.unless_refused(other, |error| *error == SpawnError::OutOfMemory)? {
                let is_linked = link(other.process(), &who).is_ok();
                who.kill();
                if !is_linked {
                    other.process().kill();
                }
                ensure_eq!(other.await, Err(JoinError::Killed), "one that was linked to one that was killed");
            }
            who.kill();
        }
        let ended = process.await;
        let as_it_should = if is_killed { Err(JoinError::Killed) } else { Ok(()) };
        ensure!(ended == as_it_should || ended == Err(JoinError::Crashed), "a process ended as {ended:?}");
        Ok(())
    }

    async fn actor(&self, random: &mut Random) -> Outcome {
        let greedy = match self.executor.spawn(Greedy) {
            Ok(greedy) => greedy,
            Err(NotSpawned::OutOfMemory(_)) => {
                self.note_refusal();
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let _ = self.watchers.watch(random, &greedy, NORMAL | out_of_memory() | GONE);
        while self.sent(greedy.send(1))?.is_none() {
            sched::yield_now().await;
        }
        until("a greedy actor ends", || !greedy.is_alive()).await
    }

    async fn ask(&self, sink: &usize) -> Outcome {
        let sink = self.sinks[*sink];
        let answer = sink.ask(Later).await;
        self.unless_refused(answer, |error| *error == AskError::OutOfMemory)?;
        ensure!(sink.is_alive(), "a sink has ended");
        Ok(())
    }

    async fn mailbox(&self) -> Outcome {
        let made = ProcessMailbox::<u64>::new(8);
        let Some(mut mailbox) = self.unless_refused(made, |_| true)? else { return Ok(()) };
        let address: ProcessAddr<u64> = mailbox.address();
        let mut expected = Vec::new();
        if self.unless_refused(expected.try_reserve(4), |_| true)?.is_none() {
            return Ok(());
        }
        for number in 0..4 {
            if self.sent(address.send(number))?.is_some() {
                expected.push(number);
            }
        }
        for number in expected {
            ensure_eq!(mailbox.receive().await, Some(number), "a message to a mailbox");
        }
        ensure_eq!(mailbox.try_receive(), None, "another message");
        Ok(())
    }

    fn name(&self) -> Outcome {
        let registered = registry::register("storm", self.sinks[0]);
        self.unless_refused(registered, |error| {
            matches!(error, RegisterError::OutOfMemory | RegisterError::Taken { .. })
        })?;
        Ok(())
    }

    async fn supervisor(&self, random: &mut Random) -> Outcome {
        let supervisor = Supervisor::rest_for_one()
            .backoff(Backoff::NONE)
            .restarts(random.below(4), HOUR)
            .child(Child::process("greedy", greedy_child))
            .child(Child::actor("actor", &self.executor, || Greedy))
            .child(Child::process("other", greedy_child).transient());
        let started = self.unless_refused(supervisor.start(), |error| {
            matches!(
                error,
                supervise::StartError::OutOfMemory | supervise::StartError::Process(SpawnError::OutOfMemory)
            )
        })?;
        let Some(root) = started else { return Ok(()) };
        // It may give up, or find no memory to begin; it does not crash.
        let _ = self.watchers.watch(random, root.process(), NORMAL | FAILED | GONE);
        time::sleep(Duration::from_micros(random.below(400) as u64)).await;
        while !root.process().is_done() && root.stop().await.is_err() {
            self.note_refusal();
            sched::yield_now().await;
        }
        until("a supervisor ends", || root.process().is_done()).await?;
        ensure!(!root.process().has_crashed(), "a supervisor has crashed");
        Ok(())
    }
}

/// Waits until the one child of a supervisor runs.
async fn runs(supervisor: &SupervisorRef) -> Outcome {
    let running = async {
        while !supervisor.children().await.is_ok_and(|children| children.len() == 1 && children[0].runs) {
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, running).await.map_err(|_| {
        Failure(alloc::format!("a supervised process does not run: {:?}", supervisor.process().state()))
    })
}

/// One storm.
async fn storm(ledger: &'static Ledger, number: usize, seed: u64, steps: u64) -> Result<(u64, u64), Failure> {
    let config = Config::default();
    let executor = Executor::start(&config)?;
    let handle = executor.handle().clone();
    let (watchers, company) = Watchers::start(&handle, &config, ledger).await?;
    let innocents = Innocents::start(&handle)?;
    let handled = Arc::new(AtomicU64::new(0));
    let sink = || handle.spawn(Sink { handled: handled.clone() });
    let sinks = [sink()?, sink()?, sink()?];
    let supervisor = Supervisor::one_for_one()
        .backoff(Backoff::new(Duration::from_micros(100), Duration::from_millis(1)))
        .restarts(100_000, HOUR)
        .child(Child::process("steady", greedy_child))
        .start()?;
    // A supervisor that finds no memory to begin fails: this one has begun.
    runs(&supervisor).await?;
    let refused = Arc::new(AtomicU64::new(0));
    let does = Arc::new([const { AtomicUsize::new(0) }; WORKERS]);
    let storm =
        Storm { executor: handle.clone(), watchers, sinks, refused: refused.clone(), does: does.clone() };
    let mut workers = Vec::new();
    for worker in 0..WORKERS {
        let (storm, random) = (storm.clone(), Random::new(seed.wrapping_add(number as u64), worker));
        workers.push(sched::spawn(async move { storm.work(worker, random, steps).await })?);
    }
    let mut ends = ProcessMailbox::<Ended>::new(1)?;
    for worker in &workers {
        worker.process().watch(&ends.address())?;
    }
    // Says it at once: the record of a crash is gone after 32 others.
    let monitor = sched::spawn(async move {
        let mut crashed = false;
        while let Some(ended) = ends.receive().await {
            if let Exit::Crashed(number) = ended.exit() {
                crashed = true;
                if let Some(record) = crash::record(number) {
                    magpie::log::text!("a worker has crashed: {record}");
                }
            }
        }
        crashed
    })?;
    let before = refuse_one_in(STORMS[number % STORMS.len()], seed);
    let has_crashed = time::background_timeout(HANGS_AFTER, monitor).await;
    let refusals = refuse_one_in(0, 0) - before;
    let Ok(has_crashed) = has_crashed else {
        let states: Vec<_> = workers.iter().map(|worker| worker.process().state()).collect();
        return Err(Failure(alloc::format!("it does not end: workers are {states:?}, and do {does:?}")));
    };
    ensure!(has_crashed == Ok(false), "a worker has crashed");
    for worker in workers {
        worker.await??;
    }
    ensure!(refusals > 0 && refused.load(Ordering::Relaxed) > 0, "nothing was refused");
    registry::unregister("storm");
    // All that takes memory works again, and who was restarted runs.
    runs(&supervisor).await?;
    supervisor.stop().await?;
    let messages = innocents.end().await?;
    until("all watches have told", || storm.watchers.ledger.is_complete()).await?;
    sched::out_of_work().await;
    drop(storm);
    company.end().await?;
    ensure!(handle.table_is_whole(), "a mailbox is missing");
    executor.stop().await;
    ledger.judge()?;
    Ok((refusals, messages))
}

kernel_test! {
    /// Nothing stops, nobody else ends, and afterwards all is as before. So many storms as the boot argument `storms` says.
    async fn memory_may_be_refused_to_anybody() -> Outcome {
        let (seed, steps) = (seed(), amount("crashes", 3000) / 30);
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 200)])?;
        sched::out_of_work().await;
        let steps = steps.min(1000);
        let ledger = Ledger::leaked(WORKERS * steps as usize * WATCHES)?;
        let mut used = 0;
        let storms = amount("storms", 8) as usize;
        for number in 0..storms {
            let crashes = crash::total();
            let outcome = storm(ledger, number, seed, steps).await;
            let (refusals, messages) =
                outcome.map_err(|Failure(text)| Failure(alloc::format!("seed={seed}, storm {number}: {text}")))?;
            sched::out_of_work().await;
            let now = HEAP.usage().0 as u64;
            if number < STORMS.len() {
                used = now;
            }
            let grown = now.saturating_sub(used);
            magpie::log::text!(
                "storm {number}: {refusals} refusals, {} crashes, {messages} messages, memory grown by {grown} bytes, {:?}",
                crash::total() - crashes,
                stats::collections(),
            );
            ensure!(
                grown <= BYTES_LEFT * (1 + machine::cores() as u64),
                "seed={seed}, storm {number}: memory has grown by {grown} bytes"
            );
        }
        Ok(())
    }
}
