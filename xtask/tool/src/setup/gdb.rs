//! A gdb that knows 64-bit Arm, for the tests of the debugger's commands. Nothing else needs one.

use super::Install;
use super::os::{Os, is_root};
use super::shell::run_shown;
use std::process::{Command, Stdio};

const PROGRAM: &str = "gdb-multiarch";

fn is_there() -> bool {
    Command::new(PROGRAM)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Its name, installed if it is missing and that is allowed; or why there is none.
pub fn ready_gdb(install: Install) -> Result<&'static str, String> {
    if is_there() {
        return Ok(PROGRAM);
    }
    if install == Install::Never || !Os::detect().has_apt() || !is_root() {
        return Err(format!("{PROGRAM} is missing, and may not be installed from here"));
    }
    let installed = run_shown("apt-get", &["install", "-y", "--no-install-recommends", PROGRAM]);
    match installed {
        Ok(()) if is_there() => Ok(PROGRAM),
        Ok(()) => Err(format!("{PROGRAM} was installed, and does not start")),
        Err(error) => Err(format!("{PROGRAM} cannot be installed: {error:#}")),
    }
}
