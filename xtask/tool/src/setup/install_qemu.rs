//! Sees to it that QEMU is there and new enough.

use super::Install;
use super::apt;
use super::os::{Manager, Os, is_root};
use super::qemu::{PROGRAM, Qemu, Version};
use crate::failure::usage;
use anyhow::Result;

impl Qemu {
    /// QEMU, of the given version at least; installed if it is missing or too old and that is allowed.
    pub fn ready(oldest: Version, install: Install) -> Result<Self> {
        let found = Self::find();
        if let Some(qemu) = &found
            && qemu.version >= oldest
        {
            return Ok(qemu.clone());
        }
        let problem = problem(found.as_ref(), oldest);
        let os = Os::detect();
        // A QEMU that the user named is theirs to mend.
        let named = std::env::var_os("MAGPIE_QEMU").is_some();
        if install == Install::Never || named || !os.has_apt() || !is_root() {
            return Err(usage(format!("{problem}; install it with:\n{}", how_to_install(&os))));
        }
        eprintln!("xtask: {problem}; installing it");
        apt::install_qemu(&os).map_err(|error| {
            usage(format!("{problem} and could not be installed ({error:#}); try:\n{}", how_to_install(&os)))
        })?;
        match Self::find() {
            Some(qemu) if qemu.version >= oldest => Ok(qemu),
            now => Err(usage(format!("after the installation, {}", self::problem(now.as_ref(), oldest)))),
        }
    }
}

fn problem(found: Option<&Qemu>, oldest: Version) -> String {
    match found {
        None => match std::env::var("MAGPIE_QEMU") {
            Ok(path) => format!("MAGPIE_QEMU names {path}, which is no QEMU"),
            Err(_) => format!("{PROGRAM} is missing (version {oldest} or newer is needed)"),
        },
        Some(qemu) => {
            format!("{} is version {}, but {oldest} or newer is needed", qemu.path.display(), qemu.version)
        }
    }
}

/// The command for each known package manager, this system's own marked.
pub fn how_to_install(os: &Os) -> String {
    let mut lines = Vec::new();
    for manager in Manager::ALL {
        let mark = if os.manager == Some(manager) { "   <- this system" } else { "" };
        lines.push(format!("  {:<7} {}{mark}", format!("{}:", manager.name()), manager.qemu_command()));
        if let (Manager::Apt, true, Some(codename)) = (manager, os.has_apt(), os.codename.as_deref()) {
            lines.push(format!(
                "          (from backports, where that is older than 9: sudo apt-get install \
                 --no-install-recommends -t {codename}-backports qemu-system-arm)"
            ));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Manager, Os, PROGRAM, how_to_install, problem};
    use crate::setup::qemu::{Qemu, Version};

    fn os(manager: Option<Manager>, codename: Option<&str>) -> Os {
        Os { name: "test".into(), codename: codename.map(Into::into), manager }
    }

    #[test]
    fn lists_every_command_and_marks_this_systems() {
        for manager in Manager::ALL {
            let text = how_to_install(&os(Some(manager), None));
            assert!(text.contains(&format!("{}   <- this system", manager.qemu_command())));
            assert_eq!(text.lines().count(), 4);
        }
        assert!(!how_to_install(&os(None, None)).contains("this system"));
        assert!(how_to_install(&os(Some(Manager::Apt), Some("bookworm"))).contains("-t bookworm-backports"));
    }

    #[test]
    fn says_what_is_wrong() {
        assert!(problem(None, Version(7, 0)).contains(PROGRAM));
        let old = Qemu { path: "/q".into(), version: Version(6, 2) };
        assert_eq!(problem(Some(&old), Version(7, 0)), "/q is version 6.2, but 7.0 or newer is needed");
    }
}
