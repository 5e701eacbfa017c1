//! Whether the documentation of what others name can be made without a warning: nothing public is undocumented, no link leads nowhere.
//!
//! Each crate is documented by itself, because two libraries are called `magpie`: the kernel's, and the facade in front of it. With the
//! private items, because links in comments are to be followed by who reads the code; and without them, because that is what is published.

use crate::build::{TARGET, cargo};
use anyhow::{Context, Result};
use std::process::Command;

/// Crates that have public items, and crates of which everything is private.
const LIBRARIES: &[&str] = &["magpie-kernel", "magpie-boot", "magpie"];
const FLAGS: &str = "--deny warnings --deny missing_docs";

/// Whether every crate's documentation is without a complaint, which rustdoc shows. Of the four ways to document one two are taken,
/// which have between them either target and either reader.
pub fn check() -> Result<bool> {
    let mut content = true;
    for library in LIBRARIES {
        for (target, private) in [(Some(TARGET), false), (None, true)] {
            content &= documented(library, target, private)?;
        }
    }
    for tool in ["magpie-xtask", "xtask"] {
        content &= documented(tool, None, true)?;
    }
    Ok(content)
}

fn documented(package: &str, target: Option<&str>, private: bool) -> Result<bool> {
    Ok(command(package, target, private).status().context("cargo cannot be started")?.success())
}

fn command(package: &str, target: Option<&str>, private: bool) -> Command {
    let mut command = cargo();
    command.args(["doc", "--quiet", "--no-deps", "--package", package]);
    if let Some(target) = target {
        command.args(["--release", "--target", target]);
    }
    if private {
        command.arg("--document-private-items");
    }
    command.env("RUSTDOCFLAGS", FLAGS);
    command
}
