//! Memory limits where it is tight: used up in a destructor, in what a panic prints, where a supervisor ends; leaked, forgotten, freed
//! elsewhere; one inside another. What is charged comes back, to the last byte where nothing has crashed.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::pending;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::crash::{self, CrashKind};
use magpie::mem::MemoryLimit;
use magpie::sched::{self, JoinError, Spawn};
use magpie::supervise::{Child, Supervisor};
use magpie::{machine, time};
use magpie_tests::{Changed, Failure, HANGS_AFTER, Outcome, ensure, ensure_eq, kernel_test};

use crate::not_started;

const LIMIT: usize = 64 * 1024;

/// Waits until that much is in use, or less.
async fn falls_to(limit: &MemoryLimit, bytes: usize) -> Outcome {
    let falls = async {
        while limit.used() > bytes {
            sched::yield_now().await;
        }
    };
    let what = |_| Failure(alloc::format!("{} bytes are in use, not {bytes}", limit.used()));
    time::background_timeout(HANGS_AFTER / 8, falls).await.map_err(what)
}

/// All that is left of the limit, in blocks of so many bytes and, if that is more than 64, of ever fewer.
fn rest(mut bytes: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    // The list must not grow at the end.
    if all.try_reserve_exact(LIMIT / 128).is_err() {
        return all;
    }
    while all.len() < all.capacity() {
        let mut block = Vec::new();
        match block.try_reserve_exact(bytes) {
            Ok(()) => all.push(block),
            Err(_) if bytes <= 64 => break,
            Err(_) => bytes = (bytes / 2).max(64),
        }
    }
    all
}

/// Takes all that is left, and more, when it is dropped.
struct Greedy(bool);

impl Drop for Greedy {
    fn drop(&mut self) {
        if black_box(self.0) {
            let all = rest(100);
            black_box(Box::new([0_u8; 100]));
            drop(all);
        }
    }
}

/// The same, when it is printed.
impl fmt::Display for Greedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("before")?;
        drop(Greedy(self.0));
        f.write_str("after")
    }
}

kernel_test! {
    /// In a destructor, and in what a panic prints: the process ends alone, on record; those who are charged for nothing go on.
    #[machine("isolation")]
    async fn used_up_in_a_destructor_and_in_a_panic() -> Outcome {
        let limit = MemoryLimit::new(LIMIT)?;
        let under = Spawn::new().memory(&limit);
        let before = crash::total();
        let drops = under.start(async { drop(Greedy(true)) }).map_err(not_started)?;
        ensure_eq!(drops.await, Err(JoinError::Crashed), "one whose destructor has no memory");
        ensure_eq!(crash::last().map(|record| record.kind), Some(CrashKind::OutOfMemory), "on record");
        let limit = MemoryLimit::new(LIMIT)?;
        let under = Spawn::new().memory(&limit);
        let prints = under.start(async { if black_box(true) { panic!("{}", Greedy(true)) } }).map_err(not_started)?;
        ensure_eq!(prints.await, Err(JoinError::Crashed), "one whose panic has no memory");
        ensure_eq!(crash::total(), before + 2, "crashes");
        let killed = under.start(async {
            let _greedy = Greedy(true);
            pending::<()>().await;
        });
        // What the one before has left may not be collected yet.
        if let Ok(killed) = killed {
            killed.process().kill();
            ensure!(killed.await.is_err(), "a killed one whose destructor has no memory");
        }
        let well = sched::spawn(async { rest(100).len() }).map(|process| process.process().clone());
        ensure!(well.is_ok(), "another is not started");
        well.map_err(not_started)?.kill();
        Ok(())
    }
}

kernel_test! {
    /// What a result leaks or forgets stays charged, and is all that does; a limit that was dropped meanwhile stays in force.
    #[machine("isolation")]
    async fn what_is_leaked_stays_charged() -> Outcome {
        let limit = MemoryLimit::new(LIMIT)?;
        let under = Spawn::new().memory(&limit);
        let leaked: &'static mut [u8] = under.start(async { Vec::leak(alloc::vec![7_u8; 10_000]) }).map_err(not_started)?.await?;
        falls_to(&limit, 16 * 1024).await?;
        ensure!(limit.used() >= 10_000, "{} bytes", limit.used());
        under.start(async { core::mem::forget(black_box(Box::new([0_u64; 100]))) }).map_err(not_started)?.await?;
        falls_to(&limit, 10_000 + 800 + 512).await?;
        ensure!(limit.used() >= 10_000 + 800, "{} bytes", limit.used());
        let both = limit.used();
        ensure_eq!(leaked[9_999], 7, "what was leaked");
        let idle = under.start(pending::<()>()).map_err(not_started)?;
        drop(limit);
        let more = under.start(async move { rest(1000).len() }).map_err(not_started)?.await?;
        ensure!(more > 10 && more * 64 <= LIMIT - both, "{more} blocks beside {both} bytes");
        idle.process().kill();
        let _ = idle.await;
        Ok(())
    }
}

