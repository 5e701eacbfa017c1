//! How long is left: what each job took the last time, by how fast this run goes. It neither looks at a clock nor at
//! the terminal.

use std::collections::{BTreeMap, BTreeSet};

/// What a job is taken for that nobody knows anything about, in seconds.
const UNKNOWN_SECONDS: f64 = 2.0;
/// The pace that was stored counts as much as so many seconds of this run: the first jobs alone say little.
const PRIOR_SECONDS: f64 = 20.0;

/// What earlier runs have left: seconds for each job, and the pace.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Known {
    /// What each job took.
    pub seconds: BTreeMap<String, f64>,
    /// How long a run took by the sum of its jobs: below 1 where several went at once.
    pub pace: Option<f64>,
}

/// The jobs of a run.
#[derive(Debug, Default)]
pub struct Estimate {
    known: Known,
    /// What one takes of which nothing is known.
    usual: f64,
    waiting: BTreeSet<String>,
    done: BTreeMap<String, f64>,
}

impl Estimate {
    /// No jobs yet.
    pub fn new(known: Known) -> Self {
        Self { known, ..Self::default() }
    }

    /// These jobs are to come.
    pub fn expect(&mut self, jobs: impl IntoIterator<Item = String>) {
        self.waiting.extend(jobs);
        let known = self.waiting.iter().chain(self.done.keys()).filter_map(|job| self.known.seconds.get(job));
        let (count, sum) = known.fold((0.0, 0.0), |(count, sum), seconds| (count + 1.0, sum + seconds));
        self.usual = if count > 0.0 { sum / count } else { UNKNOWN_SECONDS };
    }

    /// A job has ended. One that nobody expected counts too.
    pub fn end(&mut self, job: &str, seconds: f64) {
        self.waiting.remove(job);
        self.done.insert(job.to_owned(), seconds);
    }

    /// How many jobs have ended, and how many there are.
    pub fn count(&self) -> (usize, usize) {
        (self.done.len(), self.done.len() + self.waiting.len())
    }

    /// What the jobs that ended took.
    pub fn done(&self) -> &BTreeMap<String, f64> {
        &self.done
    }

    /// How much of all is done, in thousandths. `running`: jobs that run, and for how long they have.
    pub fn thousandths(&self, running: &[(String, f64)]) -> u64 {
        let (done, all) = (self.worked(running), self.all());
        if all > 0.0 { (1000.0 * done / all) as u64 } else { 0 }
    }

    /// The seconds that are left after `elapsed` of them; `None` while that would be a guess.
    pub fn left(&self, running: &[(String, f64)], elapsed: f64) -> Option<f64> {
        let worked = self.worked(running);
        let pace = match self.known.pace {
            Some(prior) => (prior * PRIOR_SECONDS + elapsed) / (PRIOR_SECONDS + worked),
            // The first tenth says how fast it goes.
            None if worked < self.all() / 10.0 => return None,
            None => elapsed / worked,
        };
        Some((self.all() - worked) * pace)
    }

    /// How long the run took by the sum of its jobs.
    pub fn pace(&self, elapsed: f64) -> Option<f64> {
        let sum: f64 = self.done.values().sum();
        (sum > 0.0).then_some(elapsed / sum)
    }

    /// What a job is expected to take, in seconds.
    pub fn expected(&self, job: &str) -> f64 {
        self.known.seconds.get(job).copied().unwrap_or(self.usual)
    }

    fn all(&self) -> f64 {
        self.waiting.iter().chain(self.done.keys()).map(|job| self.expected(job)).sum()
    }

    /// What is done, in the seconds that were expected for it. A job that takes longer than expected does not grow.
    fn worked(&self, running: &[(String, f64)]) -> f64 {
        let done: f64 = self.done.keys().map(|job| self.expected(job)).sum();
        let begun = running.iter().map(|(job, seconds)| seconds.min(self.expected(job)));
        done + begun.sum::<f64>()
    }
}

/// A length of time as one says it.
pub fn in_words(seconds: f64) -> String {
    match seconds {
        // Nobody waits by the second.
        short if short < 100.0 => format!("{} s", (short / 5.0).ceil().max(1.0) * 5.0),
        long => format!("{} min", (long / 60.0).round()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Estimate, Known, in_words};

    fn names(jobs: &[&str]) -> Vec<String> {
        jobs.iter().map(|job| (*job).to_owned()).collect()
    }

    fn known(pace: Option<f64>) -> Known {
        let seconds = [("a", 10.0), ("b", 30.0), ("c", 60.0)].map(|(job, seconds)| (job.to_owned(), seconds));
        Known { seconds: seconds.into(), pace }
    }

    #[test]
    fn durations_of_the_last_run_tell_what_is_left() {
        let mut estimate = Estimate::new(known(Some(0.5)));
        estimate.expect(names(&["a", "b", "c"]));
        // Two at once, as the last time.
        assert_eq!(estimate.left(&[], 0.0), Some(50.0));
        estimate.end("a", 10.0);
        estimate.end("b", 30.0);
        assert_eq!(estimate.left(&[], 20.0), Some(30.0));
        assert_eq!(estimate.left(&[("c".into(), 40.0)], 40.0), Some(10.0));
        assert_eq!(estimate.thousandths(&[("c".into(), 40.0)]), 800);
        // It takes longer than it did, but not for ever.
        assert_eq!(estimate.left(&[("c".into(), 90.0)], 65.0), Some(0.0));
        estimate.end("c", 100.0);
        assert_eq!((estimate.left(&[], 75.0), estimate.count()), (Some(0.0), (3, 3)));
        assert_eq!(estimate.pace(70.0), Some(0.5));
    }

    #[test]
    fn a_busy_host_makes_it_longer() {
        let mut estimate = Estimate::new(known(Some(1.0)));
        estimate.expect(names(&["a", "b", "c"]));
        estimate.end("b", 300.0);
        assert_eq!(estimate.left(&[], 300.0), Some(70.0 * 320.0 / 50.0));
    }

    #[test]
    fn a_first_run_counts() {
        let mut estimate = Estimate::new(Known::default());
        estimate.expect((0..20).map(|job| job.to_string()));
        assert_eq!(estimate.left(&[], 1.0), None);
        estimate.end("0", 5.0);
        estimate.end("1", 5.0);
        assert_eq!((estimate.left(&[], 10.0), estimate.thousandths(&[])), (Some(90.0), 100));
    }

    #[test]
    fn what_is_new_is_taken_for_the_mean() {
        let mut estimate = Estimate::new(known(Some(1.0)));
        estimate.expect(names(&["a", "b", "new"]));
        assert_eq!(estimate.left(&[], 0.0), Some(60.0));
        // One that nobody announced is no reason to stumble.
        estimate.end("stray", 1.0);
        assert_eq!(estimate.count(), (1, 4));
    }

    #[test]
    fn time_is_said_roughly() {
        let said = [0.0, 12.0, 61.0, 100.0, 171.0].map(in_words);
        assert_eq!(said, ["5 s", "15 s", "65 s", "2 min", "3 min"]);
    }
}
