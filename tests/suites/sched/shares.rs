//! Shares of CPU time: what is in one is put aside when nothing is left, whatever it is and does, and comes back. No verdict depends on
//! how long anything takes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::pending;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::machine;
use magpie::mutex::{Mutex, Poisoned};
use magpie::sched::{self, CpuShare, JoinError, JoinHandle, Priority, Spawn};
use magpie::time::{self, Instant};
use magpie_tests::{Failure, HANGS_AFTER, Outcome, amount, ensure, ensure_eq, kernel_test};

/// So often something is put aside before a test is content.
const OFTEN: u64 = 10;

#[derive(Default)]
struct Signs {
    spins: AtomicU64,
    stop: AtomicBool,
}

impl Signs {
    fn spin(&self) {
        while !self.stop.load(Ordering::Acquire) {
            self.spins.fetch_add(1, Ordering::Relaxed);
            spin_loop();
        }
    }
}

/// A tenth of a core's time.
fn tenth() -> Result<CpuShare, Failure> {
    Ok(CpuShare::percent(10)?)
}

fn hog(share: &CpuShare, how: Spawn, signs: &Arc<Signs>) -> Result<JoinHandle<()>, Failure> {
    let signs = signs.clone();
    Ok(share.start(how, async move { signs.spin() })?)
}

async fn until(mut is_so: impl FnMut() -> bool, what: &'static str) -> Outcome {
    let waiting = async {
        while !is_so() {
            sched::yield_now().await;
        }
    };
    match time::background_timeout(HANGS_AFTER, waiting).await {
        Ok(()) => Ok(()),
        Err(_) => Err(what.into()),
    }
}

async fn until_put_aside(share: &CpuShare, times: u64) -> Outcome {
    until(|| share.usage().put_aside >= times, "nothing was put aside").await
}

/// What is used of a share is what its periods give, and what the longest turns took beyond.
fn within(share: &CpuShare, each: Duration, period: Duration, began: Instant) -> Outcome {
    let usage = share.usage();
    let periods = began.elapsed().as_nanos() / period.as_nanos() + 1;
    let most = each * periods as u32 + usage.most + Duration::from_micros(1);
    ensure!(usage.total <= most, "{} us used of {} us", usage.total.as_micros(), most.as_micros());
    Ok(())
}

kernel_test! {
    /// While the account says that the hog is aside it makes no step, though nobody else wants its core; and it goes on later.
    #[machine("preemption")]
    async fn a_hog_stands_still_while_it_is_aside() -> Outcome {
        let (began, share, signs) = (Instant::now(), tenth()?, Arc::new(Signs::default()));
        let hog = hog(&share, Spawn::new(), &signs)?;
        let (mut still, mut moved, mut last) = (0, 0, 0);
        until(
            || {
                let before = share.usage();
                let first = signs.spins.load(Ordering::Acquire);
                (0..1000).for_each(|_| spin_loop());
                let second = signs.spins.load(Ordering::Acquire);
                let after = share.usage();
                if (before.aside, before.put_aside) == (1, after.put_aside) && after.aside == 1 {
                    still += 1;
                    if first != second {
                        moved = u64::MAX / 2;
                    }
                    if first != last {
                        moved += 1;
                        last = first;
                    }
                }
                still >= 100 && moved >= OFTEN
            },
            "it was not seen aside",
        )
        .await?;
        ensure!(moved < u64::MAX / 2, "it went on while it was aside");
        signs.stop.store(true, Ordering::Release);
        hog.await?;
        ensure_eq!(share.usage().aside, 0, "processes aside at the end");
        within(&share, CpuShare::PERIOD / 10, CpuShare::PERIOD, began)
    }
}

