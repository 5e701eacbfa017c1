//! Memory limits: a glutton is refused, or ends alone; what is charged comes back from wherever it went; numbers serve for ever.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive, StartError};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::crash::{self, CrashKind};
use magpie::mem::{LimitError, MemoryLimit};
use magpie::sched::{self, JoinError, JoinHandle, Setting, Spawn, SpawnError};
use magpie::supervise::{Child, Supervisor};
use magpie::{machine, time};
use magpie_tests::{Changed, Failure, HANGS_AFTER, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::not_started;
use crate::ways::Way;

const LIMIT: usize = 256 * 1024;
/// More than a process itself takes.
const A_PROCESS: usize = 2048;

fn limit(bytes: usize) -> Result<MemoryLimit, Failure> {
    MemoryLimit::new(bytes).map_err(|error| Failure(alloc::format!("no limit: {error}")))
}

/// Starts a process under a limit.
fn under<F>(limit: &MemoryLimit, body: F) -> Result<JoinHandle<F::Output>, Failure>
where
    F: Future<Output: Send> + Send + 'static,
{
    Spawn::new().memory(limit).start(body).map_err(not_started)
}

/// Takes memory, block by block, until it is refused some.
fn eat(bytes: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let mut block = Vec::new();
        if all.try_reserve(1).is_err() || block.try_reserve_exact(bytes).is_err() {
            return all;
        }
        block.push(1);
        all.push(block);
    }
}

/// Takes memory until that cannot be refused.
fn devour() -> usize {
    let mut all = Vec::new();
    loop {
        all.push(Box::new(black_box([1_u8; 500])));
        if black_box(all.len()) == usize::MAX {
            return all.len();
        }
    }
}

/// Waits until that much is in use, or less.
async fn falls_to(limit: &MemoryLimit, bytes: usize) -> Outcome {
    let falls = async {
        while limit.used() > bytes {
            sched::yield_now().await;
        }
    };
    let what = |_| Failure(alloc::format!("{} bytes are in use, not {bytes}", limit.used()));
    time::background_timeout(HANGS_AFTER, falls).await.map_err(what)
}

kernel_test! {
    /// Beyond its limit a process is refused, to the last block; what it frees it can have again; others have memory meanwhile.
    #[machine("isolation")]
    async fn who_can_be_refused_is() -> Outcome {
        let limit = limit(LIMIT)?;
        ensure_eq!((limit.used(), limit.bytes(), limit.most_used()), (0, LIMIT, 0), "a new limit");
        for bytes in [1, 100, 3000, 50_000] {
            let glutton = under(&limit, async move {
                for _ in 0..20 {
                    let all = black_box(eat(bytes));
                    ensure!(all.len() * bytes.max(64) > LIMIT / 3, "{} blocks of {bytes} bytes are all", all.len());
                    sched::yield_now().await;
                    ensure!(all.iter().all(|block| block[0] == 1), "somebody wrote into a block");
                }
                let all = black_box(eat(bytes));
                // Others are not refused, though nothing is left here.
                let other = Spawn::new().memory(&MemoryLimit::new(LIMIT)?).start(async { eat(100).len() });
                ensure!(other.map_err(not_started)?.await? > 1000, "another was refused");
                drop(all);
                Ok::<_, Failure>(())
            })?;
            while !glutton.process().is_done() {
                let free = black_box(Vec::<u8>::with_capacity(4 * LIMIT));
                drop(free);
                sched::yield_now().await;
            }
            glutton.await??;
            ensure!(limit.most_used() <= LIMIT && limit.most_used() > LIMIT / 2, "{} at most", limit.most_used());
            falls_to(&limit, 0).await?;
        }
        Ok(())
    }
}

/// Lets gluttons crash with all that their limit allows. Whether that comes back: after a collection at the latest, unless a word somewhere
/// that is stale, and looks like a pointer, keeps it as long as it stands there.
async fn gluttons_leave_nothing() -> Result<bool, Failure> {
    let limit = limit(LIMIT)?;
    for _ in 0..amount("gluttons", 8) {
        let before = crash::total();
        let started = Spawn::new().memory(&limit).start(async { devour() });
        let glutton = match started {
            Ok(glutton) => glutton,
            // What the ones before have left was not collected yet.
            Err(SpawnError::OutOfMemory) => {
                time::sleep(Duration::from_millis(2)).await;
                continue;
            }
            Err(error) => return Err(not_started(error)),
        };
        ensure_eq!(glutton.await, Err(JoinError::Crashed), "the glutton's end");
        ensure!(crash::total() > before, "no crash is on record");
        ensure_eq!(
            crash::last().map(|record| record.kind),
            Some(CrashKind::OutOfMemory),
            "what is on record"
        );
    }
    // All may stand still for as long as a busy host takes to look through memory.
    let _no_limit = Changed::new(&[(Setting::CollectMicroseconds, 600_000_000)])?;
    let before = magpie::stats::collections().finished;
    while limit.used() > LIMIT / 2 && magpie::stats::collections().finished < before + 2 {
        // Whoever is refused asks for a collection.
        let asks = Spawn::new().memory(&limit).start(async { drop(black_box(eat(3000))) });
        if let Ok(asks) = asks {
            let _ = asks.await;
        }
        time::sleep(Duration::from_millis(2)).await;
    }
    Ok(limit.used() <= LIMIT / 2)
}

