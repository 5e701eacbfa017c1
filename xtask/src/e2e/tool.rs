//! Runs this tool as a user would, and checks what comes of it.

use super::Bench;
use crate::build::{Board, Features, Workspace, build_application, write_flat};
use crate::machine::{Guest, Machine, guest_command};
use crate::setup::Qemu;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// This tool's own program, with nothing of the caller's settings for guests. What it builds is built [`soon`].
pub fn tool() -> Result<Command> {
    let mut command = tool_as_it_is()?;
    command.envs(soon()?);
    Ok(command)
}

/// What has images built in a fifth of the time: without optimization over all crates together. Only figures and sizes are about that; cards, lines and
/// debuggers name the image that a user's command builds, so they have that, too. Programs of one name lie in a folder of their own; what all builds share is shared with these, too.
fn soon() -> Result<[(&'static str, OsString); 4]> {
    static FOLDERS: OnceLock<(OsString, OsString)> = OnceLock::new();
    let (target, build) = match FOLDERS.get() {
        Some(folders) => folders,
        None => {
            let workspace = Workspace::load()?;
            let target = workspace.target().join("e2e").join("target");
            FOLDERS.get_or_init(|| (target.into(), workspace.build().into()))
        }
    };
    Ok([
        ("CARGO_TARGET_DIR", target.clone()),
        ("CARGO_BUILD_BUILD_DIR", build.clone()),
        ("CARGO_PROFILE_RELEASE_LTO", "off".into()),
        ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16".into()),
    ])
}

/// As [`tool`], and what it builds is what a user's command builds.
pub fn tool_as_it_is() -> Result<Command> {
    let path = std::env::current_exe().context("this tool does not know its own file")?;
    // Linux names a program so whose file was replaced by a newer build meanwhile.
    let shown = path.to_string_lossy();
    let path = shown.strip_suffix(" (deleted)").map_or(path.clone(), PathBuf::from);
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MAGPIE_") && name != "MAGPIE_QEMU" {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    Ok(command)
}

/// Boots an example with options, gives it this to read, and waits until it has ended well.
pub fn tell(bench: &Bench<'_>, example: &str, options: &[&str], typed: &[u8]) -> Result<Said> {
    let mut command = tool()?;
    command.args(["qemu", example, "--no-install"]).args(options);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("this tool cannot start itself")?;
    let mut input = child.stdin.take().context("it has no input")?;
    // More than a pipe holds would wait for a guest that does not listen.
    input.write_all(typed).context("it does not read its input")?;
    let said = Said::from(child.wait_with_output().context("it cannot be waited for")?);
    drop(input);
    said.expect_status(0)?;
    Ok(said)
}

/// QEMU itself with an example, as this tool would start it, ended after so many seconds. Also the example's ELF.
pub fn bare_qemu(example: &str, board: Board, machine: Machine, seconds: u64) -> Result<(Command, PathBuf)> {
    let qemu = Qemu::find().context("QEMU is missing")?;
    let image = write_flat(&build_application(example, Features { board, ..Features::default() })?)?;
    let elf = image.elf.clone();
    let limit = Duration::from_secs(seconds);
    let guest = Guest::new(machine, image, limit);
    let mut command = Command::new("timeout");
    command.arg(seconds.to_string()).arg(&qemu.path).args(guest_command(&qemu.path, &guest).get_args());
    Ok((command, elf))
}

/// What a finished command said.
pub struct Said {
    /// Its exit status; `None` after a signal.
    pub status: Option<i32>,
    /// Its standard output.
    pub out: Vec<u8>,
    /// Its standard error.
    pub err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            out: output.stdout,
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Said {
    /// Runs a command to its end.
    pub fn of(mut command: Command) -> Result<Self> {
        Ok(command.output().context("this tool cannot start itself")?.into())
    }

    /// The standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// Fails unless the status is as expected.
    pub fn expect_status(&self, status: i32) -> Result<&Self> {
        if self.status != Some(status) {
            bail!("status {:?} instead of {status}\n{}\n{}", self.status, self.text(), self.err);
        }
        Ok(self)
    }

    /// Fails unless standard error contains a text.
    pub fn expect_error(&self, text: &str) -> Result<&Self> {
        if !self.err.contains(text) {
            bail!("the message '{text}' is missing\n{}", self.err);
        }
        Ok(self)
    }

    /// Fails unless standard output contains a line.
    pub fn expect_line(&self, line: &str) -> Result<&Self> {
        if !self.text().lines().any(|found| found == line) {
            bail!("the line '{line}' is missing\n{}", self.text());
        }
        Ok(self)
    }
}
