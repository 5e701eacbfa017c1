//! Runs in-kernel suites on the kernel's other back end: as programs on the host, a thread for each core.
//!
//! The same tests, and the same code above `arch/`. What a test needs that threads do not have (preemption,
//! isolation, the kernel's heap) makes it skip itself.

use super::Tally;
use super::report::Report;
use crate::build::{Executable, build_host_suites, cargo};
use crate::stream::notices;
use anyhow::{Context, Result};
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The suites of the portable rooms.
pub const HOST_SUITES: [&str; 3] = ["sched", "actor", "process"];
/// Numbers of cores.
const CORES: [u32; 3] = [1, 2, 4];
/// How long one program may take.
const LIMIT: Duration = Duration::from_secs(600);

/// Builds and runs the suites, all tests or those whose name contains `filter`.
pub fn run_host_suites(filter: Option<&str>) -> Result<Tally> {
    let mut total = Tally::default();
    let mut command = cargo();
    command.arg("test");
    let built = match build_host_suites(command, &HOST_SUITES) {
        Ok(built) => built,
        Err(error) => {
            total.fail(format!("host: {error:#}"));
            return Ok(total);
        }
    };
    let words: Vec<_> = filter.map(|filter| format!("filter={filter}")).into_iter().collect();
    for suite in &built {
        for cores in CORES {
            total.add(run_host_suite(suite, cores, &words, "host")?);
            if crate::machine::interrupted() {
                return Ok(total);
            }
        }
    }
    Ok(total)
}

/// Runs one suite with boot arguments; what it prints is shown only if something failed.
pub fn run_host_suite(suite: &Executable, cores: u32, words: &[String], what: &str) -> Result<Tally> {
    let name = format!("{what} {}, {cores} threads", suite.name);
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
    println!("{name}: {tally} ({:.1} s)", began.elapsed().as_secs_f64());
    if tally.failed() > 0 {
        println!("--- everything that {name} printed:");
        println!("{}{}--- end of it", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
    }
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
