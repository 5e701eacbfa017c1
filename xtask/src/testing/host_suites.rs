//! Runs in-kernel suites on the kernel's other back end: as programs on the host, a thread for each core.
//!
//! The same tests, and the same code above `arch/`. What a test needs that threads do not have (preemption,
//! isolation, the kernel's heap) makes it skip itself.

use super::Tally;
use super::{Report, Task, processors};
use crate::build::{Executable, build_host_suites, cargo};
use crate::progress::{self, say};
use crate::stream::notices;
use anyhow::{Context, Result};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The suites of the portable rooms.
pub const HOST_SUITES: [&str; 3] = ["sched", "actor", "process"];
/// How long one program may take.
const LIMIT: Duration = Duration::from_secs(600);

/// What to run: suites, and with how many threads for cores.
pub type HostBoots = Vec<(&'static str, u32)>;

/// Builds the suites; then each is run, all tests or those whose name contains `filter`.
pub fn host_suite_tasks<'a>(boots: &HostBoots, filter: Option<&str>) -> (Tally, Vec<Task<'a>>) {
    let mut total = Tally::default();
    let mut names: Vec<_> = boots.iter().map(|(suite, _)| *suite).collect();
    names.dedup();
    if names.is_empty() {
        return (total, Vec::new());
    }
    let mut command = cargo();
    command.arg("test");
    let job = progress::job(BUILD_JOB);
    let built = build_host_suites(command, &names);
    drop(job);
    let built: Vec<_> = match built {
        Ok(built) => built.into_iter().map(Arc::new).collect(),
        Err(error) => {
            total.fail(format!("host: {error:#}"));
            return (total, Vec::new());
        }
    };
    let words: Vec<_> = filter.map(|filter| format!("filter={filter}")).into_iter().collect();
    let mut tasks = Vec::new();
    for (suite, threads) in boots {
        let Some(built) = built.iter().find(|built| built.name == *suite).cloned() else {
            total.fail(format!("host {suite}: cargo built no program for it"));
            continue;
        };
        let (threads, words) = (*threads, words.clone());
        let busy = (threads as usize).min(processors());
        tasks.push(Task::new(title("host", suite, threads), busy, move || {
            run_host_suite(&built, threads, &words, "host")
        }));
    }
    (total, tasks)
}

/// What the building of them is called while it runs.
pub const BUILD_JOB: &str = "building the suites for the host";

/// What one of them is called.
pub fn title(what: &str, suite: &str, threads: u32) -> String {
    format!("{what} {suite}, {threads} threads")
}

/// Runs one suite with boot arguments; what it prints is shown only if something failed.
pub fn run_host_suite(suite: &Executable, cores: u32, words: &[String], what: &str) -> Result<Tally> {
    let name = title(what, &suite.name, cores);
    let began = Instant::now();
    let mut command = Command::new(&suite.path);
    command.args(["--smp", &cores.to_string()]).args(words).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child =
        command.stderr(Stdio::piped()).spawn().with_context(|| format!("{name} cannot be started"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = (thread::spawn(|| read(stdout)), thread::spawn(|| read(stderr)));
    let status = loop {
        match child.try_wait().with_context(|| format!("{name} cannot be waited for"))? {
            Some(status) => break Some(status),
            None if began.elapsed() > LIMIT || crate::machine::interrupted() => {
                // It may just have ended by itself; then there is nothing to do.
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => thread::sleep(Duration::from_millis(20)),
        }
    };
    let (out, err) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
    let mut report = Report::default();
    notices(&out).iter().for_each(|notice| report.take(notice));
    let how = match status {
        Some(status) => status.to_string(),
        None => format!("ended after {} s", began.elapsed().as_secs()),
    };
    let mut tally = report.close(status.is_some_and(|status| status.success()), &how);
    for failure in &mut tally.failures {
        *failure = format!("{name}, {failure}");
    }
    let mut told = format!("{name}: {tally} ({:.1} s)", began.elapsed().as_secs_f64());
    if tally.failed() > 0 {
        let (out, err) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
        told.push_str(&format!("\n--- everything that {name} printed:\n{out}{err}--- end of it"));
    }
    // At once: others print too.
    say!("{told}");
    Ok(tally)
}

fn read(source: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut source) = source {
        // What was read before an error is kept.
        let _ = source.read_to_end(&mut bytes);
    }
    bytes
}
