//! The same promises over and over: steals, suspensions, wake-ups. How often is said by the boot arguments
//! `steals`, `suspensions` and `wakeups`; `cargo xtask test --soak` asks for millions.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use magpie::arch::CoreId;
use magpie::internals::mem::stack;
use magpie::sched::{self, Setting, Spawn, VictimRule, yield_now};
use magpie::{machine, stats};
use magpie_tests::{Changed, Failure, amount, ensure, ensure_eq, kernel_test};

fn stolen() -> u64 {
    stats::total(|core| core.processes_stolen.get())
}

fn suspended() -> u64 {
    stats::total(|core| core.preemptions.get())
}

/// Processes of one round: more than fit into a deque.
const ROUND: u64 = 400;
/// Turns of each.
const TURNS: u64 = 4;

/// Starts a round's processes on the first core; each notes every turn, and whether it was alone in it.
async fn one_round() -> Result<(), Failure> {
    let turns = Arc::new(AtomicU64::new(0));
    let twice = Arc::new(AtomicBool::new(false));
    let (counted, together) = (turns.clone(), twice.clone());
    let started = Spawn::new().pinned(CoreId::BOOT).start(async move {
        let process = || {
            let (turns, twice) = (counted.clone(), together.clone());
            async move {
                let inside = AtomicBool::new(false);
                for _ in 0..TURNS {
                    if inside.swap(true, Ordering::Relaxed) {
                        twice.store(true, Ordering::Relaxed);
                    }
                    turns.fetch_add(1, Ordering::Relaxed);
                    inside.store(false, Ordering::Relaxed);
                    yield_now().await;
                }
            }
        };
        (0..ROUND).map(|_| Spawn::new().start(process())).collect::<Vec<_>>()
    })?;
    let Ok(started) = started.await else { return Err("the parent crashed".into()) };
    ensure_eq!(started.len() as u64, ROUND, "processes started");
    for handle in started {
        ensure!(handle?.await.is_ok(), "a process crashed");
    }
    ensure_eq!(turns.load(Ordering::Relaxed), ROUND * TURNS, "turns in a round");
    ensure!(!twice.load(Ordering::Relaxed), "a process ran on two cores at once");
    Ok(())
}

kernel_test! {
    /// No process is lost or run twice over many steals, under each victim rule in turn.
    #[cores(2)]
    async fn nothing_is_lost_over_many_steals() -> Outcome {
        let wanted = amount("steals", 20_000) / VictimRule::ALL.len() as u64;
        for rule in VictimRule::ALL {
            let _rule = Changed::new(&[(Setting::VictimRule, rule as u64)])?;
            let before = stolen();
            while stolen() - before < wanted {
                one_round().await?;
            }
        }
        Ok(())
    }
}

/// A chain of floating-point and integer steps that keeps all its values in registers.
fn chain(seed: u64, steps: u64) -> ([u64; 8], u64) {
    let mut values: [f64; 8] = core::array::from_fn(|i| (seed + i as u64) as f64 + 0.5);
    let mut whole = seed | 1;
    for _ in 0..steps {
        for i in 0..8 {
            values[i] = values[i] * 0.999_999 + values[(i + 1) % 8] * 1e-6;
        }
        whole = whole.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(17);
    }
    (values.map(f64::to_bits), whole)
}

kernel_test! {
    /// Registers, floating point among them, survive many suspensions: the same computation, again and again,
    /// on every core, among others that force it to be suspended.
    #[machine("preemption")]
    async fn registers_survive_many_suspensions() -> Outcome {
        const STEPS: u64 = 20_000;
        let wanted = amount("suspensions", 2_000);
        // As short as a slice may be.
        let _short = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        let before = suspended();
        let mut handles = Vec::new();
        for seed in 0..3 * machine::cores() as u64 {
            handles.push(sched::spawn(async move {
                let right = chain(seed, STEPS);
                while suspended() - before < wanted {
                    if black_box(chain(black_box(seed), STEPS)) != right {
                        return false;
                    }
                }
                true
            })?);
        }
        for handle in handles {
            ensure_eq!(handle.await, Ok(true), "whether every computation gave the same result");
        }
        Ok(())
    }
}

/// What one try of the test below came to.
async fn hog_and_neighbour() -> Result<bool, Failure> {
    let refused = || stats::total(|core| core.preemptions_without_stack.get());
    let (refused_before, mut taken) = (refused(), Vec::with_capacity(1 << 10));
    while let Some(stack) = stack::take() {
        taken.push(stack);
    }
    ensure!(!taken.is_empty(), "there were stacks to take");
    let pinned = Spawn::new().pinned(CoreId::BOOT);
    let flag = || Arc::new(AtomicBool::new(false));
    let (has_yielded, has_begun, is_over) = (flag(), flag(), flag());
    let (yielded, begun, over) = (has_yielded.clone(), has_begun.clone(), is_over.clone());
    let neighbour = pinned.start(async move {
        // By turns that it ends itself, until the hog is suspended: who shares a core with it meets it in no other state.
        while !has_begun.load(Ordering::Relaxed) {
            yield_now().await;
            yielded.store(true, Ordering::Relaxed);
        }
        // Should this process have been suspended, too, then the two take turns on their stacks, and no turn is refused.
        let suspended_before = suspended();
        while refused() == refused_before && suspended() < suspended_before + 10 {
            core::hint::spin_loop();
        }
        let was_refused = refused() != refused_before;
        // From here on there are stacks again.
        taken.drain(..).for_each(stack::give);
        let suspended_before = suspended();
        while suspended() == suspended_before {
            core::hint::spin_loop();
        }
        over.store(true, Ordering::Relaxed);
        was_refused
    })?;
    // A process that has not ended a turn gets none on a reserve, and this one has the stacks.
    while !has_yielded.load(Ordering::Relaxed) {
        yield_now().await;
    }
    let hog = pinned.start(async move {
        begun.store(true, Ordering::Relaxed);
        while !is_over.load(Ordering::Relaxed) {
            core::hint::spin_loop();
        }
    })?;
    ensure!(hog.await.is_ok(), "the hog crashed");
    neighbour.await.map_err(|_| "the neighbour crashed".into())
}

kernel_test! {
    /// With no stack left in the pool a turn is suspended by means of the core's reserve. There a process that has ended turns
    /// before gets its turn; should it then go on, that is counted, and with stacks there again it is suspended, too.
    #[machine("preemption")]
    async fn without_a_stack_a_turn_goes_on() -> Outcome {
        // A busy host can suspend the neighbour before its time, wherefore there is more than one try.
        for _ in 0..100 {
            if hog_and_neighbour().await? {
                return Ok(());
            }
        }
        Err("no turn was refused in 100 tries".into())
    }
}
