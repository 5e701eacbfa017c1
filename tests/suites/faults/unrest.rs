//! Cores that go out of service and come back all the time, as far as no executor has a worker there.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::arch::{CoreId, CoreSet};
use magpie::internals::Random;
use magpie::{machine, sched, time};
use magpie_tests::{Failure, Outcome, ensure_eq};

/// Until it is told to stop. All cores are in service afterwards.
pub struct Unrest {
    over: Arc<AtomicBool>,
    changes: Arc<AtomicU64>,
    process: sched::JoinHandle<Outcome>,
}

impl Unrest {
    /// Of all cores but those.
    pub fn start(random: Random, without: CoreSet) -> Result<Self, Failure> {
        let (over, changes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stop, count) = (over.clone(), changes.clone());
        let process = sched::spawn(async move {
            let mut random = random;
            while !stop.load(Ordering::Relaxed) {
                for core in restless(without) {
                    if random.below(2) == 0 {
                        continue;
                    }
                    if !sched::is_online(core) {
                        ensure_eq!(sched::online(core), Ok(()), "a core that comes back");
                    } else if sched::offline(core).is_ok() {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
                time::sleep(Duration::from_micros(200 + random.below(600) as u64)).await;
                let _ = &mut random;
            }
            for core in restless(without) {
                ensure_eq!(sched::online(core), Ok(()), "a core that comes back");
            }
            Ok(())
        })?;
        Ok(Self { over, changes, process })
    }

    /// Returns how often a core has gone.
    pub async fn end(self) -> Result<u64, Failure> {
        self.over.store(true, Ordering::Relaxed);
        self.process.await??;
        Ok(self.changes.load(Ordering::Relaxed))
    }
}

fn restless(without: CoreSet) -> impl Iterator<Item = CoreId> {
    (0..machine::cores()).filter_map(CoreId::new).filter(move |core| !without.contains(*core))
}
