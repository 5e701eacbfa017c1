//! `cargo xtask book`: the guide in `docs/` as a book, by mdBook.

use crate::build::{Workspace, root};
use crate::failure::{FAILURE, SUCCESS, usage};
use anyhow::{Context, Result};
use clap::Args;
use std::io::ErrorKind;
use std::process::Command;

/// What `cargo xtask book` accepts.
#[derive(Args)]
pub struct Options {
    /// Show it in a browser
    #[arg(long)]
    open: bool,
}

/// What installs mdBook, which is a program of its own and no part of the tool.
const INSTALL: &str = "cargo install mdbook --locked";

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    build("mdbook", options.open)
}

fn build(program: &str, is_opened: bool) -> Result<u8> {
    let into = Workspace::load()?.target().join("book");
    let mut command = Command::new(program);
    command.arg("build").arg(root().join("docs")).arg("--dest-dir").arg(&into);
    if is_opened {
        command.arg("--open");
    }
    match command.status() {
        Ok(status) if status.success() => {
            println!("{}", into.join("index.html").display());
            Ok(SUCCESS)
        }
        Ok(_) => Ok(FAILURE),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(usage(format!(
            "mdBook is missing; install it with: {INSTALL}; the pages in docs/ can be read as they are"
        ))),
        Err(error) => Err(error).with_context(|| format!("{program} cannot be started")),
    }
}

#[cfg(test)]
mod tests {
    use super::{INSTALL, build};
    use crate::failure::{USAGE, status_of};

    #[test]
    fn without_mdbook_it_says_what_installs_it() {
        let error = build("no-such-program-as-mdbook", false).unwrap_err();
        assert_eq!(status_of(&error), USAGE);
        assert!(error.to_string().contains(INSTALL), "{error}");
    }
}