kernel_test! {
    /// One of priority `High` in a share spins until a `Normal` one on its core has had its turns, which it would never have else.
    #[machine("preemption")]
    async fn an_urgent_hog_in_a_share_leaves_time_to_others() -> Outcome {
        let share = tenth()?;
        let how = Spawn::new().priority(Priority::High).pinned(CoreId::BOOT);
        for how in [how, how.deadline(Duration::from_millis(1))] {
            let signs = Arc::new(Signs::default());
            let hog = hog(&share, how, &signs)?;
            let other = Spawn::new().priority(Priority::Low).pinned(CoreId::BOOT).start({
                let signs = signs.clone();
                async move {
                    for _ in 0..100 {
                        sched::yield_now().await;
                    }
                    signs.stop.store(true, Ordering::Release);
                }
            })?;
            other.await?;
            hog.await?;
        }
        ensure!(share.usage().put_aside >= 1, "nothing was put aside");
        Ok(())
    }
}

kernel_test! {
    /// Many take turns in one share, on all cores, and as many do so outside: all come to their ends.
    async fn a_crowd_in_a_share_ends() -> Outcome {
        let (began, turns) = (Instant::now(), amount("turns", 200));
        let (each, period) = (Duration::from_micros(500), Duration::from_millis(1));
        let share = CpuShare::new(each, period)?;
        let count = Arc::new(AtomicU64::new(0));
        let mut all = Vec::new();
        for number in 0..100 {
            let count = count.clone();
            let body = async move {
                for _ in 0..turns {
                    count.fetch_add(1, Ordering::AcqRel);
                    sched::yield_now().await;
                }
            };
            all.push(if number % 2 == 0 { share.start(Spawn::new(), body)? } else { sched::spawn(body)? });
        }
        for process in all {
            process.await?;
        }
        ensure_eq!(count.load(Ordering::Acquire), 100 * turns, "turns");
        within(&share, each, period, began)
    }
}

kernel_test! {
    /// One that is aside is work: the system has not run out of it.
    async fn one_that_is_aside_is_work() -> Outcome {
        let share = CpuShare::new(Duration::from_micros(20), Duration::from_millis(2))?;
        let done = Arc::new(AtomicBool::new(false));
        let process = share.start(Spawn::new(), {
            let (share, done) = (share.clone(), done.clone());
            async move {
                while share.usage().put_aside < OFTEN {
                    sched::yield_now().await;
                }
                done.store(true, Ordering::Release);
            }
        })?;
        sched::out_of_work().await;
        ensure!(done.load(Ordering::Acquire), "the system was out of work while one was aside");
        process.await?;
        Ok(())
    }
}

kernel_test! {
    /// Killed while they are aside, in a turn, or while they wait, all end; one that crashes does, too, and the share serves others.
    #[machine("preemption")]
    async fn what_is_killed_in_a_share_ends() -> Outcome {
        let share = CpuShare::new(Duration::from_micros(500), Duration::from_millis(1))?;
        for round in 1..=OFTEN {
            let signs = Arc::new(Signs::default());
            let hogs = [hog(&share, Spawn::new(), &signs)?, hog(&share, Spawn::new(), &signs)?];
            let waiter = share.start(Spawn::new(), pending::<()>())?;
            let owned = signs.clone();
            let yielder = share.start(Spawn::new(), async move {
                let _owned = owned;
                loop {
                    sched::yield_now().await;
                }
            })?;
            let crasher = share.start(Spawn::new(), async {
                if core::hint::black_box(true) {
                    panic!("on purpose");
                }
            })?;
            ensure_eq!(crasher.await, Err(JoinError::Crashed), "how the one that crashes ended");
            until_put_aside(&share, round * 4).await?;
            for hog in &hogs {
                hog.process().kill();
            }
            waiter.process().kill();
            yielder.process().kill();
            for hog in hogs {
                ensure_eq!(hog.await, Err(JoinError::Killed), "how a hog ended");
            }
            ensure_eq!(waiter.await, Err(JoinError::Killed), "how the one that waits ended");
            ensure_eq!(yielder.await.err(), Some(JoinError::Killed), "how the one that yields ended");
        }
        sched::out_of_work().await;
        ensure_eq!(share.usage().aside, 0, "processes aside at the end");
        Ok(())
    }
}

struct Spinner(Arc<Signs>);

impl Actor for Spinner {}

struct Spin;

impl Receive<Spin> for Spinner {
    type Reply = ();

    fn receive(&mut self, _: Spin, _: &mut Context<Self>) {
        self.0.spin();
    }
}

