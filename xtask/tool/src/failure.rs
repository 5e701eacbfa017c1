//! How a verb ends: the exit status, and the error that means "you asked for something impossible".
//!
//! Status 0 is success, 1 a failure, 2 a command that cannot be carried out as given (or a machine that
//! lacks something the user has to install). Everything else is an ordinary `anyhow` error, status 1.

use std::process::{self, ExitCode};
use std::{fmt, io, panic};

/// The exit status of a success.
pub const SUCCESS: u8 = 0;
/// The exit status of a failure: a build, a guest or a test failed.
pub const FAILURE: u8 = 1;
/// The exit status of wrong usage; clap ends with the same one.
pub const USAGE: u8 = 2;
/// The exit status after Ctrl-C, as shells have it (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

/// The exit status when nobody reads the output any more, as shells have it (128 + SIGPIPE).
pub const UNHEARD: u8 = 141;

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

/// Whether the error says only that nobody reads the output any more, as behind `| head`. That is no failure to speak of.
pub fn is_unheard(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Makes `println!` end the tool quietly when nobody reads the output any more: it panics then.
pub fn end_quietly_when_unheard() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let said = info.payload_as_str().unwrap_or_default();
        if said.starts_with("failed printing to stdout") && said.contains("Broken pipe") {
            process::exit(UNHEARD.into());
        }
        report(info);
    }));
}

/// The exit status that an error stands for.
pub fn status_of(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<Usage>() {
        Some(_) => USAGE,
        None if is_unheard(error) => UNHEARD,
        None => FAILURE,
    }
}

/// How the tool ends with what a verb came to; an error is said.
pub fn exit(result: anyhow::Result<u8>) -> ExitCode {
    ExitCode::from(result.unwrap_or_else(|error| {
        if !is_unheard(&error) {
            eprintln!("xtask: {error:#}");
        }
        status_of(&error)
    }))
}

#[cfg(test)]
mod tests {
    use super::{FAILURE, UNHEARD, USAGE, is_unheard, status_of, usage};
    use anyhow::{Context, anyhow};
    use std::io;

    #[test]
    fn usage_errors_end_with_two_even_with_context_added() {
        assert_eq!(status_of(&usage("no such example")), USAGE);
        let wrapped = Err::<(), _>(usage("no such example")).context("starting").unwrap_err();
        assert_eq!(status_of(&wrapped), USAGE);
    }

    #[test]
    fn a_closed_pipe_is_known_among_causes() {
        let closed = Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing").unwrap_err();
        assert!(is_unheard(&closed));
        assert_eq!(status_of(&closed), UNHEARD);
        let full = Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull)).context("writing").unwrap_err();
        assert!(!is_unheard(&full));
    }

    #[test]
    fn other_errors_end_with_one() {
        assert_eq!(status_of(&anyhow!("the build failed")), FAILURE);
    }
}
