//! The watchdog: a core that makes no progress is noticed, and nothing else is. What is said is looked at by the end-to-end tests
//! `watchdog`, which run these.

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;

use alloc::sync::Arc;
use alloc::vec::Vec;

use magpie::arch::CoreId;
use magpie::internals::arch::{clock, irq};
use magpie::internals::sched::watchdog;
use magpie::internals::sync::PreemptGuard;
use magpie::sched::{self, Setting, Spawn, yield_now};
use magpie::{machine, stats, time};
use magpie_tests::{Changed, Failure, Outcome, ensure, ensure_eq, expect_panic, kernel_test};

/// So long a core may make no progress that is to be noticed, in microseconds.
const LIMIT: u64 = 400_000;
/// The same where nothing is to be noticed: longer than an emulator's core waits for its host.
const LONG_LIMIT: u64 = 2_000_000;
/// So long nothing is to be noticed.
const QUIET: Duration = Duration::from_millis(3_000);

const DUMP: u64 = 0;
const STOP: u64 = 1;
const RESTART: u64 = 2;

fn watched(action: u64, limit: u64) -> Result<Changed, Failure> {
    Changed::new(&[(Setting::WatchdogAction, action), (Setting::WatchdogMicroseconds, limit)])
}

/// The first cores and the last, and once more the first.
fn some_cores() -> impl Iterator<Item = CoreId> {
    let last = machine::cores() - 1;
    [0, 1, last, 0].into_iter().filter(move |&core| core <= last).filter_map(CoreId::new)
}

/// It is never noticed so often.
const FOR_EVER: u64 = u64::MAX;

/// Until it was noticed once more than `before`.
fn until_found(before: u64) {
    while watchdog::found() <= before {
        black_box(());
    }
}

/// For this long by the clock.
fn spin_for(microseconds: u64) {
    let end = clock::now() + microseconds * clock::frequency() / 1_000_000;
    while clock::now() < end {
        black_box(());
    }
}

/// In a section, until that was noticed.
#[inline(never)]
fn stuck_in_a_section(before: u64) {
    let _here = PreemptGuard::new();
    until_found(before);
}

/// With interrupts masked, until that was noticed.
#[inline(never)]
fn stuck_with_interrupts_masked(before: u64) {
    let _here = PreemptGuard::new();
    // SAFETY: this does return, and unmasks them before; nothing in between is to be told of anything.
    unsafe { irq::disable() };
    until_found(before);
    // SAFETY: they were masked here, where the kernel does not count on it.
    unsafe { irq::enable() };
}

/// Runs this on a core of its own, and waits for its end.
async fn on(core: CoreId, what: impl FnOnce() + Send + 'static) -> Outcome {
    Spawn::new().pinned(core).start(async move { what() })?.await?;
    Ok(())
}

/// What the watchdog does not mind goes on for some limits. Where many cores share few of a host's, one may be put aside for as long
/// as the limit while others run: that is nothing that a guest can know.
async fn quiet(what: &str, meanwhile: impl AsyncFnOnce() -> Outcome) -> Outcome {
    if machine::cores() > 4 {
        return Ok(());
    }
    let _settings = watched(DUMP, LONG_LIMIT)?;
    let before = watchdog::found();
    meanwhile().await?;
    ensure_eq!(watchdog::found(), before, "found to be stuck: {what}");
    Ok(())
}

/// So often it is tried to be alone with one incident.
const ATTEMPTS: usize = 10;

kernel_test! {
    /// It is noticed, and again, and all goes on. On one core, too.
    async fn a_section_that_does_not_end_is_noticed() -> Outcome {
        let _settings = watched(DUMP, LIMIT)?;
        for core in some_cores() {
            let before = watchdog::found();
            on(core, move || stuck_in_a_section(before)).await?;
            ensure!(watchdog::found() > before, "core {} was not noticed", core.index());
        }
        goes_on().await
    }
}

kernel_test! {
    /// It is noticed, and again, and all goes on.
    #[cores(2)]
    async fn masked_interrupts_are_noticed() -> Outcome {
        let _settings = watched(DUMP, LIMIT)?;
        for core in some_cores() {
            let before = watchdog::found();
            on(core, move || stuck_with_interrupts_masked(before)).await?;
            ensure!(watchdog::found() > before, "core {} was not noticed", core.index());
        }
        goes_on().await
    }
}

kernel_test! {
    /// One that stays stuck is said once. Another core that the host has put aside for so long is an incident of its own; so not
    /// every attempt has to show it, but one that was said for each limit would never be said once.
    #[cores(2)]
    async fn an_incident_is_said_once() -> Outcome {
        let _settings = watched(DUMP, LONG_LIMIT / 2)?;
        let mut incidents = 0;
        for _ in 0..ATTEMPTS {
            let before = watchdog::found();
            on(CoreId::new(1).unwrap_or(CoreId::BOOT), move || {
                let _here = PreemptGuard::new();
                until_found(before);
                // Two limits more.
                spin_for(LONG_LIMIT);
            })
            .await?;
            incidents = watchdog::found() - before;
            if incidents == 1 {
                return Ok(());
            }
        }
        ensure_eq!(incidents, 1, "incidents, in the last of several attempts");
        Ok(())
    }
}

