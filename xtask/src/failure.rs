//! How a verb ends: the exit status, and the error that means "you asked for something impossible".
//!
//! Status 0 is success, 1 a failure, 2 a command that cannot be carried out as given (or a machine that
//! lacks something the user has to install). Everything else is an ordinary `anyhow` error, status 1.

use std::fmt;

/// The exit status of a success.
pub const SUCCESS: u8 = 0;
/// The exit status of a failure: a build, a guest or a test failed.
pub const FAILURE: u8 = 1;
/// The exit status of wrong usage; clap ends with the same one.
pub const USAGE: u8 = 2;
/// The exit status after Ctrl-C, as shells have it (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

/// A command that cannot be carried out as given. Its one-line message says what to do instead.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Makes a [`Usage`] error.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Usage(message.into()).into()
}

/// The exit status that an error stands for.
pub fn status_of(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<Usage>().is_some() { USAGE } else { FAILURE }
}

#[cfg(test)]
mod tests {
    use super::{FAILURE, USAGE, status_of, usage};
    use anyhow::{Context, anyhow};

    #[test]
    fn usage_errors_end_with_two_even_with_context_added() {
        assert_eq!(status_of(&usage("no such example")), USAGE);
        let wrapped = Err::<(), _>(usage("no such example")).context("starting").unwrap_err();
        assert_eq!(status_of(&wrapped), USAGE);
    }

    #[test]
    fn other_errors_end_with_one() {
        assert_eq!(status_of(&anyhow!("the build failed")), FAILURE);
    }
}
