//! What a core's time counts as where a device's interrupt ends its wait, whether that wakes a process or nobody. The device is the second timer
//! of the core that the process is on.

use alloc::format;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Poll, Waker};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::internals::arch::{gic, second_timer};
use magpie::internals::sync::SpinLock;
use magpie::sched::{CoreLoad, ExternalSource, LoadMonitor, Priority, Spawn};
use magpie::stats::Activity;
use magpie::time::{self, Instant};
use magpie::{machine, stats};
use magpie_boot::claim;
use magpie_tests::{Failure, ensure, kernel_test};

use crate::needs_counted_time;

/// Who is woken.
static WAITING: SpinLock<Option<Waker>> = SpinLock::new(None);
/// It has interrupted since it was armed.
static HAS_COME: AtomicBool = AtomicBool::new(false);

const INTERRUPTS: u32 = 100;
/// So long after the core has nothing to do it is interrupted, and so long after that the process goes on if the interrupt does not wake it.
const UNTIL_INTERRUPT: Duration = Duration::from_micros(100);
const UNTIL_IT_GOES_ON: Duration = Duration::from_micros(400);

fn on_interrupt() {
    second_timer::disarm();
    HAS_COME.store(true, Ordering::Release);
    // Left there before the device was armed, so the lock is free.
    if let Some(waiting) = &*WAITING.lock() {
        waiting.wake_by_ref();
    }
}

fn arm() {
    HAS_COME.store(false, Ordering::Relaxed);
    gic::enable_own(second_timer::INTERRUPT);
    second_timer::arm((Instant::now() + UNTIL_INTERRUPT).ticks());
}

/// Waits until the interrupt has woken the caller, which is pinned.
async fn be_woken() {
    let mut is_armed = false;
    poll_fn(|context| {
        if !is_armed {
            is_armed = true;
            *WAITING.lock() = Some(context.waker().clone());
            arm();
        }
        if HAS_COME.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let waiting = WAITING.lock().take();
    drop(waiting);
}

/// What a core has done while it was interrupted again and again.
struct Seen {
    load: CoreLoad,
    /// All that its times have grown, and the time that has passed, in clock ticks.
    counted: u64,
    passed: u64,
}

/// All that a core's time counts as, in clock ticks.
fn counted(core: CoreId) -> u64 {
    Activity::ALL.into_iter().map(|activity| stats::core(core).time.ticks(activity)).sum()
}

/// The caller is pinned to the core.
async fn be_interrupted(core: CoreId, wakes: bool) -> Result<Seen, Failure> {
    let mut monitor = LoadMonitor::new().map_err(|error| Failure(format!("{error}")))?;
    let (began, before) = (Instant::now(), counted(core));
    for _ in 0..INTERRUPTS {
        if wakes {
            be_woken().await;
            continue;
        }
        arm();
        time::sleep(UNTIL_IT_GOES_ON).await;
        ensure!(HAS_COME.load(Ordering::Acquire), "the interrupt has not come");
    }
    let (ended, after) = (Instant::now(), counted(core));
    let load = monitor.sample().map_err(|error| Failure(format!("{error}")))?;
    Ok(Seen {
        load: load.cores[core.index()],
        counted: after - before,
        passed: ended.ticks() - began.ticks(),
    })
}

kernel_test! {
    /// All of its time counts once, and most of it as waiting.
    async fn a_core_waits_before_and_after_an_interrupt() -> Outcome {
        needs_counted_time()?;
        ensure!(claim::claim(second_timer::INTERRUPT, on_interrupt), "somebody else has claimed a device");
        let _works = ExternalSource::new();
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            for wakes in [true, false] {
                let spawn = Spawn::new().pinned(core).priority(Priority::High);
                let Seen { load, counted, passed } = spawn.start(be_interrupted(core, wakes))?.await??;
                ensure!(
                    counted.abs_diff(passed) <= passed / 100,
                    "wakes {wakes}: of {passed} ticks {counted} are counted"
                );
                ensure!(load.share(Activity::Idle) > 700, "wakes {wakes}: it waits less: {load:?}");
            }
        }
        Ok(())
    }
}
