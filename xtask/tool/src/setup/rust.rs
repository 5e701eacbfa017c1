//! The Rust side: the kernel's target, rustfmt, clippy, and the standard library's source.
//!
//! rustup installs what `rust-toolchain.toml` names by itself only where its automatic installation is on,
//! so each is checked and added.

use super::Install;
use super::shell::run_shown;
use crate::build::{TARGET, cargo, root};
use crate::failure::usage;
use anyhow::Result;
use std::path::Path;
use std::process::{Command, Stdio};

/// What installs the kernel's target.
pub const TARGET_COMMAND: &str = "rustup target add aarch64-unknown-none";

/// A part of the toolchain that may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// `cargo fmt`
    Rustfmt,
    /// `cargo clippy`
    Clippy,
}

impl Component {
    /// rustup's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rustfmt => "rustfmt",
            Self::Clippy => "clippy",
        }
    }

    /// What cargo calls it.
    fn verb(self) -> &'static str {
        match self {
            Self::Rustfmt => "fmt",
            Self::Clippy => "clippy",
        }
    }
}

/// Whether the toolchain can build for the kernel's target.
pub fn has_target() -> bool {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .current_dir(root())
        .stderr(Stdio::null())
        .output();
    let Ok(output) = output else { return false };
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success() && contains_core(Path::new(&folder))
}

fn contains_core(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
}

/// Whether a component is there; its version if so.
pub fn has_component(component: Component) -> Option<String> {
    let output = cargo().args([component.verb(), "--version"]).stderr(Stdio::null()).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !version.is_empty()).then_some(version)
}

/// Sees to it that the kernel can be built.
pub fn ready_target(install: Install) -> Result<()> {
    if has_target() {
        return Ok(());
    }
    add("the Rust target aarch64-unknown-none", &["target", "add", TARGET], install)?;
    if has_target() {
        return Ok(());
    }
    Err(usage(format!("the Rust target {TARGET} is still missing after '{TARGET_COMMAND}'")))
}

/// Sees to it that the sources of the standard library are there, which rust-analyzer reads.
pub fn ready_sources(install: Install) -> Result<()> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).current_dir(root()).output();
    let is_there = output.is_ok_and(|output| {
        let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Path::new(&sysroot).join("lib/rustlib/src/rust/library/core").is_dir()
    });
    if is_there {
        return Ok(());
    }
    add("the standard library's source", &["component", "add", "rust-src"], install)
}

/// The toolchain's own rust-analyzer, for the tests of what editors are told; or why there is none. Editors bring theirs.
pub fn ready_rust_analyzer(install: Install) -> Result<Command, String> {
    let start = || {
        let mut command = Command::new("rust-analyzer");
        command.current_dir(root());
        command
    };
    let is_there = || start().arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there() {
        add("rust-analyzer", &["component", "add", "rust-analyzer"], install)
            .map_err(|error| format!("{error:#}"))?;
    }
    if is_there() { Ok(start()) } else { Err("rust-analyzer was installed, and does not start".to_owned()) }
}

/// Sees to it that rustfmt and clippy are there.
pub fn ready_components(install: Install) -> Result<()> {
    for component in [Component::Rustfmt, Component::Clippy] {
        if has_component(component).is_none() {
            add(component.name(), &["component", "add", component.name()], install)?;
        }
    }
    Ok(())
}

fn add(what: &str, arguments: &[&str], install: Install) -> Result<()> {
    let line = super::shell::shown("rustup", arguments);
    if install == Install::Never {
        return Err(usage(format!("{what} is missing; install it with: {line}")));
    }
    if Command::new("rustup").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return Err(usage(format!(
            "{what} is missing and rustup is not there to add it; install Rust from https://rustup.rs, then: {line}"
        )));
    }
    run_shown("rustup", arguments).map_err(|error| {
        usage(format!(
            "{what} is missing and rustup could not add it ({error}); see to it that rustup reaches its \
             server, then run: {line}"
        ))
    })
}
