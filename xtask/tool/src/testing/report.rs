//! What a suite says about itself while it runs, made into a count that cannot hide a loss.
//!
//! ```text
//!   @test start A ---> A runs ---> @test ok|fail|skip A ---> none runs ---> @test done
//! ```
//!
//! A test that has started and of which nothing more is heard has failed, unless it said that it would stop the kernel
//! with a certain panic, and that came. A guest may also end after a test that failed: the tests after either run in
//! another. Else a suite that does not reach
//! `done`, or whose `done` counts something else than what was heard, has failed once more as a whole, for
//! nobody can know which tests are missing.

use super::Tally;
use crate::stream::Notice;

/// The state of one suite's run.
#[derive(Debug, Default)]
pub struct Report {
    tally: Tally,
    running: Option<String>,
    /// What has failed, while no other has started.
    failed: Option<String>,
    /// What the running test said the kernel's panic would contain.
    expected_panic: Option<String>,
    done: Option<(u32, u32, u32)>,
    panic: Option<String>,
}

impl Report {
    /// Takes one notice.
    pub fn take(&mut self, notice: &Notice) {
        match notice {
            Notice::TestStart(name) => {
                self.failed = None;
                if let Some(lost) = self.running.replace(name.clone()) {
                    self.tally.fail(format!("{lost}: its result never arrived"));
                }
            }
            Notice::TestPanics(text) => self.expected_panic = Some(text.clone()),
            Notice::TestOk(name, _) => {
                self.finished(name);
                self.tally.passed += 1;
            }
            Notice::TestFail(name, reason) => {
                self.finished(name);
                self.tally.fail(format!("{name}: {reason}"));
                self.failed = Some(name.clone());
            }
            Notice::TestSkip(name, _) => {
                self.finished(name);
                self.tally.skipped += 1;
            }
            Notice::TestDone(passed, failed, skipped) => self.done = Some((*passed, *failed, *skipped)),
            Notice::Panic(message) => {
                self.panic.get_or_insert_with(|| message.clone());
            }
            Notice::Boot { .. } | Notice::Bench(..) => {}
        }
    }

    /// The test that has started and not ended: once the guest is gone, the one that took it along.
    pub fn running(&self) -> Option<&str> {
        self.running.as_deref()
    }

    /// With which test the guest has ended before all were run: it was running, or it has failed.
    pub fn ended_with(&self) -> Option<&str> {
        let failed = self.failed.as_deref().filter(|_| self.done.is_none());
        self.running().or(failed)
    }

    fn finished(&mut self, name: &str) {
        self.expected_panic = None;
        if self.running.as_deref() == Some(name) {
            self.running = None;
        }
    }

    /// The guest has ended in the middle of a test or after one that failed, and the tests after that one are run in another.
    pub fn close_to_go_on(mut self, how: &str) -> Tally {
        let cause = self.cause(how);
        if let Some(name) = self.running.take() {
            match (&self.expected_panic, &self.panic) {
                (Some(expected), Some(panic)) if panic.contains(expected) => self.tally.passed += 1,
                (Some(expected), _) => {
                    self.tally.fail(format!("{name}: no panic with '{expected}' ({cause})"))
                }
                (None, _) => {
                    self.tally.fail(format!("{name}: the guest ended in the middle of it ({cause})"));
                }
            }
        }
        self.tally
    }

    fn cause(&self, how: &str) -> String {
        self.panic.as_ref().map_or_else(|| how.to_owned(), |message| format!("panic: {message}"))
    }

    /// The guest has ended. `ended_well`: with status 0; `how`: the ending in words.
    pub fn close(mut self, ended_well: bool, how: &str) -> Tally {
        let cause = self.cause(how);
        if let Some(name) = self.running.take() {
            self.tally.fail(format!("{name}: the guest ended in the middle of it ({cause})"));
        }
        let heard = (self.tally.passed, self.tally.failed() as u64, self.tally.skipped);
        match self.done {
            None => self.tally.fail(format!("the suite did not run to its end ({cause})")),
            Some((passed, failed, skipped)) => {
                let counted = (u64::from(passed), u64::from(failed), u64::from(skipped));
                if counted != heard {
                    self.tally.fail(format!(
                        "the suite counted {counted:?} (passed, failed, skipped), but {heard:?} arrived"
                    ));
                } else if heard.1 == 0 && (!ended_well || self.panic.is_some()) {
                    self.tally.fail(format!("every test passed, yet the guest ended badly ({cause})"));
                }
            }
        }
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, Tally};
    use crate::stream::Notice;