/// All cores run processes, and timers fire.
async fn goes_on() -> Outcome {
    for core in (0..machine::cores()).filter_map(CoreId::new) {
        on(core, || ()).await?;
    }
    time::sleep(Duration::from_millis(1)).await;
    Ok(())
}

kernel_test! {
    /// Turns that never end by themselves, on each core one, and what is short beside them.
    async fn hogs_are_no_incident() -> Outcome {
        quiet("a hog", async || {
            let ended = Arc::new(AtomicBool::new(false));
            let mut hogs = Vec::new();
            for core in (0..machine::cores()).filter_map(CoreId::new) {
                let ended = ended.clone();
                hogs.push(Spawn::new().pinned(core).start(async move {
                    while !ended.load(Ordering::Relaxed) {
                        black_box(());
                    }
                })?);
            }
            time::sleep(QUIET).await;
            ended.store(true, Ordering::Relaxed);
            for hog in hogs {
                hog.await?;
            }
            Ok(())
        })
        .await
    }
}

kernel_test! {
    /// Turns that end at once, on each core two, and no others.
    async fn short_turns_are_no_incident() -> Outcome {
        quiet("a core with short turns", async || {
            let ended = Arc::new(AtomicBool::new(false));
            let mut yielding = Vec::new();
            for core in (0..2 * machine::cores()).filter_map(|number| CoreId::new(number % machine::cores())) {
                let ended = ended.clone();
                yielding.push(Spawn::new().pinned(core).start(async move {
                    while !ended.load(Ordering::Relaxed) {
                        yield_now().await;
                    }
                })?);
            }
            time::sleep(QUIET).await;
            ended.store(true, Ordering::Relaxed);
            for process in yielding {
                process.await?;
            }
            Ok(())
        })
        .await
    }
}

kernel_test! {
    /// Nobody has anything to do.
    async fn idle_cores_are_no_incident() -> Outcome {
        quiet("an idle core", async || {
            time::sleep(QUIET).await;
            Ok(())
        })
        .await
    }
}

kernel_test! {
    /// Cores go out of service and come back, now and then for long.
    #[cores(2)]
    async fn cores_out_of_service_are_no_incident() -> Outcome {
        quiet("a core out of service", async || {
            let others = || (1..machine::cores()).filter_map(CoreId::new);
            for pause in [1, LONG_LIMIT + LIMIT, 1, LIMIT] {
                for core in others() {
                    while sched::offline(core).is_err() {
                        yield_now().await;
                    }
                }
                time::sleep(Duration::from_micros(pause)).await;
                for core in others() {
                    ensure_eq!(sched::online(core), Ok(()), "coming back");
                }
                goes_on().await?;
            }
            Ok(())
        })
        .await
    }
}

kernel_test! {
    /// All cores stand still, again and again, for what crashed code has left.
    async fn collections_are_no_incident() -> Outcome {
        static CRASHES: AtomicUsize = AtomicUsize::new(0);
        // However long a busy host takes to look through memory.
        let _pause = Changed::new(&[(Setting::CollectMicroseconds, 600_000_000)])?;
        let before = stats::collections().finished;
        quiet("a core that stands still", async || {
            let end = time::Instant::now() + QUIET;
            // A collection is given up if a core did not come to stand in time.
            while time::Instant::now() < end || stats::collections().finished == before {
                let crashed = sched::spawn(async {
                    let number = CRASHES.fetch_add(1, Ordering::Relaxed);
                    let left: Vec<_> = (0..400).map(|block| alloc::vec![block + number; 50]).collect();
                    if black_box(true) {
                        panic!("with {} blocks", left.len());
                    }
                })?;
                ensure!(crashed.await.is_err(), "it did not crash");
            }
            Ok(())
        })
        .await
    }
}

kernel_test! {
    /// The system stops, and says where each core is; the one that is stuck answers.
    #[machine("a panic of the kernel")]
    async fn stops_for_a_section_that_does_not_end() -> Outcome {
        let _settings = watched(STOP, LIMIT)?;
        expect_panic("watchdog: core ");
        stuck_in_a_section(FOR_EVER);
        Err("the kernel goes on".into())
    }
}

kernel_test! {
    /// The system stops; the core that is stuck does not answer.
    #[cores(2)]
    #[machine("a panic of the kernel")]
    async fn stops_for_masked_interrupts() -> Outcome {
        let _settings = watched(STOP, LIMIT)?;
        expect_panic("watchdog: core 1 ");
        on(CoreId::new(1).unwrap_or(CoreId::BOOT), || stuck_with_interrupts_masked(FOR_EVER)).await?;
        Err("the kernel goes on".into())
    }
}

kernel_test! {
    /// The machine starts again; the emulator ends instead.
    #[machine("a panic of the kernel")]
    async fn starts_again() -> Outcome {
        let _settings = watched(RESTART, LIMIT)?;
        expect_panic("watchdog: core ");
        stuck_in_a_section(FOR_EVER);
        Err("the kernel goes on".into())
    }
}
