//! Runs benchmarks one after another, each on an executor of its own.

use alloc::vec::Vec;

use magpie::actor::{Config, Executor, VictimRule};
use magpie::log::text;
use magpie::mem::heap::HEAP;
use magpie::{machine, sched};
use magpie_boot::ExitCode;

use crate::driver::Failed;
use crate::figures::{ALL, Figure};
use crate::stopwatch;

fn number(name: &str) -> Option<u64> {
    machine::argument(name)?.parse().ok()
}

/// Runs what the boot arguments name.
pub async fn all() -> ExitCode {
    let wanted = machine::argument("bench").unwrap_or("");
    let repeat = number("repeat").unwrap_or(1);
    let mut well = true;
    for _ in 0..repeat {
        if wanted.is_empty() {
            for figure in ALL {
                well &= one(figure, figure.defaults).await;
            }
        }
        for spec in wanted.split(',').filter(|spec| !spec.is_empty()) {
            let mut words = spec.split(':');
            let name = words.next().unwrap_or("");
            let Some(figure) = ALL.iter().find(|figure| figure.name == name) else {
                text!("there is no benchmark {name}");
                return ExitCode::Failure;
            };
            let given: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
            let parameters: Vec<u64> = figure
                .defaults
                .iter()
                .enumerate()
                .map(|(index, default)| given.get(index).copied().unwrap_or(*default))
                .collect();
            well &= one(figure, &parameters).await;
        }
    }
    if well { ExitCode::Success } else { ExitCode::Failure }
}

async fn one(figure: &Figure, parameters: &[u64]) -> bool {
    match measure(figure, parameters).await {
        Ok(()) => true,
        Err(Failed) => {
            text!("{} failed: give the machine more memory", figure.name);
            false
        }
    }
}

async fn measure(figure: &Figure, parameters: &[u64]) -> Result<(), Failed> {
    let steals = number("steal") != Some(0);
    let config = Config {
        workers: number("workers").map(|workers| workers as usize),
        victim: if steals { VictimRule::LongestVictim } else { VictimRule::None },
        ..Config::default()
    };
    let executor = Executor::start(&config).map_err(|_| Failed)?;
    let handle = executor.handle().clone();
    let workers = handle.workers();
    let (used, _) = HEAP.usage();
    let go = (figure.prepare)(&handle, parameters)?;
    // What was prepared is over before time runs.
    sched::out_of_work().await;
    let operations = go()?;
    sched::out_of_work().await;
    let bytes = HEAP.usage().0.saturating_sub(used) as u64;
    let nanoseconds = stopwatch::nanoseconds().ok_or(Failed)?;
    let steals = u8::from(steals);
    match figure.bytes_per_operation {
        false => {
            text!("@bench {} ops={operations} ns={nanoseconds} workers={workers} steal={steals}", figure.name)
        }
        true => {
            let each = bytes / operations;
            text!(
                "@bench {} ops={operations} ns={nanoseconds} workers={workers} steal={steals} bytes={each}",
                figure.name
            )
        }
    }
    drop(handle);
    executor.stop().await;
    Ok(())
}