    fn close(lines: &str, ended_well: bool) -> Tally {
        let mut report = Report::default();
        for line in lines.lines() {
            report.take(&Notice::parse(line.trim().as_bytes()).unwrap());
        }
        report.close(ended_well, "status")
    }

    #[test]
    fn counts_what_it_hears() {
        let tally = close(
            "@test start a\n@test ok a 1\n@test start b\n@test skip b: two cores\n@test start c\n@test ok c 2\n\
             @test done 2 0 1",
            true,
        );
        assert_eq!(tally.to_string(), "2 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_failed_test_counts_once_although_the_guest_ends_with_failure() {
        let tally = close("@test start a\n@test fail a: lost 3\n@test done 0 1 0", false);
        assert_eq!(tally.failures, ["a: lost 3"]);
    }

    #[test]
    fn a_guest_that_dies_fails_the_running_test_and_the_suite() {
        let tally = close("@test start a\n@test ok a 1\n@test start b\n@panic out of stacks", false);
        assert_eq!((tally.passed, tally.failed()), (1, 2));
        assert!(tally.failures[0].starts_with("b: ") && tally.failures[0].contains("out of stacks"));
        assert!(tally.failures[1].contains("did not run to its end"));
    }

    #[test]
    fn a_guest_that_is_followed_by_another_fails_its_last_test_only() {
        let mut report = Report::default();
        for line in ["@test start a", "@test ok a 1", "@test start b", "@panic out of stacks"] {
            report.take(&Notice::parse(line.as_bytes()).unwrap());
        }
        assert_eq!((report.running(), report.ended_with()), (Some("b"), Some("b")));
        let tally = report.close_to_go_on("status");
        assert_eq!(tally.passed, 1);
        assert_eq!(tally.failures, ["b: the guest ended in the middle of it (panic: out of stacks)"]);
    }

    #[test]
    fn a_guest_that_ends_with_a_failure_is_followed_by_another() {
        let mut report = Report::default();
        let lines = ["@test start a", "@test fail a: lost 3"];
        let take = |report: &mut Report, line: &str| report.take(&Notice::parse(line.as_bytes()).unwrap());
        lines.iter().for_each(|line| take(&mut report, line));
        assert_eq!((report.running(), report.ended_with()), (None, Some("a")));
        assert_eq!(report.close_to_go_on("status").failures, ["a: lost 3"]);
        // One that goes on, or has run all, is not.
        for last in ["@test start b", "@test done 0 1 0"] {
            let mut report = Report::default();
            lines.iter().for_each(|line| take(&mut report, line));
            take(&mut report, last);
            assert_ne!(report.ended_with(), Some("a"), "{last}");
        }
    }

    #[test]
    fn a_panic_that_was_announced_is_a_pass() {
        for (panic, passed) in [("@panic core 0 is corrupted", 1), ("@panic out of stacks", 0), ("words", 0)]
        {
            let mut report = Report::default();
            for line in ["@test start a", "@test panics corrupted", panic] {
                Notice::parse(line.as_bytes()).iter().for_each(|notice| report.take(notice));
            }
            let tally = report.close_to_go_on("status");
            assert_eq!((tally.passed, tally.failed() as u64), (passed, 1 - passed), "{panic}");
        }
    }

    #[test]
    fn a_suite_that_never_speaks_fails() {
        assert_eq!(close("", true).failed(), 1);
    }

    #[test]
    fn lost_lines_are_noticed() {
        // The result of `a` is missing.
        let tally = close("@test start a\n@test start b\n@test ok b 1\n@test done 2 0 0", true);
        assert!(tally.failures[0].contains("never arrived"));
        // Start and result of a test are missing.
        let tally = close("@test start b\n@test ok b 1\n@test done 2 0 0", true);
        assert!(tally.failures[0].contains("counted (2, 0, 0)"));
    }

    #[test]
    fn a_bad_ending_after_all_passed_is_a_failure() {
        assert_eq!(close("@test start a\n@test ok a 1\n@test done 1 0 0", false).failed(), 1);
        assert_eq!(close("@test start a\n@test ok a 1\n@test done 1 0 0\n@panic late", true).failed(), 1);
    }
}
