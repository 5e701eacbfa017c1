//! Runs commands that change the machine, each printed before it runs.

use anyhow::{Context, Result, bail};
use std::process::Command;

/// Prints a command, runs it with its output shown, and fails if it does.
pub fn run_shown(program: &str, arguments: &[&str]) -> Result<()> {
    let line = shown(program, arguments);
    eprintln!("xtask: + {line}");
    let status = Command::new(program)
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .current_dir(crate::build::root())
        .status()
        .with_context(|| format!("{program} cannot be started"))?;
    if !status.success() {
        bail!("'{line}' failed ({status})");
    }
    Ok(())
}

/// A command as it would be typed.
pub fn shown(program: &str, arguments: &[&str]) -> String {
    let mut line = program.to_owned();
    for argument in arguments {
        line.push(' ');
        line.push_str(argument);
    }
    line
}
