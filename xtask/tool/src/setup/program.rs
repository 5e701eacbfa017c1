//! Programs that only some tests need: a gdb that knows 64-bit Arm, and Erlang.

use super::Install;
use super::os::{Os, is_root};
use super::shell::run_shown;
use std::process::{Command, Stdio};

/// A program, how it is asked whether it is there, and the package that has it.
struct Program {
    name: &'static str,
    version: &'static str,
    package: &'static str,
}

const GDB: Program = Program { name: "gdb-multiarch", version: "--version", package: "gdb-multiarch" };
const ERLANG: Program = Program { name: "erl", version: "-version", package: "erlang-base" };

/// The name of a gdb for the tests of the debugger's commands, installed if it is missing and that is allowed; or why there is none.
pub fn ready_gdb(install: Install) -> Result<&'static str, String> {
    GDB.ready(install)
}

/// The name of Erlang's program, for the tests with real nodes, installed if it is missing and that is allowed; or why there is none.
pub fn ready_erlang(install: Install) -> Result<&'static str, String> {
    ERLANG.ready(install)
}

impl Program {
    fn is_there(&self) -> bool {
        Command::new(self.name)
            .arg(self.version)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    fn ready(&self, install: Install) -> Result<&'static str, String> {
        let name = self.name;
        if self.is_there() {
            return Ok(name);
        }
        if install == Install::Never || !Os::detect().has_apt() || !is_root() {
            return Err(format!("{name} is missing, and may not be installed from here"));
        }
        // Another test may be installing what it needs.
        let patient = ["-o", "DPkg::Lock::Timeout=300"];
        let options = ["install", "-y", "--no-install-recommends", self.package];
        let install = || run_shown("apt-get", &[&patient[..], &options].concat());
        // A list of packages that is old names some that are gone.
        let installed = install().or_else(|_| run_shown("apt-get", &["update"]).and_then(|()| install()));
        match installed {
            Ok(()) if self.is_there() => Ok(name),
            Ok(()) => Err(format!("{name} was installed, and does not start")),
            Err(error) => Err(format!("{name} cannot be installed: {error:#}")),
        }
    }
}
