//! Doing several things at once, as many as the host has processors for.
//!
//! Each job says how many processors it keeps busy. Jobs that need fewer than there are go first, so that the last of them
//! is not alone for long.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// More at once would need much memory, and gain little.
const MOST: usize = 4;

/// The host's processors, as far as they are used.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MOST)
}

/// A job, and how many processors it keeps busy.
pub struct Job<T> {
    /// How many; more than there are counts as all.
    pub processors: usize,
    /// What to do.
    pub work: T,
}

struct State<T> {
    waiting: Vec<Job<T>>,
    free: usize,
}

/// Does every job once, with `processors` in all. Among jobs that need equally many, those that come later go first.
pub fn run<T: Send>(mut jobs: Vec<Job<T>>, processors: usize, work: impl Fn(T) + Sync) {
    let processors = processors.max(1);
    for job in &mut jobs {
        job.processors = job.processors.clamp(1, processors);
    }
    // Taken from the end.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.processors));
    let state = Mutex::new(State { waiting: jobs, free: processors });
    let changed = Condvar::new();
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                // A job that panics ends the scope with a panic, whatever becomes of the count.
                let mut now = state.lock().unwrap_or_else(PoisonError::into_inner);
                loop {
                    let free = now.free;
                    let next = now.waiting.iter().rposition(|job| job.processors <= free);
                    let Some(job) = next.map(|place| now.waiting.remove(place)) else {
                        if now.waiting.is_empty() {
                            return;
                        }
                        now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
                        continue;
                    };
                    now.free -= job.processors;
                    drop(now);
                    let back = Back(&state, &changed, job.processors);
                    work(job.work);
                    drop(back);
                    now = state.lock().unwrap_or_else(PoisonError::into_inner);
                }
            });
        }
    });
}

/// Gives processors back, also when the job panics: else the others would wait for ever.
struct Back<'a, T>(&'a Mutex<State<T>>, &'a Condvar, usize);

impl<T> Drop for Back<'_, T> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).free += self.2;
        self.1.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{Job, run};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn every_job_is_done_once_and_no_processor_is_used_twice() {
        for processors in [0, 1, 2, 3, 8] {
            let (busy, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
            let jobs = (0..30).map(|number| Job { processors: number % 5, work: number }).collect();
            run(jobs, processors, |number| {
                let own = (number % 5).clamp(1, processors.max(1));
                let all = busy.fetch_add(own, Ordering::SeqCst) + own;
                assert!(all <= processors.max(1), "{all} of {processors} processors are busy");
                thread::sleep(Duration::from_millis(1));
                busy.fetch_sub(own, Ordering::SeqCst);
                done.lock().unwrap().push(number);
            });
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, (0..30).collect::<Vec<_>>());
        }
    }

    #[test]
    fn two_small_ones_are_done_at_once() {
        let both = std::sync::Barrier::new(2);
        let jobs = [1, 2, 1].into_iter().map(|processors| Job { processors, work: processors == 1 });
        run(jobs.collect(), 2, |is_small| {
            if is_small {
                // Does not end unless the other is there.
                both.wait();
            }
        });
    }

    #[test]
    #[should_panic = "a scoped thread panicked"]
    fn a_job_that_panics_hides_nothing_and_holds_up_nobody() {
        let jobs = (0..4).map(|number| Job { processors: 2, work: number }).collect();
        run(jobs, 2, |number| assert_ne!(number, 3, "on purpose"));
    }
}
