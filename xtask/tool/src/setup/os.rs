//! Which operating system this is, and how it installs packages.

use std::fs;
use std::process::Command;

/// A package manager that this tool knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    /// Debian, Ubuntu and their kin.
    Apt,
    /// Fedora and its kin.
    Dnf,
    /// Arch Linux and its kin.
    Pacman,
    /// macOS.
    Brew,
}

impl Manager {
    /// Every one, in the order in which they are listed to the user.
    pub const ALL: [Self; 4] = [Self::Apt, Self::Dnf, Self::Pacman, Self::Brew];

    /// The command that installs QEMU.
    pub fn qemu_command(self) -> &'static str {
        match self {
            Self::Apt => "sudo apt-get install --no-install-recommends qemu-system-arm",
            Self::Dnf => "sudo dnf install qemu-system-aarch64-core",
            Self::Pacman => "sudo pacman -S qemu-system-aarch64",
            Self::Brew => "brew install qemu",
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apt => "apt",
            Self::Dnf => "dnf",
            Self::Pacman => "pacman",
            Self::Brew => "brew",
        }
    }
}

/// The operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Os {
    /// Its name and version, for people.
    pub name: String,
    /// The release's code name (`bookworm`), where it has one.
    pub codename: Option<String>,
    /// Its package manager, where it is a known one.
    pub manager: Option<Manager>,
}

impl Os {
    /// The one that this tool runs on.
    pub fn detect() -> Self {
        if cfg!(target_os = "macos") {
            return Self { name: "macOS".into(), codename: None, manager: Some(Manager::Brew) };
        }
        let release = fs::read_to_string("/etc/os-release")
            .or_else(|_| fs::read_to_string("/usr/lib/os-release"))
            .unwrap_or_default();
        Self::parse(&release)
    }

    /// Reads an os-release file.
    fn parse(release: &str) -> Self {
        let value = |key: &str| {
            release
                .lines()
                .find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))
                .map(|value| value.trim_matches(['"', '\'']).to_owned())
                .filter(|value| !value.is_empty())
        };
        let id = value("ID").unwrap_or_default();
        let like = value("ID_LIKE").unwrap_or_default();
        let kin = |name: &str| id == name || like.split_whitespace().any(|word| word == name);
        let manager = if kin("debian") || kin("ubuntu") {
            Some(Manager::Apt)
        } else if kin("fedora") || kin("rhel") {
            Some(Manager::Dnf)
        } else if kin("arch") {
            Some(Manager::Pacman)
        } else {
            None
        };
        Self {
            name: value("PRETTY_NAME").unwrap_or_else(|| "an unknown system".into()),
            codename: value("VERSION_CODENAME"),
            manager,
        }
    }

    /// Whether this is Debian, Ubuntu or one of their kin.
    pub fn has_apt(&self) -> bool {
        self.manager == Some(Manager::Apt)
    }
}

/// Whether this tool runs as root.
pub fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::{Manager, Os};

    #[test]
    fn knows_the_package_manager() {
        for (release, manager, codename) in [
            ("ID=debian\nVERSION_CODENAME=bookworm\n", Some(Manager::Apt), Some("bookworm")),
            ("ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n", Some(Manager::Apt), Some("noble")),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Some(Manager::Apt), None),
            ("ID=fedora\nVERSION_CODENAME=\"\"\n", Some(Manager::Dnf), None),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", Some(Manager::Dnf), None),
            ("ID=manjaro\nID_LIKE=arch\n", Some(Manager::Pacman), None),
            ("ID=nixos\n", None, None),
            ("", None, None),
        ] {
            let os = Os::parse(release);
            assert_eq!(os.manager, manager, "{release}");
            assert_eq!(os.codename.as_deref(), codename, "{release}");
        }
    }

    #[test]
    fn knows_the_name() {
        assert_eq!(
            Os::parse("PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n").name,
            "Debian GNU/Linux 12 (bookworm)"
        );
    }
}
