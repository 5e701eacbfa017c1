//! What there is to run, as one list: whatever needs a processor of the host is packed onto all of them.

use super::Tally;
use super::side_by_side::{self, Job};
use crate::progress;
use anyhow::Result;
use std::sync::{Mutex, PoisonError};

/// Takes all processors: for what must not be disturbed.
pub const ALONE: usize = usize::MAX;

/// Something to run.
pub struct Task<'a> {
    /// Its name, which tells it from all others.
    pub name: String,
    /// How many of the host's processors it keeps busy.
    pub processors: usize,
    /// Runs it, prints the result and counts.
    pub work: Box<dyn FnOnce() -> Result<Tally> + Send + 'a>,
}

impl<'a> Task<'a> {
    /// A task.
    pub fn new(
        name: impl Into<String>,
        processors: usize,
        work: impl FnOnce() -> Result<Tally> + Send + 'a,
    ) -> Self {
        Self { name: name.into(), processors, work: Box::new(work) }
    }
}

/// Runs all of them on so many processors, and adds up. After Ctrl-C, no more are begun.
pub fn run_tasks(mut tasks: Vec<Task<'_>>, processors: usize) -> Result<Tally> {
    // Taken from the end: what took longest the last time goes first, so that the last of them is not alone for long.
    tasks.sort_by(|a, b| progress::usual(&a.name).total_cmp(&progress::usual(&b.name)));
    let total = Mutex::new(Ok(Tally::default()));
    let jobs = tasks.into_iter().map(|task| Job { processors: task.processors, work: task });
    side_by_side::run(jobs.collect(), processors, |task: Task<'_>| {
        if crate::machine::interrupted() {
            return;
        }
        let job = progress::job(task.name);
        let result = (task.work)();
        drop(job);
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *total, result) {
            (Ok(total), Ok(tally)) => total.add(tally),
            (Ok(_), error) => *total = error,
            (Err(_), _) => {}
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{ALONE, Task, run_tasks};
    use crate::testing::Tally;
    use anyhow::bail;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn everything_is_added_up() {
        let tasks = (0..5).map(|number| {
            let processors = if number == 3 { ALONE } else { 1 };
            Task::new(number.to_string(), processors, move || {
                Ok(Tally { passed: number, ..Tally::default() })
            })
        });
        assert_eq!(run_tasks(tasks.collect(), 2).unwrap().passed, 10);
    }

    #[test]
    fn an_error_is_not_lost_and_stops_nobody() {
        let ran = AtomicUsize::new(0);
        let tasks = (0..4).map(|number| {
            let ran = &ran;
            Task::new(number.to_string(), 1, move || {
                ran.fetch_add(1, Ordering::Relaxed);
                if number == 2 {
                    bail!("on purpose");
                }
                Ok(Tally::default())
            })
        });
        assert_eq!(run_tasks(tasks.collect(), 1).unwrap_err().to_string(), "on purpose");
        assert_eq!(ran.load(Ordering::Relaxed), 4);
    }
}
