//! Preemption: nobody holds a core by not yielding, and nobody notices having been suspended.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::sched::{self, Spawn, yield_now};
use magpie::time::{self, Instant};
use magpie::{machine, stats};
use magpie_tests::{ensure, ensure_eq, kernel_test};

kernel_test! {
    /// A process that spins for ever on its core does not keep another from running there: without
    /// preemption this test could not end.
    #[machine("preemption")]
    async fn a_spinning_process_is_suspended() -> Outcome {
        let free = Arc::new(AtomicBool::new(false));
        let seen = free.clone();
        let pinned = Spawn::new().pinned(CoreId::BOOT);
        let hog = pinned.start(async move {
            let mut rounds: u64 = 0;
            while !seen.load(Ordering::Relaxed) {
                rounds += 1;
            }
            rounds
        });
        let Ok(hog) = hog else { return Err("the hog was not started".into()) };
        let neighbour = pinned.start(async move {
            for _ in 0..10 {
                yield_now().await;
            }
            free.store(true, Ordering::Relaxed);
        });
        let Ok(neighbour) = neighbour else { return Err("the neighbour was not started".into()) };
        ensure!(neighbour.await.is_ok(), "the neighbour crashed");
        let Ok(rounds) = hog.await else { return Err("the hog crashed".into()) };
        ensure!(rounds > 0, "the hog never ran");
        Ok(())
    }
}

kernel_test! {
    /// Every core is held by a hog, and every hog but one yields never; a process pinned to each core
    /// still gets its turns.
    #[machine("preemption")]
    async fn hogs_on_every_core_share() -> Outcome {
        let cores = machine::cores();
        let done = Arc::new(AtomicU64::new(0));
        let mut hogs = Vec::new();
        let mut others = Vec::new();
        for core in (0..cores).filter_map(CoreId::new) {
            let seen = done.clone();
            hogs.push(Spawn::new().pinned(core).start(async move {
                while seen.load(Ordering::Relaxed) < cores as u64 {
                    core::hint::spin_loop();
                }
            }));
            let done = done.clone();
            others.push(Spawn::new().pinned(core).start(async move {
                yield_now().await;
                done.fetch_add(1, Ordering::Relaxed);
            }));
        }
        for handle in others.into_iter().chain(hogs) {
            let Ok(handle) = handle else { return Err("a process was not started".into()) };
            ensure!(handle.await.is_ok(), "a process crashed");
        }
        Ok(())
    }
}

/// A chain of floating-point steps that keeps eight values in registers; the result depends on each.
fn floating_point_chain(seed: u64, steps: u64) -> [f64; 8] {
    let mut values: [f64; 8] = core::array::from_fn(|i| (seed + i as u64) as f64 + 0.5);
    for _ in 0..steps {
        for i in 0..8 {
            values[i] = values[i] * 0.999_999 + values[(i + 1) % 8] * 1e-6;
        }
    }
    values
}

kernel_test! {
    /// Integer and floating-point registers survive forced preemption: a long computation without a
    /// yield gives, among suspended others on every core, the result that it gives alone.
    #[machine("preemption")]
    async fn registers_survive_preemption() -> Outcome {
        const STEPS: u64 = 300_000;
        let preemptions = || stats::total(|core| core.preemptions.get());
        let before = preemptions();
        // Again on a host so fast that nothing was suspended.
        while preemptions() == before {
            let mut handles = Vec::new();
            for seed in 0..4 * machine::cores() as u64 {
                handles.push(sched::spawn(async move {
                    let first = black_box(floating_point_chain(black_box(seed), STEPS));
                    let second = black_box(floating_point_chain(black_box(seed), STEPS));
                    (first, second)
                })?);
            }
            for handle in handles {
                let Ok((first, second)) = handle.await else { return Err("a process crashed".into()) };
                ensure_eq!(first.map(f64::to_bits), second.map(f64::to_bits), "the same computation done twice");
            }
        }
        Ok(())
    }
}

/// Its behaviours run for so long.
struct Long;

impl Actor for Long {}

impl Receive<Duration> for Long {
    type Reply = ();

    fn receive(&mut self, length: Duration, _: &mut Context<Self>) {
        let began = Instant::now();
        while began.elapsed() < length {
            core::hint::spin_loop();
        }
    }
}

kernel_test! {
    /// A turn begins with all of its reductions, whatever has ended on its core before: a behaviour that was suspended has none left.
    #[machine("preemption")]
    async fn each_turn_has_all_its_reductions() -> Outcome {
        let stop = Arc::new(AtomicBool::new(false));
        let mut yielding = Vec::new();
        for _ in 0..3 {
            let stop = stop.clone();
            yielding.push(sched::spawn(async move {
                let (mut turns, mut without) = (0_u64, 0_u64);
                while !stop.load(Ordering::Relaxed) {
                    yield_now().await;
                    turns += 1;
                    without += u64::from(sched::is_exhausted());
                }
                (turns, without)
            })?);
        }
        let executor = Executor::start(&Config::default())?;
        let long = [executor.handle().spawn(Long)?, executor.handle().spawn(Long)?];
        for round in 0..20 {
            for actor in &long {
                actor.send(Duration::from_micros(2000 + 700 * (round % 11)))?;
            }
            time::sleep(Duration::from_millis(25)).await;
        }
        stop.store(true, Ordering::Relaxed);
        for process in yielding {
            let Ok((turns, without)) = process.await else { return Err("a process crashed".into()) };
            ensure_eq!(without, 0, "turns without reductions, of {turns}");
        }
        executor.stop().await;
        Ok(())
    }
}
