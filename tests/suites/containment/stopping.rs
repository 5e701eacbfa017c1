//! The stop of an executor: it comes to its end whoever waits for it, or does not any more; and what is killed while it starts one leaves none
//! behind.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, pending, poll_fn};
use core::hint::{black_box, spin_loop};
use core::pin::pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, ExecutorHandle, Receive, StartError};
use magpie::channel::ProcessMailbox;
use magpie::sched::{self, Priority, Setting, Spawn};
use magpie::supervise::{Backoff, Child, Supervisor};
use magpie::watch::{Ended, Exit};
use magpie::{machine, time};
use magpie_tests::{Failure, HANGS_AFTER, HeapExhauster, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::ways::{Way, linger};

/// How long what goes on for ever may take here.
const LIMIT: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Log {
    drops: AtomicU64,
    spinning: AtomicU64,
}

/// Counts its end; the way, if it has one, is how its destructor fails.
struct Tenant(Arc<Log>, Option<Way>);

impl Drop for Tenant {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, Ordering::AcqRel);
        if let Some(way) = self.1 {
            way.crash();
        }
    }
}

impl Actor for Tenant {}

impl Receive<bool> for Tenant {
    type Reply = ();

    fn receive(&mut self, for_ever: bool, _: &mut Context<Self>) {
        self.0.spinning.fetch_add(1, Ordering::AcqRel);
        if for_ever {
            loop {
                spin_loop();
            }
        }
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) -> Outcome {
    let waiting = async {
        while !holds() {
            time::sleep(Duration::from_micros(200)).await;
        }
    };
    time::background_timeout(HANGS_AFTER, waiting)
        .await
        .map_err(|_| Failure(alloc::format!("it does not come to hold: {what}")))
}

/// An executor with actors, mail, and one behaviour that goes on for ever where that can be ended.
struct House {
    executor: Executor,
    handle: ExecutorHandle,
    log: Arc<Log>,
    ends: ProcessMailbox<Ended>,
    tenants: u64,
}

async fn furnish(failing: &[Way]) -> Result<House, Failure> {
    let executor = Executor::start(&Config::default())?;
    let handle = executor.handle().clone();
    let log = Arc::new(Log::default());
    let ends = ProcessMailbox::<Ended>::new(10)?;
    let mut tenants = 0;
    for way in (0..20).map(|number| failing.get(number).copied()) {
        let tenant = handle.spawn(Tenant(log.clone(), way))?;
        tenant.watch(&ends.address())?;
        tenant.send(false)?;
        tenants += 1;
    }
    let hog = handle.spawn(Tenant(log.clone(), None))?;
    hog.watch(&ends.address())?;
    hog.send(cfg!(target_os = "none"))?;
    until("all have begun", || log.spinning.load(Ordering::Acquire) == tenants + 1).await?;
    Ok(House { executor, handle, log, ends, tenants: tenants + 1 })
}

/// Each actor's end is told once, all destructors but that of the one that was killed have run, and no process is left.
async fn all_is_cleared(
    house: (ExecutorHandle, Arc<Log>, ProcessMailbox<Ended>, u64),
    before: u64,
) -> Outcome {
    let (handle, log, mut ends, tenants) = house;
    let mut killed = 0;
    for _ in 0..tenants {
        match time::background_timeout(HANGS_AFTER, ends.receive()).await {
            Ok(Some(ended)) => killed += u64::from(ended.exit() == Exit::Killed),
            _ => return Err("somebody was not told of an end".into()),
        }
    }
    ensure_eq!(killed, u64::from(cfg!(target_os = "none")), "how many were killed");
    until("all processes have ended", || sched::live_processes() == before).await?;
    ensure_eq!(handle.live_actors(), 0, "actors that live");
    ensure_eq!(log.drops.load(Ordering::Acquire), tenants - killed, "destructors that ran");
    Ok(())
}

impl House {
    fn split(self) -> (Executor, (ExecutorHandle, Arc<Log>, ProcessMailbox<Ended>, u64)) {
        (self.executor, (self.handle, self.log, self.ends, self.tenants))
    }
}

kernel_test! {
    /// The future of a stop is dropped without a poll, and after each number of them: the stop comes to its end all the same.
    #[machine("preemption")]
    async fn a_stop_that_nobody_awaits_ends() -> Outcome {
        for polls in 0..8 {
            sched::out_of_work().await;
            let before = sched::live_processes();
            let (executor, house) = furnish(&[]).await?.split();
            {
                let mut stopping = pin!(executor.stop_within(LIMIT));
                let late = house.0.spawn(Tenant(house.1.clone(), None));
                ensure!(late.is_err(), "an actor was spawned after the call");
                // That one is dropped here.
                drop(late);
                house.1.drops.fetch_sub(1, Ordering::AcqRel);
                for _ in 0..polls {
                    poll_fn(|context| {
                        let _ = stopping.as_mut().poll(context);
                        Poll::Ready(())
                    })
                    .await;
                    time::sleep(LIMIT / 4).await;
                }
            }
            all_is_cleared(house, before).await.map_err(|Failure(text)| Failure(alloc::format!("{polls} polls: {text}")))?;
        }
        Ok(())
    }
}

kernel_test! {
    /// Who waits for a stop is killed, while it waits and while it begins it; one of two goes, and the other is told.
    #[machine("preemption")]
    async fn whoever_waits_may_be_killed() -> Outcome {
        // Then it has begun, however busy the machine is.
        const LAST: u64 = 5;
        for delay in 0..=LAST {
            sched::out_of_work().await;
            let before = sched::live_processes();
            let (executor, house) = furnish(&[]).await?.split();
            let has_begun = Arc::new(AtomicBool::new(false));
            let begins = has_begun.clone();
            let waits = sched::spawn(async move {
                let stopping = executor.stop_within(LIMIT);
                begins.store(true, Ordering::Release);
                stopping.await
            })?;
            time::sleep(Duration::from_millis(2 * delay)).await;
            while delay == LAST && !has_begun.load(Ordering::Acquire) {
                sched::yield_now().await;
            }
            let begun = house.0.spawn(Tenant(house.1.clone(), None));
            if begun.is_err() {
                drop(begun);
                house.1.drops.fetch_sub(1, Ordering::AcqRel);
                waits.process().kill();
                let _ = waits.await;
                all_is_cleared(house, before).await?;
            } else {
                // It has not come to begin, on a busy machine.
                ensure!(delay < LAST, "a stop has not begun");
                house.1.drops.store(0, Ordering::Release);
                waits.await?;
            }
        }
        sched::out_of_work().await;
        let before = sched::live_processes();
        let (executor, house) = furnish(&[]).await?.split();
        let stopping = executor.stop_within(LIMIT);
        let others: Vec<_> = (0..6).map(|_| sched::spawn(stopping.clone())).collect::<Result<_, _>>()?;
        let mut stopped = None;
        for (number, other) in others.into_iter().enumerate() {
            if number % 3 == 0 {
                other.process().kill();
                let _ = other.await;
            } else {
                let seen = other.await?;
                ensure_eq!(*stopped.get_or_insert(seen), seen, "what two were told");
            }
        }
        ensure_eq!(Some(stopping.await), stopped, "what the last was told");
        all_is_cleared(house, before).await
    }
}

kernel_test! {
    /// Destructors crash while nobody waits, more than there are processes prepared for.
    #[machine("isolation")]
    async fn destructors_crash_meanwhile() -> Outcome {
        for waits in [false, true] {
            sched::out_of_work().await;
            let before = sched::live_processes();
            let failing = [Way::Panic, Way::Fault, Way::Overflow, Way::Panic, Way::Fault];
            let (executor, house) = furnish(&failing).await?.split();
            let stopping = executor.stop_within(LIMIT);
            if waits {
                ensure_eq!(stopping.await.killed(), 1, "how many were killed");
            }
            all_is_cleared(house, before).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// Memory is used up when a stop begins, and until it is over; destructors crash, too.
    #[machine("the kernel's heap")]
    async fn a_stop_needs_no_memory() -> Outcome {
        for failing in [&[][..], &[Way::Panic, Way::Fault]] {
            sched::out_of_work().await;
            let before = sched::live_processes();
            let (executor, house) = furnish(failing).await?.split();
            let mut exhauster = HeapExhauster::everything(16);
            let mut stopping = executor.stop_within(LIMIT);
            let over = async {
                while !stopping.is_over() {
                    exhauster.take_more(16);
                    sched::yield_now().await;
                }
            };
            let over = time::background_timeout(HANGS_AFTER, over).await;
            drop(exhauster);
            over.map_err(|_| "a stop waits for memory")?;
            let again = poll_fn(|context| Poll::Ready(pin!(&mut stopping).poll(context).is_ready())).await;
            ensure!(again, "a stop that is over is not seen so");
            all_is_cleared(house, before).await?;
        }
        Ok(())
    }
}

/// Starts executors and stops them, until it is killed.
async fn start_again_and_again(begun: Arc<AtomicU64>) {
    loop {
        begun.fetch_add(1, Ordering::AcqRel);
        let config = Config::default().mailboxes(64).own_mailboxes(20).owned(LIMIT);
        match Executor::start(&config) {
            Ok(executor) => drop(executor.stop()),
            Err(StartError::Ending) => {}
            Err(_) => sched::yield_now().await,
        }
    }
}

kernel_test! {
    /// Who starts executors is killed, wherever that is: none is left, nor a part of one.
    #[machine("preemption")]
    async fn whoever_starts_one_may_be_killed() -> Outcome {
        let slice = sched::setting(Setting::SliceMicroseconds);
        sched::set_setting(Setting::SliceMicroseconds, 50)?;
        sched::out_of_work().await;
        let before = sched::live_processes();
        for round in 0..amount("starts", 150) {
            let begun = Arc::new(AtomicU64::new(0));
            let priority = [Priority::Normal, Priority::Low][round as usize % 2];
            let starts = Spawn::new().priority(priority).start(start_again_and_again(begun.clone()))?;
            until("it has begun", || begun.load(Ordering::Acquire) > round % 4).await?;
            time::sleep(Duration::from_micros(37 * (round % 23))).await;
            starts.process().kill();
            let _ = starts.await;
        }
        let left = until("all processes have ended", || sched::live_processes() == before).await;
        sched::set_setting(Setting::SliceMicroseconds, slice)?;
        left?;
        // All numbers of mailboxes are there again.
        let config = Config::default().mailboxes(3000);
        Executor::start(&config)?.stop().await;
        Ok(())
    }
}

/// Starts an executor with ever less stack, until that is used up.
fn start_deeper(depth: u64) -> u64 {
    let frame = black_box([depth; 24]);
    if let Ok(executor) = Executor::start(&Config::default().workers(1).mailboxes(2).owned(LIMIT)) {
        drop(executor.stop());
    }
    if black_box(depth) == u64::MAX {
        return 0;
    }
    start_deeper(black_box(depth + 1)) + frame[(depth % 24) as usize]
}

kernel_test! {
    /// Stack runs out in the middle of a start: the process ends, and nothing is left.
    #[machine("stacks of its own")]
    async fn stack_may_run_out_in_a_start() -> Outcome {
        sched::out_of_work().await;
        let before = sched::live_processes();
        // So that most of the stack is used up before the first.
        for step in 0..8 {
            let descends = sched::procedure(move || black_box([1_u64; 1500 * 8])[..].iter().sum::<u64>() * step + start_deeper(0))?;
            ensure!(descends.await.is_err(), "the stack has no end");
        }
        until("all processes have ended", || sched::live_processes() == before).await?;
        Executor::start(&Config::default().mailboxes(3000))?.stop().await;
        Ok(())
    }
}

/// Starts an executor in its behaviour, and tells a mailbox of it.
struct Landlord;

impl Actor for Landlord {}

impl Receive<magpie::channel::ProcessAddr<ExecutorHandle>> for Landlord {
    type Reply = ();

    fn receive(&mut self, tells: magpie::channel::ProcessAddr<ExecutorHandle>, _: &mut Context<Self>) {
        if let Ok(executor) = Executor::start(&Config::default().owned(LIMIT)) {
            // The executor itself is forgotten: it goes on.
            let _ = tells.send(executor.handle().clone());
        }
    }
}

kernel_test! {
    /// An executor that is owned ends with its owner: one that returns, crashes, is killed, an actor, a child of a supervisor.
    #[machine("isolation")]
    async fn an_owned_executor_ends_with_its_owner() -> Outcome {
        sched::out_of_work().await;
        let before = sched::live_processes();
        for way in [None, Some(Way::Panic), Some(Way::Fault), Some(Way::Overflow)] {
            for killed in [false, true] {
                let mut handles = ProcessMailbox::<ExecutorHandle>::new(1)?;
                let tells = handles.address();
                let owner = sched::spawn(async move {
                    let Ok(executor) = Executor::start(&Config::default().owned(LIMIT)) else { return };
                    let _ = tells.send(executor.handle().clone());
                    time::sleep(Duration::from_millis(1)).await;
                    if killed {
                        pending::<()>().await;
                    }
                    if let Some(way) = way {
                        way.crash();
                    }
                })?;
                let handle = handles.receive().await.ok_or("no executor was started")?;
                let log = Arc::new(Log::default());
                for _ in 0..20 {
                    // It may have ended already.
                    let _ = handle.spawn(Tenant(log.clone(), None));
                }
                if killed {
                    owner.process().kill();
                }
                let _ = owner.await;
                until("its actors have ended", || log.drops.load(Ordering::Acquire) == 20).await?;
            }
        }
        let executor = Executor::start(&Config::default())?;
        let mut handles = ProcessMailbox::<ExecutorHandle>::new(1)?;
        let landlord = executor.handle().spawn(Landlord)?;
        landlord.send(handles.address())?;
        let handle = handles.receive().await.ok_or("no executor was started")?;
        let log = Arc::new(Log::default());
        let tenant = handle.spawn(Tenant(log.clone(), None))?;
        linger();
        ensure!(tenant.is_alive(), "it has ended before its owner");
        landlord.kill()?;
        until("its actor has ended", || log.drops.load(Ordering::Acquire) == 1).await?;
        executor.stop().await;
        let log = Arc::new(Log::default());
        let seen = log.clone();
        let supervisor = Supervisor::one_for_one()
            .restarts(1000, Duration::from_secs(1))
            .backoff(Backoff::NONE)
            .child(Child::process("workshop", move |_| {
                let log = seen.clone();
                async move {
                    let executor = Executor::start(&Config::default().owned(LIMIT))?;
                    executor.handle().spawn(Tenant(log.clone(), None)).map_err(|_| StartError::OutOfMemory)?;
                    log.spinning.fetch_add(1, Ordering::AcqRel);
                    time::sleep(Duration::from_micros(300)).await;
                    Err::<(), _>(StartError::OutOfMemory)
                }
            }))
            .start()?;
        // More than there are numbers of mailboxes for, if they stayed.
        let lives = 4096 / (machine::cores() as u64 * 3) / 4;
        until("it has lived often", || log.spinning.load(Ordering::Acquire) >= lives.min(100)).await?;
        supervisor.stop().await?;
        until("all actors have ended", || log.drops.load(Ordering::Acquire) == log.spinning.load(Ordering::Acquire)).await?;
        until("all processes have ended", || sched::live_processes() == before).await
    }
}
