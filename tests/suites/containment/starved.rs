//! Kills of those that have no turns, because more urgent work keeps every core: they end. Within what bound, the suite `bounds` shows; here
//! a host that is busy takes longer, and without that they would never end.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::pending;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::sched::{self, JoinError, JoinHandle, Priority, Spawn};
use magpie::{machine, time};
use magpie_tests::{Failure, Outcome, ensure, ensure_eq, kernel_test};

/// As long as this nothing here takes, by far, on a host that is busy.
const HANGS_AFTER: Duration = Duration::from_secs(100);

fn spin() -> ! {
    loop {
        spin_loop();
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) -> Outcome {
    let waiting = async {
        while !holds() {
            time::sleep(Duration::from_micros(300)).await;
        }
    };
    time::background_timeout(HANGS_AFTER, waiting)
        .await
        .map_err(|_| Failure(alloc::format!("it does not come to hold: {what}")))
}

/// More urgent work on every core, two on each, which go on until they are told.
struct Pressure(Arc<AtomicBool>, Vec<JoinHandle<()>>);

impl Pressure {
    async fn begin(priority: Priority) -> Result<Self, Failure> {
        let ends = Arc::new(AtomicBool::new(false));
        let begun = Arc::new(AtomicU64::new(0));
        let mut hogs = Vec::new();
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            for _ in 0..2 {
                let (ends, begun) = (ends.clone(), begun.clone());
                hogs.push(Spawn::new().priority(priority).pinned(core).start(async move {
                    begun.fetch_add(1, Ordering::AcqRel);
                    while !ends.load(Ordering::Acquire) {
                        spin_loop();
                    }
                })?);
            }
        }
        let all = hogs.len() as u64;
        until("all hogs run", || begun.load(Ordering::Acquire) == all).await?;
        Ok(Self(ends, hogs))
    }

    async fn end(self) -> Outcome {
        self.0.store(true, Ordering::Release);
        for hog in self.1 {
            hog.await?;
        }
        Ok(())
    }
}

/// Runs `judge` at the highest priority, so that it goes on whatever others do.
async fn judged<F: Future<Output = Outcome> + Send + 'static>(judge: F) -> Outcome {
    Spawn::new().priority(Priority::Max).start(judge)?.await?
}

struct Counts(Arc<AtomicU64>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

struct Lingers;

impl Drop for Lingers {
    fn drop(&mut self) {
        spin();
    }
}

kernel_test! {
    /// Processes that are suspended, that wait, that never had a turn, that yield, and whose destructors spin: killed, all end, and some of
    /// those that were not at work drop what they own.
    #[machine("preemption")]
    async fn processes_end() -> Outcome {
        for (killed, urgent) in [
            (Priority::Low, Priority::High),
            (Priority::Normal, Priority::High),
            (Priority::Normal, Priority::Max),
            (Priority::High, Priority::Max),
        ] {
            judged(async move {
                let (dropped, begun) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
                let (mut all, mut droppers) = (Vec::new(), 0);
                let how = Spawn::new().priority(killed);
                for core in (0..machine::cores()).filter_map(CoreId::new) {
                    for pinned in [false, true] {
                        let how = if pinned { how.pinned(core) } else { how };
                        let spins = begun.clone();
                        all.push(how.start(async move {
                            spins.fetch_add(1, Ordering::AcqRel);
                            spin()
                        })?);
                        for lingers in [false, true] {
                            let (counts, waits) = (Counts(dropped.clone()), begun.clone());
                            droppers += 1;
                            all.push(how.start(async move {
                                let _lingers = if lingers { Some(Lingers) } else { None };
                                let _counts = counts;
                                waits.fetch_add(1, Ordering::AcqRel);
                                pending::<()>().await;
                            })?);
                        }
                        all.push(how.start(async { loop { sched::yield_now().await } })?);
                    }
                }
                let expected = machine::cores() as u64 * 6;
                until("all have begun", || begun.load(Ordering::Acquire) == expected).await?;
                let pressure = Pressure::begin(urgent).await?;
                for _ in 0..10 {
                    let counts = Counts(dropped.clone());
                    droppers += 1;
                    all.push(how.start(async move { drop(counts) })?);
                }
                time::sleep(Duration::from_millis(5)).await;
                all.iter().for_each(|process| process.process().kill());
                let mut others = 0;
                for process in all {
                    let ended = time::timeout(HANGS_AFTER, process).await;
                    others += u32::from(!matches!(ended, Ok(Err(JoinError::Killed))));
                }
                // Before what may fail: nobody less urgent would hear of it.
                pressure.end().await?;
                ensure_eq!(others, 0, "how many have not ended, or otherwise");
                // On an emulator whose host is busy the time that they have is over before they run.
                let dropped = dropped.load(Ordering::Acquire);
                ensure!(dropped > 0 && dropped <= droppers, "{dropped} of {droppers} were dropped");
                Ok(())
            })
            .await
            .map_err(|Failure(text)| Failure(alloc::format!("{killed:?} under {urgent:?}: {text}")))?;
        }
        Ok(())
    }
}

struct Subject(Arc<AtomicU64>);

impl Actor for Subject {}

struct Spin;

impl Receive<Spin> for Subject {
    type Reply = ();

    fn receive(&mut self, _: Spin, _: &mut Context<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
        spin()
    }
}

kernel_test! {
    /// Behaviours that are suspended, of an executor without turns, are killed one by one; and the executor is stopped.
    #[machine("preemption")]
    async fn behaviours_and_executors_end() -> Outcome {
        for priority in [Priority::Low, Priority::Normal] {
            judged(async move {
                for stops in [false, true] {
                    let executor = Executor::start(&Config::default().priority(priority))?;
                    let begun = Arc::new(AtomicU64::new(0));
                    let mut hogs = Vec::new();
                    for core in (0..machine::cores()).filter_map(CoreId::new) {
                        for _ in 0..2 {
                            let hog = executor.handle().spawn_on(core, Subject(begun.clone()))?;
                            hog.send(Spin)?;
                            hogs.push(hog);
                        }
                    }
                    let count = hogs.len();
                    until("all spin", || begun.load(Ordering::Acquire) == count as u64).await?;
                    time::sleep(Duration::from_millis(5)).await;
                    let pressure = Pressure::begin(Priority::High).await?;
                    if !stops {
                        for hog in &hogs {
                            hog.kill()?;
                        }
                        until("all have ended", || hogs.iter().all(|hog| !hog.is_alive())).await?;
                    }
                    let limit = Duration::from_millis(10);
                    let stopped = time::timeout(HANGS_AFTER, executor.stop_within(limit)).await;
                    let Ok(stopped) = stopped else { return Err("a stop waits for ever".into()) };
                    ensure_eq!(stopped.killed(), if stops { count as u64 } else { 0 }, "how many were killed by the stop");
                    pressure.end().await?;
                }
                Ok(())
            })
            .await
            .map_err(|Failure(text)| Failure(alloc::format!("{priority:?}: {text}")))?;
        }
        Ok(())
    }
}
