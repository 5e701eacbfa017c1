//! The count of tests, and the list of what failed.

use std::fmt;

/// How many tests passed, failed and were skipped.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    /// How many passed.
    pub passed: u64,
    /// How many were skipped.
    pub skipped: u64,
    /// What failed: a name and a reason for each.
    pub failures: Vec<String>,
}

impl Tally {
    /// Notes a failure.
    pub fn fail(&mut self, failure: impl Into<String>) {
        self.failures.push(failure.into());
    }

    /// Adds another count to this one.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.skipped += other.skipped;
        self.failures.extend(other.failures);
    }

    /// How many failed.
    pub fn failed(&self) -> usize {
        self.failures.len()
    }

    /// Whether there is something to be proud of: some tests ran, none failed.
    pub fn is_success(&self) -> bool {
        self.failures.is_empty() && self.passed > 0
    }
}

/// The line that a run of the tests ends with.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed())?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn the_last_line_has_the_agreed_form() {
        let mut tally = Tally { passed: 3, ..Tally::default() };
        assert_eq!(tally.to_string(), "3 passed, 0 failed");
        assert!(tally.is_success());
        tally.add(Tally { passed: 1, skipped: 2, failures: vec!["x: y".into()] });
        assert_eq!(tally.to_string(), "4 passed, 1 failed, 2 skipped");
        assert!(!tally.is_success());
    }

    #[test]
    fn nothing_run_is_no_success() {
        assert!(!Tally::default().is_success());
        assert!(!Tally { skipped: 5, ..Tally::default() }.is_success());
    }
}
