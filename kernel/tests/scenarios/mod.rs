//! What a seed runs: the number of cores, the work, and every choice follow from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use magpie::actor::checks::{self, Check};
use magpie::arch::MAX_CORES;
use magpie::machine::{self, Location, Machine};
use magpie::sched::{self, Priority, Setting, Spawn, VictimRule, yield_now};
use magpie::time;

/// Messages that a check of the actor system sends.
const WORK: u64 = 600;
const PROCESSES: u64 = 60;

/// The scheduler's own scenario, and the checks of the actor system that do not need much memory or time.
fn check(seed: u64) -> Option<&'static Check> {
    let wanted = |check: &&Check| {
        ["order::", "storm::", "crowd::", "sending::", "lifetimes::", "placing::pinned", "asking::requests"]
            .iter()
            .any(|name| check.name.starts_with(name))
    };
    let suitable: Vec<_> = checks::ALL.iter().filter(wanted).collect();
    match seed % 2 {
        0 => None,
        _ => Some(suitable[(seed / 2) as usize % suitable.len()]),
    }
}

/// The name of a seed's scenario.
pub fn name(seed: u64) -> &'static str {
    check(seed).map_or("processes", |check| check.name)
}

/// Runs a seed. Panics when something does not hold.
pub fn run(seed: u64) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(20_000_000);
    config.failure_persistence = shuttle::FailurePersistence::None;
    let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(seed, 1);
    shuttle::Runner::new(scheduler, config).run(move || {
        let cores = 1 + (seed / 3 % 4) as usize;
        machine::describe(Machine {
            board: "simulation",
            application: "simulation",
            cores,
            places: [Location::default(); MAX_CORES],
            arguments: "",
            input: None,
        });
        let rule = VictimRule::ALL[(seed / 12) as usize % VictimRule::ALL.len()];
        sched::set_setting(Setting::VictimRule, rule as u64).expect("a rule's number is in range");
        match check(seed) {
            None => processes(cores, seed),
            Some(check) => sched::run_on_threads(cores, seed, (check.start)(WORK))
                .expect("the scheduler ends")
                .expect("what the check says"),
        }
    });
}

/// Processes of every priority spawn, yield, sleep and wake each other; each runs once, never on two cores at once,
/// and the system runs out of work when all have ended, not earlier.
fn processes(cores: usize, seed: u64) {
    let (ended, twice) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (counted, together) = (ended.clone(), twice.clone());
    sched::run_on_threads(cores, seed, async move {
        let mut handles = Vec::new();
        for number in 0..PROCESSES {
            let (ended, twice) = (counted.clone(), together.clone());
            let process = Spawn::new().priority(Priority::ALL[(number % 4) as usize]).start(async move {
                let inside = AtomicBool::new(false);
                for turn in 0..4 {
                    if inside.swap(true, Ordering::Relaxed) {
                        twice.store(true, Ordering::Relaxed);
                    }
                    let child = (turn == 1).then(|| sched::spawn(async move { number }).expect("memory"));
                    inside.store(false, Ordering::Relaxed);
                    if number % 5 == 0 && turn == 2 {
                        time::sleep(std::time::Duration::from_micros(30)).await;
                    }
                    yield_now().await;
                    if let Some(child) = child {
                        assert_eq!(child.await, Ok(number), "what the child returned");
                    }
                }
                ended.fetch_add(1, Ordering::Relaxed);
            });
            handles.push(process.expect("memory"));
        }
        sched::out_of_work().await;
        assert_eq!(counted.load(Ordering::Relaxed), PROCESSES, "out of work with processes left");
        for handle in handles {
            handle.await.expect("no crash");
        }
    })
    .expect("the scheduler ends");
    assert_eq!(ended.load(Ordering::Relaxed), PROCESSES, "processes that ended");
    assert!(!twice.load(Ordering::Relaxed), "a process ran on two cores at once");
}