impl Receive<u64> for Spinner {
    type Reply = ();

    fn receive(&mut self, left: u64, context: &mut Context<Self>) {
        self.0.spins.fetch_add(1, Ordering::Relaxed);
        if left > 0 {
            let _ = context.address().send(left - 1);
        }
    }
}

kernel_test! {
    /// What one in a share starts is in it: a process, an executor with its workers, a behaviour of those that spins. Their mail is all
    /// handled, and an executor stops.
    #[machine("preemption")]
    async fn a_share_is_for_a_whole_subtree() -> Outcome {
        let (began, share, messages) = (Instant::now(), tenth()?, amount("messages", 20_000));
        let signs = Arc::new(Signs::default());
        let root = share.start(Spawn::new(), {
            let signs = signs.clone();
            async move {
                let child = sched::spawn({
                    let signs = signs.clone();
                    async move { signs.spin() }
                });
                (child, Executor::start(&Config::default()))
            }
        })?;
        let (child, executor) = root.await?;
        let (child, executor) = (child?, executor?);
        until(|| share.usage().aside >= 1, "the child was not put aside").await?;
        let behaviour = Arc::new(Signs::default());
        let spinner = executor.handle().spawn(Spinner(behaviour.clone())).map_err(|error| error.without_actor())?;
        let counted = Arc::new(Signs::default());
        let counter = executor.handle().spawn(Spinner(counted.clone())).map_err(|error| error.without_actor())?;
        spinner.send(Spin)?;
        counter.send(messages - 1)?;
        signs.stop.store(true, Ordering::Release);
        child.await?;
        // The behaviour alone, from now on.
        let before = share.usage().put_aside;
        until_put_aside(&share, before + OFTEN).await?;
        behaviour.stop.store(true, Ordering::Release);
        sched::out_of_work().await;
        ensure_eq!(counted.spins.load(Ordering::Acquire), messages, "messages handled");
        ensure!(spinner.is_alive() && counter.is_alive(), "an actor has ended");
        // And one that goes on for ever is killed when its executor stops.
        let endless = Arc::new(Signs::default());
        let hog = executor.handle().spawn(Spinner(endless.clone())).map_err(|error| error.without_actor())?;
        hog.send(Spin)?;
        until(|| endless.spins.load(Ordering::Acquire) > 0, "it did not begin").await?;
        let stopped = executor.stop_within(Duration::from_millis(20)).await;
        ensure_eq!(stopped.killed(), 1, "behaviours that were killed");
        within(&share, CpuShare::PERIOD / 10, CpuShare::PERIOD, began)
    }
}

kernel_test! {
    /// Hundreds wait for a small share, and each of its periods moves few of them: else the share would cost more than it gives. Each
    /// has turns, and all end when they are killed.
    #[machine("preemption")]
    async fn a_large_crowd_costs_little_while_it_is_aside() -> Outcome {
        let crowd = amount("crowd", 500);
        let (began, share) = (Instant::now(), CpuShare::new(Duration::from_micros(100), Duration::from_millis(10))?);
        let (mut all, mut turns) = (Vec::new(), Vec::new());
        for _ in 0..crowd {
            let own = Arc::new(AtomicU64::new(0));
            turns.push(own.clone());
            let body = async move {
                loop {
                    own.fetch_add(1, Ordering::AcqRel);
                    sched::yield_now().await;
                }
            };
            all.push(share.start(Spawn::new(), body)?);
        }
        let had_turns = |own: &Arc<AtomicU64>| own.load(Ordering::Acquire) > 2;
        until(|| turns.iter().all(had_turns), "somebody had no turns").await?;
        // Each at first, two for each turn, and as many as come back when a period begins.
        let put_aside = share.usage().put_aside;
        let begun: u64 = turns.iter().map(|own| own.load(Ordering::Acquire)).sum();
        let periods = (began.elapsed().as_nanos() / 10_000_000) as u64 + 2;
        let most = 2 * begun + crowd + periods * 2 * machine::cores() as u64;
        ensure!(put_aside <= most, "{put_aside} put aside, {most} at most, in {periods} periods with {begun} turns");
        for process in &all {
            process.process().kill();
        }
        for process in all {
            ensure_eq!(process.await.err(), Some(JoinError::Killed), "how one ended");
        }
        until(|| share.usage().aside == 0, "somebody is aside").await
    }
}

