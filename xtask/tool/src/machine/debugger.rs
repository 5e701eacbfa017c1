//! A debugger's way into a guest: QEMU's stub for gdb, and the commands for gdb that know the kernel's structures (`xtask/tool/gdb/magpie.py`).

use crate::build::write_whole;
use crate::failure::usage;
use anyhow::Result;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

const SCRIPT: &str = include_str!("../../gdb/magpie.py");

/// How a debugger may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Debugger {
    /// QEMU listens there, on this machine alone.
    pub port: u16,
    /// The guest does not begin before it has come.
    pub waits: bool,
}

impl Debugger {
    /// At this port, which is tried: one that is taken is refused.
    pub fn checked(port: u16, waits: bool) -> Result<Self> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
            usage(format!("--gdb={port}: the port cannot be taken ({error}); give another"))
        })?;
        Ok(Self { port, waits })
    }

    /// For QEMU's command line.
    pub fn arguments(self) -> Vec<String> {
        let mut arguments = vec!["-gdb".into(), format!("tcp:127.0.0.1:{}", self.port)];
        if self.waits {
            arguments.push("-S".into());
        }
        arguments
    }

    /// The command that begins a session.
    pub fn command(self, script: &Path, elf: &Path) -> String {
        let (script, elf) = (script.display(), elf.display());
        format!("gdb-multiarch -x {script} -ex 'target remote :{}' {elf}", self.port)
    }
}

/// Writes the commands where gdb finds them.
pub fn write_script(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("magpie-gdb.py");
    write_whole(&path, SCRIPT.as_bytes())?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::Debugger;
    use std::net::{Ipv4Addr, TcpListener};
    use std::path::Path;

    #[test]
    fn a_port_that_is_taken_is_refused() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(Debugger::checked(port, false).unwrap_err().to_string().contains("cannot be taken"));
    }

    #[test]
    fn says_how_to_attach() {
        let debugger = Debugger { port: 99, waits: true };
        assert_eq!(debugger.arguments(), ["-gdb", "tcp:127.0.0.1:99", "-S"]);
        let command = debugger.command(Path::new("s.py"), Path::new("hello"));
        assert_eq!(command, "gdb-multiarch -x s.py -ex 'target remote :99' hello");
    }
}
