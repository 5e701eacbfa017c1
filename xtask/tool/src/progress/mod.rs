//! How far a long verb is: a bar with what runs and how long is left, on a terminal; and the one place where such a verb
//! prints, so that bar and lines do not mix.
//!
//! `estimate` says how long is left, `store` keeps what jobs took, `bar` is the terminal's. A verb that shows no progress
//! prints here all the same.

mod bar;
mod estimate;
mod store;

use estimate::{Estimate, in_words};
use indicatif::ProgressBar;
use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the line is renewed.
const GLANCE: Duration = Duration::from_millis(500);

/// The jobs of this run. Never held while the bar is asked for anything, which has a lock of its own.
static JOBS: Mutex<Option<Jobs>> = Mutex::new(None);
/// The bar, where one is shown.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

struct Jobs {
    estimate: Estimate,
    running: Vec<(String, Instant)>,
    began: Instant,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here is left half done by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bar() -> Option<ProgressBar> {
    locked(&BAR).clone()
}

/// A run whose progress is shown until this is dropped.
pub struct Progress {
    file: PathBuf,
    ended: Arc<(Mutex<bool>, Condvar)>,
    ticker: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins, with what `file` tells of earlier runs. `is_shown`: if the terminal can.
    pub fn begin(file: PathBuf, is_shown: bool) -> Self {
        let estimate = Estimate::new(store::load(&file));
        *locked(&JOBS) = Some(Jobs { estimate, running: Vec::new(), began: Instant::now() });
        let ended = Arc::new((Mutex::new(false), Condvar::new()));
        let mut ticker = None;
        if let Some(bar) = is_shown.then(bar::bar).flatten() {
            *locked(&BAR) = Some(bar);
            let ended = ended.clone();
            ticker = Some(thread::spawn(move || {
                let mut now = locked(&ended.0);
                while !*now {
                    refresh();
                    now = ended.1.wait_timeout(now, GLANCE).unwrap_or_else(PoisonError::into_inner).0;
                }
            }));
        }
        Self { file, ended, ticker }
    }

    /// Keeps what the jobs took, for the next run. `is_whole`: none was left out, so the pace says something.
    pub fn keep(&self, is_whole: bool) {
        if let Some(jobs) = &*locked(&JOBS) {
            let elapsed = jobs.began.elapsed().as_secs_f64();
            let pace = if is_whole { jobs.estimate.pace(elapsed) } else { None };
            store::save(&self.file, jobs.estimate.done(), pace);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *locked(&self.ended.0) = true;
        self.ended.1.notify_all();
        if let Some(ticker) = self.ticker.take() {
            // What it panicked with was shown; the bar is no reason to fail.
            let _ = ticker.join();
        }
        if let Some(bar) = locked(&BAR).take() {
            bar.finish_and_clear();
        }
        *locked(&JOBS) = None;
    }
}

/// These jobs are to come.
pub fn expect(jobs: impl IntoIterator<Item = String>) {
    if let Some(state) = &mut *locked(&JOBS) {
        state.estimate.expect(jobs);
    }
}

/// What a job is expected to take, in seconds.
pub fn usual(job: &str) -> f64 {
    locked(&JOBS).as_ref().map_or(0.0, |jobs| jobs.estimate.expected(job))
}

/// A job that runs until this is dropped.
pub struct Job(String);

/// A job begins.
pub fn job(name: impl Into<String>) -> Job {
    let name = name.into();
    if let Some(jobs) = &mut *locked(&JOBS) {
        jobs.running.push((name.clone(), Instant::now()));
    }
    refresh();
    Job(name)
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(jobs) = &mut *locked(&JOBS)
            && let Some(place) = jobs.running.iter().position(|(name, _)| *name == self.0)
        {
            let (name, began) = jobs.running.remove(place);
            jobs.estimate.end(&name, began.elapsed().as_secs_f64());
        }
        refresh();
    }
}

/// Draws the line anew.
fn refresh() {
    let Some(bar) = bar() else { return };
    let line = {
        let jobs = locked(&JOBS);
        let Some(jobs) = &*jobs else { return };
        line(jobs)
    };
    bar.set_position(line.0);
    bar.set_message(line.1);
}

/// Thousandths, and what stands behind the bar.
fn line(jobs: &Jobs) -> (u64, String) {
    let elapsed = |began: &Instant| began.elapsed().as_secs_f64();
    let running: Vec<_> = jobs.running.iter().map(|(name, began)| (name.clone(), elapsed(began))).collect();
    let (done, all) = jobs.estimate.count();
    let left = match jobs.estimate.left(&running, elapsed(&jobs.began)) {
        Some(seconds) => format!(", about {} left", in_words(seconds)),
        None => String::new(),
    };
    let names: Vec<_> = running.iter().map(|(name, seconds)| format!("{name} ({seconds:.0} s)")).collect();
    (jobs.estimate.thousandths(&running), format!("{done} of {all}{left}: {}", names.join("; ")))
}

/// Prints a line on standard output.
pub fn print(line: fmt::Arguments<'_>) {
    match bar() {
        Some(bar) => bar.suspend(|| println!("{line}")),
        None => println!("{line}"),
    }
}

/// Prints a line on standard error.
pub fn remark(line: fmt::Arguments<'_>) {
    match bar() {
        Some(bar) => bar.suspend(|| eprintln!("{line}")),
        None => eprintln!("{line}"),
    }
}

/// As `println!`, beside the bar.
#[macro_export]
macro_rules! say {
    ($($arguments:tt)*) => { $crate::progress::print(format_args!($($arguments)*)) };
}
pub use crate::say;

/// Runs a command to its end and collects its standard output. What it says on standard error appears as it comes.
pub fn output(command: &mut Command) -> io::Result<Output> {
    if bar().is_none() {
        return command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    }
    // cargo shows a bar of its own where it finds a terminal, so it gets none, and its lines appear above ours.
    command.env("CARGO_TERM_COLOR", std::env::var_os("CARGO_TERM_COLOR").unwrap_or_else(|| "always".into()));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let reader = child.stderr.take().map(|errors| {
        thread::spawn(move || {
            for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
                remark(format_args!("{}", String::from_utf8_lossy(&line)));
            }
        })
    });
    let output = child.wait_with_output();
    if let Some(reader) = reader {
        // It only prints; a panic there was shown.
        let _ = reader.join();
    }
    output
}
