//! `cargo xtask doctor`: what this machine has, what it lacks, and the command that installs it.

use crate::failure::{FAILURE, SUCCESS};
use crate::setup::{
    Component, OLDEST_FOR_RASPI4B, OLDEST_FOR_VIRT, Os, Qemu, TARGET_COMMAND, has_component, has_target,
    how_to_install,
};
use anyhow::Result;
use std::process::Command;

/// Runs the verb: status 0 when nothing is missing, else 1. It installs nothing.
pub fn execute() -> Result<u8> {
    let os = Os::detect();
    let mut missing = Vec::new();
    line("system", &format!("{} ({})", os.name, std::env::consts::ARCH));
    line("package manager", os.manager.map_or("none that is known here", |manager| manager.name()));
    line("rustc", &version_of("rustc", &mut missing));
    line("cargo", &version_of("cargo", &mut missing));
    line("rustup", &version_of("rustup", &mut Vec::new()));
    let target = has_target();
    line("target", if target { "aarch64-unknown-none" } else { "aarch64-unknown-none is missing" });
    if !target {
        missing.push(format!("the Rust target: {TARGET_COMMAND}"));
    }
    for component in [Component::Rustfmt, Component::Clippy] {
        let version = has_component(component);
        line(component.name(), version.as_deref().unwrap_or("missing"));
        if version.is_none() {
            missing.push(format!("{0}: rustup component add {0}", component.name()));
        }
    }
    qemu(&os, &mut missing);

    if missing.is_empty() {
        println!("nothing is missing");
        return Ok(SUCCESS);
    }
    println!("missing; 'cargo xtask qemu' installs what it can, or do it by hand:");
    for what in missing {
        println!("- {what}");
    }
    Ok(FAILURE)
}

fn qemu(os: &Os, missing: &mut Vec<String>) {
    let Some(qemu) = Qemu::find() else {
        line("QEMU", "missing");
        missing.push(format!("QEMU {OLDEST_FOR_RASPI4B} or newer:\n{}", how_to_install(os)));
        return;
    };
    line("QEMU", &format!("{} ({})", qemu.version, qemu.path.display()));
    let machines = qemu.machines();
    for (machine, oldest) in [("virt", OLDEST_FOR_VIRT), ("raspi4b", OLDEST_FOR_RASPI4B)] {
        let there = machines.iter().any(|name| name == machine) && qemu.version >= oldest;
        line(&format!("  machine {machine}"), if there { "yes" } else { "no" });
        if !there {
            missing
                .push(format!("QEMU {oldest} or newer, for the machine {machine}:\n{}", how_to_install(os)));
        }
    }
}

fn version_of(program: &str, missing: &mut Vec<String>) -> String {
    let output = Command::new(program).arg("--version").current_dir(crate::build::root()).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| {
        String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned()
    });
    text.unwrap_or_else(|| {
        missing.push(format!("{program}: install Rust from https://rustup.rs"));
        "missing".to_owned()
    })
}

fn line(what: &str, found: &str) {
    println!("{what:<18} {found}");
}
