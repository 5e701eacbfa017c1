//! Finds QEMU and reads what it can do.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program's name.
pub const PROGRAM: &str = "qemu-system-aarch64";
/// Where package managers put it when the search path does not say so.
const USUAL_PLACES: &[&str] = &["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/// A version, as major and minor number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

/// The oldest QEMU whose `virt` machine is good enough.
pub const OLDEST_FOR_VIRT: Version = Version(7, 0);
/// The oldest QEMU with the machine `raspi4b`.
pub const OLDEST_FOR_RASPI4B: Version = Version(9, 0);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// A QEMU that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qemu {
    /// The program.
    pub path: PathBuf,
    /// Its version.
    pub version: Version,
}

impl Qemu {
    /// Looks in the search path, then in the usual places. `MAGPIE_QEMU` names another program.
    pub fn find() -> Option<Self> {
        if let Some(path) = std::env::var_os("MAGPIE_QEMU") {
            return Self::at(Path::new(&path));
        }
        let searched = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&searched)
            .chain(USUAL_PLACES.iter().map(PathBuf::from))
            .map(|folder| folder.join(PROGRAM))
            .find_map(|path| Self::at(&path))
    }

    fn at(path: &Path) -> Option<Self> {
        let output = Command::new(path).arg("--version").output().ok()?;
        let version = parse_version(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { path: path.to_owned(), version })
    }

    /// The names of the machines it emulates.
    pub fn machines(&self) -> Vec<String> {
        let output = Command::new(&self.path).args(["-machine", "help"]).output();
        output.map_or(Vec::new(), |output| parse_machines(&String::from_utf8_lossy(&output.stdout)))
    }
}

/// Reads `QEMU emulator version 10.0.2 (Debian ...)`.
pub fn parse_version(text: &str) -> Option<Version> {
    let rest = text.split_once("version ")?.1;
    let number = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let mut parts = number.split('.').map(str::parse);
    Some(Version(parts.next()?.ok()?, parts.next()?.ok()?))
}

fn parse_machines(text: &str) -> Vec<String> {
    text.lines().skip(1).filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::{Version, parse_machines, parse_version};

    #[test]
    fn reads_versions_of_several_distributions() {
        for (text, version) in [
            (
                "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)\nCopyright",
                Version(10, 0),
            ),
            ("QEMU emulator version 7.2.17 (Debian 1:7.2+dfsg-7)", Version(7, 2)),
            ("QEMU emulator version 9.1.0\n", Version(9, 1)),
            ("QEMU emulator version 8.2.2 (qemu-8.2.2-1.fc40)", Version(8, 2)),
            ("QEMU emulator version 11.1.50 (v11.1.0-12-g1234567)", Version(11, 1)),
        ] {
            assert_eq!(parse_version(text), Some(version));
        }
        assert_eq!(parse_version("command not found"), None);
        assert_eq!(parse_version("QEMU emulator version unknown"), None);
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(Version(10, 0) > Version(9, 2));
        assert!(Version(7, 2) > Version(7, 0));
    }

    #[test]
    fn reads_machine_names() {
        let text = "Supported machines are:\nraspi4b              Raspberry Pi 4B (revision 1.5)\n\
                    virt                 QEMU 10.0 ARM Virtual Machine (alias of virt-10.0)\n";
        assert_eq!(parse_machines(text), ["raspi4b", "virt"]);
    }
}