kernel_test! {
    /// Blocks of many sizes go from hand to hand over all cores, grow there, and are freed there.
    #[machine("isolation")]
    async fn freed_and_grown_elsewhere() -> Outcome {
        let limits: Vec<_> = (0..3).map(|_| MemoryLimit::new(1 << 20)).collect::<Result<_, _>>()?;
        for round in 0..20 {
            let mut load: Vec<String> = Vec::new();
            for step in 0..12 {
                let core = CoreId::new((round + step) % machine::cores()).unwrap_or(CoreId::BOOT);
                let under = Spawn::new().pinned(core).memory(&limits[step % 3]);
                let next = under.start(async move {
                    load.retain(|text| text.len() % 3 != step % 3);
                    load.iter_mut().for_each(|text| text.push_str("some more of it, so that it has to move"));
                    load.extend((0..20).map(|number| "x".repeat(number * step * 7)));
                    load
                });
                load = next.map_err(not_started)?.await?;
            }
            drop(load);
            for limit in &limits {
                falls_to(limit, 0).await?;
            }
        }
        Ok(())
    }
}

/// Counts how many of it are dropped.
struct Counted(Arc<AtomicU64>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

kernel_test! {
    /// A supervisor that has a limit drops what was declared for it, though the limit is used up when it ends.
    #[machine("isolation")]
    async fn a_supervisor_ends_with_its_limit_used_up() -> Outcome {
        // What was killed has a slice to drop what it owns, and a host that is busy would end some of them in the middle.
        let _long = Changed::no_preemption()?;
        let limit = Arc::new(MemoryLimit::new(LIMIT)?);
        let dropped = Arc::new(AtomicU64::new(0));
        for round in 1..=5 {
            let (under, counted) = (Spawn::new().memory(&limit), dropped.clone());
            let root = under.start(async move {
                let counted = Counted(counted);
                let waits = Child::process("waits", move |mut shutdown| {
                    let _ = &counted;
                    async move { shutdown.requested().await }
                });
                Supervisor::one_for_one().child(waits.within(Duration::from_secs(60))).start()
            });
            let running = root.map_err(not_started)?.await?.map_err(|error| Failure(alloc::format!("{error}")))?;
            running.children().await?;
            // It takes all that is left, to the last block, again and again.
            let glutton = under.start(async {
                let mut all = Vec::with_capacity(200);
                while all.len() < 200 {
                    all.push(rest(64));
                    sched::yield_now().await;
                }
                pending::<()>().await;
                drop(all);
            });
            let glutton = glutton.map_err(not_started)?;
            sched::out_of_work().await;
            let stopped = running.stop().await;
            sched::out_of_work().await;
            let process = glutton.process().clone();
            process.kill();
            let _ = glutton.await;
            drop((running, process));
            ensure!(stopped.is_ok(), "it was not stopped: {stopped:?}");
            ensure_eq!(dropped.load(Ordering::Acquire), round, "declarations that were dropped");
            falls_to(&limit, 0).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// A limit that is given to somebody under another: what that takes is charged to its own alone, whoever made that.
    #[machine("isolation")]
    async fn one_inside_another() -> Outcome {
        let outer = Arc::new(MemoryLimit::new(LIMIT)?);
        let under = Spawn::new().memory(&outer);
        let inside = under.start(async {
            let inner = MemoryLimit::new(4 * LIMIT)?;
            let process = Spawn::new().memory(&inner).start(async { rest(1000).len() });
            let blocks = process.map_err(not_started)?.await?;
            ensure!(blocks >= LIMIT / 64 || blocks * 1000 > LIMIT, "{blocks} blocks in the inner limit");
            falls_to(&inner, 0).await?;
            Ok::<_, Failure>(())
        });
        inside.map_err(not_started)?.await??;
        falls_to(&outer, 0).await
    }
}
