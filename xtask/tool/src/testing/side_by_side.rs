//! Doing several things at once, as many as the host has processors for, or as a caller says.
//!
//! Each job says how many processors it keeps busy. Jobs that need fewer than there are go first, and of those the longest, so
//! that the last of them is not alone for long. A job may add others, which are chosen from in the same way.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// More would need much memory, and gain little.
const MOST: usize = 4;

/// The host's processors, as far as they are used.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MOST)
}

/// A job, and how many processors it keeps busy.
pub struct Job<T> {
    /// How many; more than there are counts as all.
    pub processors: usize,
    /// How long it takes as a rule, in seconds.
    pub usual: f64,
    /// What to do.
    pub work: T,
}

struct State<T> {
    waiting: Vec<Job<T>>,
    free: usize,
    running: usize,
}

impl<T> State<T> {
    fn add(&mut self, jobs: Vec<Job<T>>, processors: usize) {
        let jobs = jobs.into_iter();
        self.waiting.extend(jobs.map(|job| Job { processors: job.processors.clamp(1, processors), ..job }));
        // Taken from the end.
        self.waiting.sort_by(|a, b| {
            let fewer = b.processors.cmp(&a.processors);
            fewer.then(a.usual.total_cmp(&b.usual))
        });
    }
}

/// Does every job once, with `processors` in all. What `work` hands to the function that it gets is done too.
pub fn run<T: Send>(jobs: Vec<Job<T>>, processors: usize, work: impl Fn(T, &dyn Fn(Vec<Job<T>>)) + Sync) {
    let processors = processors.max(1);
    let mut state = State { waiting: Vec::new(), free: processors, running: 0 };
    state.add(jobs, processors);
    let (state, changed) = (Mutex::new(state), Condvar::new());
    let add = |jobs| {
        state.lock().unwrap_or_else(PoisonError::into_inner).add(jobs, processors);
        changed.notify_all();
    };
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                // A job that panics ends the scope with a panic, whatever becomes of the count.
                let mut now = state.lock().unwrap_or_else(PoisonError::into_inner);
                loop {
                    let free = now.free;
                    let next = now.waiting.iter().rposition(|job| job.processors <= free);
                    let Some(job) = next.map(|place| now.waiting.remove(place)) else {
                        if now.waiting.is_empty() && now.running == 0 {
                            return;
                        }
                        now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
                        continue;
                    };
                    now.free -= job.processors;
                    now.running += 1;
                    drop(now);
                    let back = Back(&state, &changed, job.processors);
                    work(job.work, &add);
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
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        now.free += self.2;
        now.running -= 1;
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
            // Half of them are added by others.
            let job = |number: usize| Job { processors: number % 5, usual: number as f64, work: number };
            run((0..15).map(job).collect(), processors, |number, add| {
                if number < 15 {
                    add(vec![job(number + 15)]);
                }
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
        let job = |processors| Job { processors, usual: 0.0, work: processors == 1 };
        run([1, 2, 1].map(job).into(), 2, |is_small, _| {
            if is_small {
                // Does not end unless the other is there.
                both.wait();
            }
        });
    }

    #[test]
    fn the_longest_of_those_that_need_few_goes_first() {
        let jobs = [(2, 9.0), (1, 1.0), (1, 5.0)];
        let jobs = jobs.map(|(processors, usual)| Job { processors, usual, work: usual as u32 });
        let order = Mutex::new(Vec::new());
        run(jobs.into(), 1, |number, _| order.lock().unwrap().push(number));
        // With one processor all need equally many.
        assert_eq!(order.into_inner().unwrap(), [9, 5, 1]);
    }

    #[test]
    #[should_panic = "a scoped thread panicked"]
    fn a_job_that_panics_hides_nothing_and_holds_up_nobody() {
        let jobs = (0..4).map(|number| Job { processors: 2, usual: 0.0, work: number }).collect();
        run(jobs, 2, |number, _| assert_ne!(number, 3, "on purpose"));
    }
}
