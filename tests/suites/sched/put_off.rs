//! What is not urgent is put off while something urgent waits for its core, but not for ever.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::machine;
use magpie::sched::{self, JoinHandle, Priority, Spawn, SpawnError};
use magpie::time::{self, Instant};
use magpie_tests::{HANGS_AFTER, ensure, ensure_eq, kernel_test};

/// Has something urgent to do on that core until then, or for too long; whether it was until then.
fn hog(core: CoreId, until: &Arc<AtomicBool>, yields: bool) -> Result<JoinHandle<bool>, SpawnError> {
    let until = until.clone();
    Spawn::new().pinned(core).priority(Priority::High).start(async move {
        let began = Instant::now();
        while !until.load(Ordering::Relaxed) && began.elapsed() < HANGS_AFTER {
            if yields {
                sched::yield_now().await;
            } else {
                core::hint::spin_loop();
            }
        }
        until.load(Ordering::Relaxed)
    })
}

kernel_test! {
    /// A timer of a core that always has something urgent to run wakes who may run elsewhere.
    #[cores(2)]
    #[machine("preemption")]
    async fn a_timer_behind_endless_urgent_work_fires() -> Outcome {
        for yields in [true, false] {
            let (sleeps, woken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let (begins, ends) = (sleeps.clone(), woken.clone());
            let sleeper = sched::spawn(async move {
                while sched::current_core() != Some(CoreId::BOOT) {
                    sched::yield_now().await;
                }
                begins.store(true, Ordering::Relaxed);
                time::sleep(Duration::from_millis(30)).await;
                ends.store(true, Ordering::Relaxed);
            })?;
            // So that it comes to the first core.
            let others = (1..machine::cores()).filter_map(CoreId::new).map(|core| hog(core, &sleeps, false));
            for other in others.collect::<Result<Vec<_>, _>>()? {
                ensure_eq!(other.await, Ok(true), "whether it sleeps on the first core");
            }
            let hog = hog(CoreId::BOOT, &woken, yields)?;
            ensure_eq!(hog.await, Ok(true), "whether it was woken beside one that yields ({yields})");
            ensure!(sleeper.await.is_ok(), "the sleeper crashed");
        }
        Ok(())
    }
}