kernel_test! {
    /// What cannot be refused ends the process, alone and on record; what it had comes back, so that the next one can live. As for other
    /// gluttons (`orphans`), one of several may be held by a word that is stale.
    #[machine("isolation")]
    async fn who_cannot_be_refused_ends_alone() -> Outcome {
        const TRIES: usize = 4;
        let stop = Arc::new(AtomicBool::new(false));
        let others: Vec<_> = (0..machine::cores())
            .map(|_| {
                let stop = stop.clone();
                sched::spawn(async move {
                    while !stop.load(Ordering::Acquire) {
                        drop(black_box(Vec::<u8>::with_capacity(2 * LIMIT)));
                        sched::yield_now().await;
                    }
                })
            })
            .collect::<Result<_, _>>()
            .map_err(not_started)?;
        let mut came_back = false;
        for _ in 0..TRIES {
            came_back = gluttons_leave_nothing().await?;
            if came_back {
                break;
            }
        }
        stop.store(true, Ordering::Release);
        for other in others {
            other.await?;
        }
        ensure!(came_back, "none of {TRIES} came back, {:?}", magpie::stats::collections());
        Ok(())
    }
}

kernel_test! {
    /// What is sent away is charged until the receiver has dropped it, on whichever core.
    #[machine("isolation")]
    async fn what_is_sent_away_comes_back() -> Outcome {
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            let limit = limit(LIMIT)?;
            let mut inbox = ProcessMailbox::<Vec<u8>>::new(4).map_err(|error| Failure(alloc::format!("{error}")))?;
            let address = inbox.address();
            let receiver = Spawn::new().pinned(core).start(async move {
                let (mut kept, mut sum) = (Vec::new(), 0);
                while let Some(load) = inbox.receive().await {
                    sum += load.len();
                    if load.len() == 1 {
                        break;
                    }
                    kept.push(load);
                }
                (kept, sum)
            });
            let receiver = receiver.map_err(not_started)?;
            let sender = under(&limit, async move {
                for length in [5000, 100, 60_000, 1] {
                    let mut load = Vec::new();
                    // Through reallocations, on the way.
                    (0..length).for_each(|_| load.push(7));
                    if address.send(load).is_err() {
                        return false;
                    }
                }
                true
            })?;
            ensure!(sender.await?, "a message was refused");
            let (kept, sum) = receiver.await?;
            ensure_eq!(sum, 65_101, "bytes that were received");
            ensure!(limit.used() >= 65_100, "{} in use, while the receiver's result has them", limit.used());
            ensure!(limit.used() < 65_536 * 2 + 8192 + A_PROCESS, "{} in use", limit.used());
            drop(kept);
            falls_to(&limit, 0).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// What a process starts has its limit, and so has what that starts; a process itself counts, and one that is given another limit
    /// is charged to that.
    #[machine("isolation")]
    async fn what_is_started_has_the_same_limit() -> Outcome {
        let (limit, own) = (limit(LIMIT)?, limit(LIMIT)?);
        let given = Spawn::new().memory(&own);
        let family = under(&limit, async move {
            let child = sched::spawn(async move {
                let mut idle = Vec::new();
                // Until one more is refused.
                while let Ok(process) = sched::spawn(async { core::future::pending::<()>().await }) {
                    idle.push(process);
                }
                let other = given.start(async { eat(100).len() });
                let count = idle.len();
                idle.iter().for_each(|process| {
                    process.process().kill();
                });
                for process in idle {
                    let _ = process.await;
                }
                (count, other)
            });
            let (count, other) = child.map_err(not_started)?.await?;
            ensure!(count > 50 && count < LIMIT / 64, "{count} processes in the limit");
            ensure!(other.map_err(not_started)?.await? > 1000, "the one with a limit of its own");
            Ok::<_, Failure>(())
        })?;
        family.await??;
        falls_to(&limit, 0).await?;
        falls_to(&own, 0).await
    }
}

/// An actor that keeps what it is told to take, and says whether it got it.
struct Keeper(Vec<Vec<u8>>);

impl Actor for Keeper {}

struct Keep(usize);

impl Receive<Keep> for Keeper {
    type Reply = bool;

    fn receive(&mut self, Keep(bytes): Keep, _: &mut Context<Self>) -> bool {
        let mut load = Vec::new();
        if load.try_reserve_exact(bytes).is_err() || self.0.try_reserve(1).is_err() {
            return false;
        }
        load.resize(bytes, 1);
        self.0.push(load);
        true
    }
}

struct Crash;

impl Receive<Crash> for Keeper {
    type Reply = ();

    fn receive(&mut self, _: Crash, _: &mut Context<Self>) {
        black_box(devour());
    }
}

kernel_test! {
    /// The actors of an executor share its limit, on every core, suspended or stolen; those of another have memory.
    #[machine("isolation")]
    async fn actors_share_their_executors_limit() -> Outcome {
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        let (limit, others) = (limit(LIMIT)?, Executor::start(&Config::default())?);
        let executor = Executor::start(&Config::default().memory(&limit))?;
        let workers = limit.used();
        ensure!(workers > 0 && workers < 1024 * machine::cores(), "{workers} bytes for the workers");
        let modest: Vec<_> = (0..16).map(|_| executor.handle().spawn(Keeper(Vec::new()))).collect::<Result<_, _>>()?;
        let free = others.handle().spawn(Keeper(Vec::new()))?;
        let (mut kept, mut refused) = (0, 0);
        for round in 0..40 {
            let answers: Vec<_> = modest.iter().map(|keeper| keeper.ask(Keep(1000))).collect();
            for answer in answers {
                if answer.await? { kept += 1 } else { refused += 1 }
            }
            ensure!(free.ask(Keep(LIMIT)).await?, "an actor without a limit was refused in round {round}");
        }
        ensure!(refused > 100 && kept > LIMIT / 2048, "{kept} were kept, {refused} refused");
        ensure!(limit.used() >= kept * 1000 && limit.most_used() <= LIMIT, "{} in use", limit.used());
        ensure!(modest[0].ask(Crash).await.is_err(), "a glutton was answered");
        ensure!(!modest[1].ask(Keep(LIMIT)).await?, "more than there is");
        executor.stop().await;
        others.stop().await;
        // What is left is what the one that crashed had.
        falls_to(&limit, LIMIT / 2).await
    }
}

kernel_test! {
    /// An executor that was stopped is charged for nothing any more, though no other is started.
    #[machine("isolation")]
    async fn an_executor_gives_all_back_when_it_stops() -> Outcome {
        let limit = limit(LIMIT)?;
        for round in 0..3 {
            let executor = Executor::start(&Config::default().memory(&limit).own_mailboxes(1))?;
            for _ in 0..20 {
                let keeper = executor.handle().spawn(Keeper(Vec::new()))?;
                ensure!(keeper.ask(Keep(500)).await?, "refused in round {round}");
            }
            ensure!(limit.used() >= 10_000, "{} bytes are in use", limit.used());
            executor.stop().await;
            falls_to(&limit, 0).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// Preempted, suspended and moved to other cores, everyone goes on paying for oneself alone.
    #[machine("isolation")]
    async fn everyone_pays_for_oneself() -> Outcome {
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        let limits: Vec<_> = (0..6).map(|_| limit(LIMIT)).collect::<Result<_, _>>()?;
        let mut all = Vec::new();
        for (number, limit) in limits.iter().enumerate() {
            for _ in 0..3 {
                all.push(under(limit, async move {
                    let mut kept: Vec<Vec<u8>> = Vec::new();
                    for round in 0..amount("payers", 400) as usize {
                        let mut block = Vec::new();
                        (0..64 + number * 100 + round % 50).for_each(|_| block.push(round as u8));
                        if kept.len() < 20 { kept.push(block) } else { kept[round % 20] = block }
                        if round % 3 == 0 {
                            sched::yield_now().await;
                        }
                    }
                    kept
                })?);
            }
            // One that pays for nothing.
            all.push(sched::spawn(async { (0..2000).map(|_| black_box(Vec::<u8>::with_capacity(300))).take(1).collect() }).map_err(not_started)?);
        }
        let mut results = Vec::new();
        for process in all {
            results.push(process.await?);
        }
        for (number, limit) in limits.iter().enumerate() {
            let blocks = results[4 * number..4 * number + 3].iter();
            // What each of them has, at least; and not as much as any other's would be, too.
            let bytes: usize = blocks.map(|kept| kept.iter().map(|block| block.capacity().max(64)).sum::<usize>()).sum();
            let most = bytes + bytes / 3 + 3 * (1024 + A_PROCESS);
            ensure!(limit.used() >= bytes && limit.used() <= most, "{} in use for {bytes} bytes", limit.used());
        }
        drop(results);
        for limit in &limits {
            falls_to(limit, 0).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// There are 255 at a time, which is an error and no crash; a number whose limit was dropped serves again when all is back, and not before.
    #[machine("isolation")]
    async fn numbers_are_used_again() -> Outcome {
        let mut all = Vec::new();
        let error = loop {
            match MemoryLimit::new(LIMIT) {
                Ok(limit) => all.push(limit),
                Err(error) => break error,
            }
        };
        ensure_eq!(error, LimitError::TooMany, "why there is no other");
        // Memory that crashes in other tests have left may still be charged to some.
        ensure!((240..=255).contains(&all.len()), "{} limits at a time", all.len());
        let Some(limit) = all.pop() else { return Ok(()) };
        let how = Spawn::new().memory(&limit);
        let (idle, load) = (under(&limit, core::future::pending::<()>())?, under(&limit, async { eat(1000) })?);
        let load = load.await?;
        ensure!(load.len() > 100, "{} blocks", load.len());
        drop(limit);
        ensure_eq!(MemoryLimit::new(1).err(), Some(LimitError::TooMany), "while memory is out");
        // It is still in force for who has it.
        ensure_eq!(how.start(async { eat(1000).len() }).map_err(not_started)?.await, Ok(0), "what is left");
        drop(load);
        ensure_eq!(MemoryLimit::new(1).err(), Some(LimitError::TooMany), "while a process has it");
        idle.process().kill();
        let _ = idle.await;
        let again = async {
            loop {
                match MemoryLimit::new(5000) {
                    Ok(limit) => return limit,
                    Err(_) => sched::yield_now().await,
                }
            }
        };
        let again = time::background_timeout(HANGS_AFTER, again).await.map_err(|_| Failure("its number is lost".into()))?;
        ensure_eq!((again.used(), again.bytes(), again.most_used()), (0, 5000, 0), "its next life");
        ensure_eq!(how.start(async {}).err(), Some(SpawnError::LimitDropped), "its life before");
        let config = Config::default().memory(&again);
        drop((again, all));
        ensure!(matches!(Executor::start(&config), Err(StartError::LimitDropped)), "an executor with one that was dropped");
        for round in 0..10_000 {
            let limit = MemoryLimit::new(round + 1).map_err(|_| Failure(alloc::format!("none in round {round}")))?;
            ensure_eq!((limit.used(), limit.bytes()), (0, round + 1), "a new one");
            if round % 50 == 0 && round > A_PROCESS {
                under(&limit, async { black_box(Vec::<u8>::with_capacity(100)).len() })?.await?;
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// A limit of nothing refuses all, whatever is to be started.
    #[machine("isolation")]
    async fn nothing_is_started_with_nothing() -> Outcome {
        let none = limit(0)?;
        ensure_eq!(Spawn::new().memory(&none).start(async {}).err(), Some(SpawnError::OutOfMemory), "a process");
        let executor = Executor::start(&Config::default().memory(&none));
        ensure!(matches!(executor, Err(StartError::OutOfMemory)), "an executor");
        ensure_eq!((none.used(), none.most_used()), (0, 0), "what was charged");
        let much = limit(usize::MAX)?;
        ensure_eq!(much.bytes(), MemoryLimit::MOST, "the largest");
        let refused = under(&much, async { Vec::<u8>::new().try_reserve(isize::MAX as usize).is_err() })?;
        ensure!(refused.await?, "more than any machine has");
        falls_to(&much, 0).await
    }
}

kernel_test! {
    /// A supervisor's child that crashes of its limit is started anew within it.
    #[machine("isolation")]
    async fn a_child_lives_again_within_its_limit() -> Outcome {
        let limit = Arc::new(limit(8 * LIMIT)?);
        let lives = Arc::new(core::sync::atomic::AtomicU64::new(0));
        let counts = lives.clone();
        let child = Child::process("glutton", move |_| {
            let counts = counts.clone();
            async move {
                if counts.fetch_add(1, Ordering::AcqRel) < 3 {
                    black_box(Way::Panic).crash();
                    black_box(Vec::<u8>::with_capacity(black_box(9 * LIMIT)));
                }
            }
        });
        let supervisor = Supervisor::one_for_one().child(child.transient().with(Spawn::new().memory(&limit)));
        let running = supervisor.start().map_err(|error| Failure(alloc::format!("{error}")))?;
        let lived = async {
            while lives.load(Ordering::Acquire) < 4 {
                sched::yield_now().await;
            }
        };
        let lived = time::background_timeout(HANGS_AFTER, lived).await;
        ensure!(lived.is_ok(), "it had {} lives", lives.load(Ordering::Acquire));
        let _ = running.stop().await;
        falls_to(&limit, LIMIT).await
    }
}
