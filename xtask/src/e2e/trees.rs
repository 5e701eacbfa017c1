//! The kernel meets odd device trees: QEMU's own, changed in one place, handed back to QEMU.
//!
//! QEMU writes `/memory`, `/psci` and `/chosen` itself, so what may be wrong there is tried by the reader's unit tests
//! (`boot/src/tree_tests.rs`).

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use crate::setup::Qemu;
use anyhow::{Context, Result, anyhow};
use dtoolkit::Node;
use dtoolkit::fdt::Fdt;
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
use std::fs;
use std::path::Path;
use std::process::Command;

pub const CASES: &[Case] = &[
    ("trees::as_qemu_wrote_it", as_qemu_wrote_it),
    ("trees::no_interrupt_controller", |bench| {
        ends(bench, "intc", "the device tree names no GICv2 or GICv3")
    }),
    ("trees::no_timer", |bench| ends(bench, "timer", "the device tree names no Armv8 timer")),
    ("trees::no_serial_port", no_serial_port),
    ("trees::a_core_that_does_not_exist", a_core_that_does_not_exist),
    ("trees::too_long", too_long),
    ("trees::not_a_tree", not_a_tree),
];

/// QEMU's own tree for two cores, unpacked.
fn original(bench: &Bench<'_>) -> Result<DeviceTree> {
    let path = bench.folder.join("original.dtb");
    let dump = format!("virt,gic-version=2,dumpdtb={}", path.display());
    let dumped = Command::new(&Qemu::find().context("QEMU is missing")?.path)
        .args([
            "-M",
            &dump,
            "-cpu",
            "cortex-a72",
            "-smp",
            "2",
            "-m",
            "512M",
            "-nic",
            "none",
            "-display",
            "none",
        ])
        .output()
        .context("QEMU does not start")?;
    let blob = fs::read(&path).with_context(|| String::from_utf8_lossy(&dumped.stderr).into_owned())?;
    let tree = Fdt::new(&blob).map_err(|error| anyhow!("QEMU's tree is not understood: {error}"))?;
    Ok(DeviceTree::from_fdt(&tree))
}

/// Boots `hello` on two cores with the tree at `path`.
fn boot_with(bench: &Bench<'_>, path: &Path) -> Result<Said> {
    let mut command = tool()?;
    command.args(["qemu", "hello", "--no-install", "--smp", "2", "--dtb"]).arg(path);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    Said::of(command)
}

/// Boots `hello` on two cores with QEMU's tree after `change`.
fn boot(bench: &Bench<'_>, change: impl FnOnce(&mut DeviceTreeNode)) -> Result<Said> {
    let mut tree = original(bench)?;
    change(&mut tree.root);
    let path = bench.folder.join("changed.dtb");
    fs::write(&path, tree.to_dtb()).with_context(|| format!("cannot write {}", path.display()))?;
    boot_with(bench, &path)
}

/// Takes out the root's children whose names begin with `name`.
fn remove(root: &mut DeviceTreeNode, name: &str) {
    let names: Vec<String> = root.children().map(|child| child.name().to_string()).collect();
    for found in names.iter().filter(|found| found.starts_with(name)) {
        root.remove_child(found);
    }
}

fn as_qemu_wrote_it(bench: &Bench<'_>) -> Result<Outcome> {
    let said = boot(bench, |_| ())?;
    said.expect_status(0)?.expect_line("hello from core 0")?.expect_line("hello from core 1")?;
    Ok(Outcome::Passed)
}

/// Without the node `name`, the kernel stops and says `message`.
fn ends(bench: &Bench<'_>, name: &str, message: &str) -> Result<Outcome> {
    boot(bench, |root| remove(root, name))?.expect_status(1)?.expect_error(message)?;
    Ok(Outcome::Passed)
}

fn no_serial_port(bench: &Bench<'_>) -> Result<Outcome> {
    // The board's own port serves.
    boot(bench, |root| remove(root, "pl011"))?.expect_status(0)?.expect_line("hello from core 1")?;
    Ok(Outcome::Passed)
}

fn a_core_that_does_not_exist(bench: &Bench<'_>) -> Result<Outcome> {
    let said = boot(bench, |root| {
        let Some(cpu) = root.child_mut("cpus").and_then(|cpus| cpus.child_mut("cpu@1")) else { return };
        cpu.add_property(DeviceTreeProperty::new_unchecked("reg", vec![0_u8, 0, 0x77, 0]));
    })?;
    said.expect_status(0)?.expect_line("hello from core 0")?;
    said.expect_line("core 1 does not start: the firmware refuses; running on 1 core")?;
    Ok(Outcome::Passed)
}

fn too_long(bench: &Bench<'_>) -> Result<Outcome> {
    let padding = vec![0_u8; 3 << 20];
    let said = boot(bench, |root| root.add_property(DeviceTreeProperty::new_unchecked("padding", padding)))?;
    said.expect_status(1)?.expect_error("the device tree is longer than 2 MiB")?;
    Ok(Outcome::Passed)
}

fn not_a_tree(bench: &Bench<'_>) -> Result<Outcome> {
    let path = bench.folder.join("text.dtb");
    fs::write(&path, "some text").with_context(|| format!("cannot write {}", path.display()))?;
    boot_with(bench, &path)?.expect_status(2)?.expect_error("no flattened device tree")?;
    boot_with(bench, &bench.folder.join("none.dtb"))?
        .expect_status(2)?
        .expect_error("give an existing file")?;
    Ok(Outcome::Passed)
}
