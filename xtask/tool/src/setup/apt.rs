//! Installs QEMU on Debian and Ubuntu, as root.
//!
//! 1. `apt-get update`; ask which version the configured suites offer.
//! 2. If that is new enough for every board, install it.
//! 3. Else take it from the backports suite of the same mirror, adding that suite if it is not configured.
//! 4. If backports do not have it, install the release's own as long as it is new enough for `virt`.

use super::apt_sources::{backports_stanza, has_suite, read};
use super::os::Os;
use super::qemu::{OLDEST_FOR_RASPI4B, OLDEST_FOR_VIRT, Version};
use super::shell::run_shown;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

const PACKAGE: &str = "qemu-system-arm";
/// Another `apt-get` may be at work: a fresh machine updates itself by one. Without this it would be refused at once.
const WAIT: &str = "-oDPkg::Lock::Timeout=300";
const BACKPORTS_FILE: &str = "/etc/apt/sources.list.d/magpie-backports.sources";

/// Installs QEMU.
pub fn install_qemu(os: &Os) -> Result<()> {
    run_shown("apt-get", &[WAIT, "update"])?;
    let own = candidate()?;
    if own.is_some_and(|version| version >= OLDEST_FOR_RASPI4B) {
        return install(&[]);
    }
    match from_backports(os) {
        Ok(()) => Ok(()),
        Err(error) if own.is_some_and(|version| version >= OLDEST_FOR_VIRT) => {
            eprintln!(
                "xtask: no newer QEMU from backports ({error:#}); taking the release's own, without raspi4b"
            );
            install(&[])
        }
        Err(error) => Err(error),
    }
}

fn from_backports(os: &Os) -> Result<()> {
    let codename = os.codename.as_deref().context("/etc/os-release names no release")?;
    let suite = format!("{codename}-backports");
    let sources = read(Path::new("/etc/apt"));
    if !has_suite(&sources, &suite) {
        let stanza = backports_stanza(&sources, codename)
            .with_context(|| format!("no source below /etc/apt serves {codename}"))?;
        eprintln!("xtask: + write {BACKPORTS_FILE}:\n{}", indented(&stanza));
        fs::write(BACKPORTS_FILE, stanza).with_context(|| format!("cannot write {BACKPORTS_FILE}"))?;
        if let Err(error) = run_shown("apt-get", &[WAIT, "update"]) {
            // Leave no source behind that breaks the next update.
            fs::remove_file(BACKPORTS_FILE).with_context(|| format!("cannot remove {BACKPORTS_FILE}"))?;
            return Err(error.context(format!("the mirror has no {suite}")));
        }
    }
    install(&["-t", &suite])
}

fn install(options: &[&str]) -> Result<()> {
    let mut arguments = vec![WAIT, "install", "-y", "--no-install-recommends"];
    arguments.extend(options);
    arguments.push(PACKAGE);
    run_shown("apt-get", &arguments)
}

/// The version that `apt-get install` would take.
fn candidate() -> Result<Option<Version>> {
    let output = Command::new("apt-cache")
        .args(["policy", PACKAGE])
        .env("LC_ALL", "C")
        .output()
        .context("apt-cache cannot be started")?;
    if !output.status.success() {
        bail!("'apt-cache policy {PACKAGE}' failed");
    }
    Ok(parse_candidate(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads `  Candidate: 1:7.2+dfsg-7+deb12u13`.
fn parse_candidate(policy: &str) -> Option<Version> {
    let version = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate:"))?.trim();
    let version = version.split_once(':').map_or(version, |(_epoch, rest)| rest);
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some(Version(numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("xtask:   {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Version, parse_candidate};

    #[test]
    fn reads_what_apt_would_install() {
        let policy =
            "qemu-system-arm:\n  Installed: (none)\n  Candidate: 1:7.2+dfsg-7+deb12u13\n  Version table:\n";
        assert_eq!(parse_candidate(policy), Some(Version(7, 2)));
        assert_eq!(parse_candidate("  Candidate: 1:10.0.2+ds-2~bpo12+1\n"), Some(Version(10, 0)));
        assert_eq!(parse_candidate("  Candidate: (none)\n"), None);
        assert_eq!(parse_candidate(""), None);
    }
}
