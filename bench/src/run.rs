//! Runs benchmarks one after another, each on an executor of its own.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use magpie::actor::{Config, Executor, ExecutorHandle, MailboxVictim};
use magpie::internals::console;
use magpie::internals::mem::heap::HEAP;
use magpie::log::text;
use magpie::{machine, sched};
use magpie_boot::ExitCode;

use crate::failed::Failed;
use crate::figures::{ALL, Figure};
use crate::{latency, stopwatch, verdict};

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
            let Some(parameters) = parameters(figure, words) else {
                text!("{spec} failed: it takes at most {} whole numbers", figure.defaults.len());
                return ExitCode::Failure;
            };
            well &= one(figure, &parameters).await;
        }
    }
    if well { ExitCode::Success } else { ExitCode::Failure }
}

/// The parameters that are given, and the defaults of the others; `None` if there are more than it takes, or one is no
/// number.
fn parameters<'a>(figure: &Figure, given: impl Iterator<Item = &'a str>) -> Option<Vec<u64>> {
    let mut parameters = figure.defaults.to_vec();
    for (index, word) in given.enumerate() {
        *parameters.get_mut(index)? = word.parse().ok()?;
    }
    Some(parameters)
}

async fn one(figure: &Figure, parameters: &[u64]) -> bool {
    match measure(figure, parameters).await {
        Ok(()) => true,
        Err(failed) => {
            text!("{} failed: {failed}", figure.name);
            false
        }
    }
}

async fn measure(figure: &Figure, parameters: &[u64]) -> Result<(), Failed> {
    let steals = number("steal") != Some(0);
    let rule = if steals { MailboxVictim::LongestVictim } else { MailboxVictim::None };
    let mut config = Config::default().victim(rule);
    config.workers = number("workers").map(|workers| workers as usize);
    config.mailboxes = number("mailboxes").map(|mailboxes| mailboxes as usize);
    let executor = Executor::start(&config).map_err(|_| Failed::Memory)?;
    let handle = executor.handle().clone();
    let result = timed(figure, parameters, &handle, steals).await;
    drop(handle);
    // However it went, nothing of it is left for the next one.
    executor.stop().await;
    result
}

async fn timed(
    figure: &Figure,
    parameters: &[u64],
    handle: &ExecutorHandle,
    steals: bool,
) -> Result<(), Failed> {
    let (used, _) = HEAP.usage();
    stopwatch::reset();
    let go = (figure.prepare)(handle, parameters)?;
    // What was prepared is over before time runs.
    sched::out_of_work().await;
    let operations = go()?;
    sched::out_of_work().await;
    let bytes = HEAP.usage().0.saturating_sub(used) as u64;
    if let Some(what) = verdict::take() {
        return Err(Failed::Wrong(what));
    }
    let (nanoseconds, activity) = stopwatch::reading().ok_or(Failed::Unfinished)?;
    let latency = latency::take();
    let nanoseconds = latency.as_ref().map_or(nanoseconds, |latency| latency.sum);
    let latency = latency.map_or(String::new(), |latency| format!(" {latency}"));
    let (name, workers, steals) = (figure.name, handle.workers(), u8::from(steals));
    let parameters = parameters.iter().map(u64::to_string).collect::<Vec<_>>().join(":");
    let figures = format!(
        "ops={operations} ns={nanoseconds} workers={workers} steal={steals} parameters={parameters} {activity}{latency}"
    );
    match figure.bytes_per_operation {
        false => console::notice(format_args!("@bench {name} {figures}")),
        true => console::notice(format_args!("@bench {name} {figures} bytes={}", bytes / operations.max(1))),
    }
    Ok(())
}
