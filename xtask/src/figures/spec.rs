//! Which benchmark is to run, with which parameters: `thread-ring:100:200000`.

use super::goals::{GOALS, goal_of};
use crate::failure::usage;
use anyhow::Result;

/// A benchmark as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec(String);

impl Spec {
    /// Reads what the user wrote.
    pub fn parse(text: &str) -> Result<Self> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        if goal_of(name).is_none() {
            let known: Vec<_> = GOALS.iter().map(|goal| goal.name).collect();
            return Err(usage(format!(
                "there is no benchmark '{name}'; known benchmarks: {}",
                known.join(", ")
            )));
        }
        for word in words {
            if word.parse::<u64>().is_err() {
                return Err(usage(format!(
                    "'{word}' in '{text}' is no whole number; parameters are numbers after colons"
                )));
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// All benchmarks, with their own parameters.
    pub fn all() -> Vec<Self> {
        GOALS.iter().map(|goal| Self(goal.name.to_owned())).collect()
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The boot argument that asks the image for these.
    pub fn argument(specs: &[Self]) -> String {
        let texts: Vec<_> = specs.iter().map(Self::text).collect();
        format!("bench={}", texts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::Spec;
    use crate::failure::{USAGE, status_of};

    #[test]
    fn names_are_known_and_parameters_are_numbers() {
        assert_eq!(Spec::parse("fan-in:4:1000").unwrap().text(), "fan-in:4:1000");
        for (text, says) in
            [("nonesuch", "known benchmarks: send-static"), ("", "there is no"), ("spawn:5:x", "'x'")]
        {
            let error = Spec::parse(text).unwrap_err();
            assert_eq!(status_of(&error), USAGE);
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn the_image_is_asked_for_all_at_once() {
        let specs = [Spec::parse("big").unwrap(), Spec::parse("spawn:50").unwrap()];
        assert_eq!(Spec::argument(&specs), "bench=big,spawn:50");
    }
}