static HELD: Mutex<u64> = Mutex::new(0);

kernel_test! {
    /// One that is aside holds a mutex: who waits for that has it later, or is told when the holder is killed there.
    #[machine("preemption")]
    async fn a_mutex_is_held_while_its_holder_is_aside() -> Outcome {
        let (share, signs) = (tenth()?, Arc::new(Signs::default()));
        let holds = share.start(Spawn::new(), {
            let signs = signs.clone();
            async move {
                if let Ok(mut held) = HELD.lock().await {
                    signs.spin();
                    *held += 1;
                }
            }
        })?;
        // A host that is busy can take all that the share gives before the mutex is reached, again and again.
        until(|| signs.spins.load(Ordering::Acquire) > 0, "it did not begin").await?;
        let before = share.usage().put_aside;
        until_put_aside(&share, before + 3).await?;
        let waits = sched::spawn(async { HELD.lock().await.map(|held| *held) })?;
        until_put_aside(&share, before + 5).await?;
        ensure!(!waits.process().is_done(), "the mutex was free");
        signs.stop.store(true, Ordering::Release);
        ensure_eq!(waits.await?, Ok(1), "what the mutex guards");
        holds.await?;

        let (poisoned, signs) = (Arc::new(Mutex::new(())), Arc::new(Signs::default()));
        let holds = share.start(Spawn::new(), {
            let (poisoned, signs) = (poisoned.clone(), signs.clone());
            async move {
                let _held = poisoned.lock().await;
                signs.spin();
            }
        })?;
        until(|| signs.spins.load(Ordering::Acquire) > 0 && share.usage().aside > 0, "it is not aside").await?;
        let waits = sched::spawn(async move { poisoned.lock().await.map(|_| ()) })?;
        holds.process().kill();
        ensure_eq!(holds.await, Err(JoinError::Killed), "how the holder ended");
        ensure_eq!(waits.await?, Err(Poisoned), "what the other is told");
        Ok(())
    }
}

kernel_test! {
    /// Cores leave and come back while hogs are aside.
    #[machine("preemption")]
    async fn those_aside_outlast_their_cores() -> Outcome {
        let Some(last) = CoreId::new(machine::cores() - 1).filter(|last| *last != CoreId::BOOT) else { return Ok(()) };
        let (share, signs) = (CpuShare::percent(50)?, Arc::new(Signs::default()));
        let hogs = [hog(&share, Spawn::new(), &signs)?, hog(&share, Spawn::new(), &signs)?];
        for round in 1..=OFTEN {
            until_put_aside(&share, round).await?;
            until(|| sched::offline(last).is_ok(), "the core could not be taken out of service").await?;
            until_put_aside(&share, share.usage().put_aside + 1).await?;
            until(|| sched::online(last).is_ok(), "the core did not come back").await?;
        }
        signs.stop.store(true, Ordering::Release);
        for hog in hogs {
            hog.await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// Nobody has to be careful with numbers.
    async fn any_share_is_one() -> Outcome {
        for share in [
            CpuShare::percent(0)?,
            CpuShare::percent(u32::MAX)?,
            CpuShare::new(Duration::ZERO, Duration::ZERO)?,
            CpuShare::new(Duration::MAX, Duration::MAX)?,
            CpuShare::new(Duration::MAX, Duration::ZERO)?,
        ] {
            let sum = share.start(Spawn::new(), async { 40 + 2 })?;
            ensure_eq!(sum.await, Ok(42), "a sum");
        }
        // What has next to nothing may be killed.
        let none = CpuShare::new(Duration::ZERO, Duration::from_millis(20))?;
        let process = none.start(Spawn::new(), async {
            loop {
                sched::yield_now().await;
            }
        })?;
        process.process().kill();
        let ended = time::background_timeout(HANGS_AFTER, process).await;
        ensure!(matches!(ended, Ok(Err(JoinError::Killed))), "it did not end");
        Ok(())
    }
}
