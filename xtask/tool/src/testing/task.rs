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

/// Makes tasks, and hands them on as they are ready.
type Maker<'a> = Box<dyn FnOnce(&dyn Fn(Vec<Task<'a>>)) -> Result<Tally> + Send + 'a>;

enum Work<'a> {
    Make(Maker<'a>),
    Run(Task<'a>),
}

fn job(task: Task<'_>) -> Job<Work<'_>> {
    Job { processors: task.processors, usual: progress::usual(&task.name), work: Work::Run(task) }
}

/// Runs all of them on so many processors, and adds up. After Ctrl-C, no more are begun.
pub fn run_tasks(tasks: Vec<Task<'_>>, processors: usize) -> Result<Tally> {
    run_jobs(tasks.into_iter().map(job).collect(), processors)
}

/// As [`run_tasks`], and beside them, on one of the processors, what makes more of them.
pub fn run_tasks_beside<'a>(
    tasks: Vec<Task<'a>>,
    processors: usize,
    make: impl FnOnce(&dyn Fn(Vec<Task<'a>>)) -> Result<Tally> + Send + 'a,
) -> Result<Tally> {
    // It goes first.
    let maker = Job { processors: 1, usual: f64::INFINITY, work: Work::Make(Box::new(make)) };
    run_jobs(tasks.into_iter().map(job).chain([maker]).collect(), processors)
}

fn run_jobs(jobs: Vec<Job<Work<'_>>>, processors: usize) -> Result<Tally> {
    let total = Mutex::new(Ok(Tally::default()));
    side_by_side::run(jobs, processors, |work, add| {
        if crate::machine::interrupted() {
            return;
        }
        let result = match work {
            Work::Make(make) => make(&|tasks| add(tasks.into_iter().map(job).collect())),
            Work::Run(task) => {
                let _job = progress::job(task.name);
                (task.work)()
            }
        };
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
    use super::{ALONE, Task, run_tasks, run_tasks_beside};
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
    fn what_is_made_meanwhile_is_run_too() {
        let one = |name: &str| Task::new(name, 1, || Ok(Tally { passed: 1, ..Tally::default() }));
        for processors in [1, 2] {
            let total = run_tasks_beside(vec![one("a")], processors, |add| {
                add(vec![one("b"), one("c")]);
                add(Vec::new());
                Ok(Tally { passed: 10, ..Tally::default() })
            });
            assert_eq!(total.unwrap().passed, 13);
        }
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
