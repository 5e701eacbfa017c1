//! Killing: a process ends from outside, wherever it is, whatever it does, and everybody is told once.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::pending;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::channel::{AskError, ProcessMailbox, Request};
use magpie::crash::{self, CrashKind};
use magpie::mutex::Mutex;
use magpie::sched::{self, JoinError, JoinHandle, Priority, ProcessState, Spawn};
use magpie::watch::{Ended, Exit};
use magpie::{machine, time};
use magpie_tests::{Failure, HANGS_AFTER, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::ways::Way;

/// Counts when it is dropped.
struct Counts(Arc<AtomicU64>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Spins when it is dropped.
struct Lingers(Arc<AtomicBool>);

impl Drop for Lingers {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        spin();
    }
}

fn spin() -> ! {
    loop {
        spin_loop();
    }
}

/// Waits until that holds.
async fn until(holds: impl Fn() -> bool) -> Outcome {
    let waiting = async {
        while !holds() {
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, waiting)
        .await
        .map_err(|_| Failure("it does not come to hold".into()))
}

/// How it ended, by its handle.
async fn end_of<T>(handle: JoinHandle<T>) -> Result<Option<JoinError>, Failure> {
    match time::background_timeout(HANGS_AFTER, handle).await {
        Ok(result) => Ok(result.err()),
        Err(_) => Err(Failure("a process that was killed goes on".into())),
    }
}

/// The exits that come until nobody has an address any more.
async fn exits(mut ends: ProcessMailbox<Ended>) -> Result<Vec<Exit>, Failure> {
    let mut exits = Vec::new();
    let all = async {
        while let Some(ended) = ends.receive().await {
            exits.push(ended.exit());
        }
    };
    time::background_timeout(HANGS_AFTER, all)
        .await
        .map_err(|_| Failure("somebody was not told of an end".into()))?;
    Ok(exits)
}

/// Hogs that are killed when the test ends, whichever way it ends: left to spin they would slow down all tests that follow.
struct Hogs(Vec<JoinHandle<()>>);

impl Drop for Hogs {
    fn drop(&mut self) {
        self.0.iter().for_each(|hog| hog.process().kill());
    }
}

/// Begins to spin, with something that counts whether it was dropped, and says that it has begun.
fn start_hog(
    spawn: Spawn,
    dropped: &Arc<AtomicU64>,
    begun: &Arc<AtomicU64>,
) -> Result<JoinHandle<()>, sched::SpawnError> {
    let (counts, begun) = (Counts(dropped.clone()), begun.clone());
    spawn.start(async move {
        let _counts = counts;
        begun.fetch_add(1, Ordering::AcqRel);
        spin()
    })
}

kernel_test! {
    /// One that waits drops what it owns, and so does one that has not begun; who joins and who watches is told.
    async fn one_that_waits_drops_what_it_owns() -> Outcome {
        let dropped = Arc::new(AtomicU64::new(0));
        let begun = Arc::new(AtomicU64::new(0));
        let ends = ProcessMailbox::<Ended>::new(10)?;
        for waits in [true, false] {
            let (counts, begins) = (Counts(dropped.clone()), begun.clone());
            let handle = sched::spawn(async move {
                let _counts = counts;
                begins.fetch_add(1, Ordering::AcqRel);
                pending::<()>().await;
            })?;
            let process = handle.process().clone();
            if waits {
                // Killed in its turn it would end as in a crash, which drops nothing.
                until(|| begun.load(Ordering::Acquire) == 1 && process.state() == ProcessState::Waiting).await?;
            }
            process.watch(&ends.address())?;
            process.kill();
            process.kill();
            ensure_eq!(end_of(handle).await?, Some(JoinError::Killed), "how it ended");
            ensure!(process.is_done() && !process.has_crashed(), "it was dropped in time, and counts as crashed");
            process.kill();
        }
        ensure_eq!(dropped.load(Ordering::Acquire), 2, "how many were dropped");
        ensure_eq!(exits(ends).await?, [Exit::Killed, Exit::Killed], "what was told");
        Ok(())
    }
}

kernel_test! {
    /// Many that wait for all sorts of things are killed by as many: each end is told once.
    async fn each_end_is_told_once() -> Outcome {
        let processes = amount("kills", 2000);
        let ends = ProcessMailbox::<Ended>::new(10)?;
        let dropped = Arc::new(AtomicU64::new(0));
        let mut killers = Vec::new();
        for number in 0..processes {
            let counts = Counts(dropped.clone());
            let priority = [Priority::Max, Priority::High, Priority::Normal, Priority::Low][number as usize % 4];
            let mut mailbox = ProcessMailbox::<u64>::new(10)?;
            let handle = Spawn::new().priority(priority).start(async move {
                let _counts = counts;
                for _ in 0..number % 7 {
                    sched::yield_now().await;
                }
                match number % 5 {
                    0 => time::sleep(Duration::from_micros(number % 300)).await,
                    1 => drop(mailbox.receive().await),
                    2 => pending().await,
                    _ => {}
                }
            })?;
            let process = handle.process().clone();
            process.watch(&ends.address())?;
            killers.push(sched::spawn(async move {
                for _ in 0..number % 11 {
                    sched::yield_now().await;
                }
                process.kill();
            })?);
            drop(handle);
        }
        for killer in killers {
            killer.await?;
        }
        let exits = exits(ends).await?;
        ensure_eq!(exits.len() as u64, processes, "how many ends were told");
        ensure!(exits.contains(&Exit::Killed), "none was killed in time");
        // What was killed on its way to the end, in its turn, has dropped nothing.
        let others = exits.iter().filter(|exit| !matches!(exit, Exit::Killed | Exit::Normal | Exit::Gone)).count();
        ensure_eq!(others, 0, "how many ended otherwise");
        ensure!(dropped.load(Ordering::Acquire) <= processes, "something was dropped twice");
        Ok(())
    }
}

kernel_test! {
    /// One that spins ends on each core, alone there or beside others, and leaves a record; others go on.
    #[machine("preemption")]
    async fn one_that_spins_ends() -> Outcome {
        let dropped = Arc::new(AtomicU64::new(0));
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            for others in [0, 3] {
                let begun = Arc::new(AtomicU64::new(0));
                let before = crash::last().map_or(0, |record| record.number.get());
                let ends = ProcessMailbox::<Ended>::new(10)?;
                let hogs = (0..=others)
                    .map(|_| start_hog(Spawn::new().pinned(core), &dropped, &begun))
                    .collect::<Result<Vec<_>, _>>()?;
                until(|| begun.load(Ordering::Acquire) == others + 1).await?;
                for hog in hogs {
                    hog.process().watch(&ends.address())?;
                    hog.process().kill();
                    let process = hog.process().clone();
                    ensure_eq!(end_of(hog).await?, Some(JoinError::Killed), "how it ended");
                    ensure!(process.has_crashed(), "nothing of it was dropped, and it does not count as crashed");
                }
                let exits = exits(ends).await?;
                ensure!(exits.iter().all(|&exit| exit == Exit::Killed), "another exit: {:?}", exits);
                ensure_eq!(exits.len() as u64, others + 1, "how many ends were told");
                let records = crash::records().filter(|record| record.number.get() > before && record.kind == CrashKind::Killed);
                ensure_eq!(records.count() as u64, others + 1, "how many kills are on record");
            }
        }
        ensure_eq!(dropped.load(Ordering::Acquire), 0, "how many were dropped");
        Ok(())
    }
}

kernel_test! {
    /// More than there are cores are suspended, and are killed there; so is whoever is killed for its destructor, which spins.
    #[machine("preemption")]
    async fn suspended_ones_and_endless_destructors_end() -> Outcome {
        let (dropped, begun) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let count = 3 * machine::cores() + 2;
        let mut hogs = Hogs(Vec::new());
        for number in 0..count {
            let priority = [Priority::Normal, Priority::Low][number % 2];
            hogs.0.push(start_hog(Spawn::new().priority(priority), &dropped, &begun)?);
        }
        until(|| begun.load(Ordering::Acquire) >= 2).await?;
        let lingering = Arc::new(AtomicBool::new(false));
        let lingers = Lingers(lingering.clone());
        let waiting = Arc::new(AtomicBool::new(false));
        let waits = waiting.clone();
        let handle = sched::spawn(async move {
            let _lingers = lingers;
            waits.store(true, Ordering::Release);
            pending::<()>().await;
        })?;
        let process = handle.process().clone();
        // Killed in its turn, which the hogs may interrupt, it would end as in a crash: no destructor then.
        until(|| waiting.load(Ordering::Acquire) && process.state() == ProcessState::Waiting).await?;
        process.kill();
        ensure_eq!(end_of(handle).await?, Some(JoinError::Killed), "how it ended");
        ensure!(lingering.load(Ordering::Acquire), "its destructor was not called");
        hogs.0.iter().for_each(|hog| hog.process().kill());
        for hog in hogs.0.drain(..) {
            ensure_eq!(end_of(hog).await?, Some(JoinError::Killed), "how it ended");
        }
        Ok(())
    }
}

kernel_test! {
    /// It kills itself, in its turn and in its destructor; it is killed in the middle of each sort of crash.
    async fn whoever_kills_itself_or_crashes_ends_once() -> Outcome {
        let ends = ProcessMailbox::<Ended>::new(10)?;
        let mut expected = 0;
        // One that returns right away has returned, unless an interrupt comes in between and ends it: not each time, whatever the host does.
        const MOST_TRIES: u32 = 20;
        let (mut waits, mut tries) = (true, 0);
        loop {
            let handle = sched::spawn(async move {
                if let Some(process) = sched::current_process() {
                    process.kill();
                }
                if waits {
                    sched::yield_now().await;
                    sched::yield_now().await;
                }
            })?;
            handle.process().watch(&ends.address())?;
            expected += 1;
            let ended = end_of(handle).await?;
            if !waits && ended.is_none() {
                break;
            }
            ensure_eq!(ended, Some(JoinError::Killed), "how it ended");
            waits = false;
            tries += 1;
            ensure!(tries <= MOST_TRIES, "it never returns, though it does not wait");
        }
        if !cfg!(target_os = "none") {
            return Ok(());
        }
        for way in Way::ALL {
            for delay in 0..4 {
                let handle = sched::spawn(async move {
                    sched::yield_now().await;
                    way.crash();
                })?;
                let process = handle.process().clone();
                process.watch(&ends.address())?;
                expected += 1;
                sched::spawn(async move {
                    for _ in 0..delay {
                        sched::yield_now().await;
                    }
                    process.kill();
                })?;
                ensure!(end_of(handle).await?.is_some(), "it returned");
            }
        }
        let exits = exits(ends).await?;
        ensure_eq!(exits.len(), expected, "how many ends were told");
        Ok(())
    }
}

kernel_test! {
    /// What a killed one has of the kernel's: its mailbox refuses, a mutex that it holds is poisoned.
    #[machine("preemption")]
    async fn what_it_has_of_the_kernels_is_given_up() -> Outcome {
        for spins in [false, true] {
            let mutex = Arc::new(Mutex::new(0_u64));
            let (holds, held) = (Arc::new(AtomicBool::new(false)), mutex.clone());
            let holding = holds.clone();
            let mut tells = ProcessMailbox::new(10)?;
            let address = tells.address();
            let handle = sched::spawn(async move {
                let Ok(mut mailbox) = ProcessMailbox::<u64>::new(10) else { return };
                // It is its own from the first message that it receives.
                let _ = mailbox.address().send(0);
                mailbox.receive().await;
                let _ = address.send(mailbox.address());
                if spins {
                    let _guard = held.lock().await;
                    holding.store(true, Ordering::Release);
                    spin();
                }
                holding.store(true, Ordering::Release);
                pending::<()>().await;
                drop(mailbox);
            })?;
            let Some(mailbox) = tells.receive().await else { return Err("it did not begin".into()) };
            until(|| holds.load(Ordering::Acquire)).await?;
            handle.process().kill();
            ensure_eq!(end_of(handle).await?, Some(JoinError::Killed), "how it ended");
            ensure!(mailbox.send(1).is_err(), "the mailbox of one that was killed accepts a message; it ran: {}", spins);
            ensure_eq!(mutex.lock().await.is_err(), spins, "whether the mutex is poisoned");
        }
        Ok(())
    }
}

kernel_test! {
    /// One that was asked drops its mailbox, and does not come to the request that it has taken out: because it crashes, or because it is
    /// killed and takes too long to drop what comes before.
    #[machine("preemption")]
    async fn whoever_waits_is_told_though_the_mailbox_went_first() -> Outcome {
        for is_killed in [false, true] {
            let mut desk = ProcessMailbox::<Request<u32, u32>>::new(4)?;
            let address = desk.address();
            let has_taken = Arc::new(AtomicBool::new(false));
            let takes = has_taken.clone();
            let handle = sched::spawn(async move {
                let Some(request) = desk.receive().await else { return };
                if is_killed {
                    // Dropped in this order.
                    let held = (desk, Lingers(Arc::default()), request);
                    takes.store(true, Ordering::Release);
                    pending::<()>().await;
                    drop(held);
                } else {
                    drop(desk);
                    takes.store(true, Ordering::Release);
                    sched::yield_now().await;
                    panic!("it was asked for {}", request.message);
                }
            })?;
            let clerk = handle.process().clone();
            let killer = sched::spawn(async move {
                until(|| has_taken.load(Ordering::Acquire)).await?;
                if is_killed {
                    clerk.kill();
                }
                Ok::<(), Failure>(())
            })?;
            let answer = time::background_timeout(HANGS_AFTER, address.ask(7)).await;
            ensure_eq!(answer, Ok(Err(AskError::Crashed)), "the answer; killed: {}", is_killed);
            killer.await??;
            let ended = end_of(handle).await?;
            ensure!(ended.is_some(), "it ended as {:?}", ended);
        }
        Ok(())
    }
}
