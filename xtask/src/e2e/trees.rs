//! The kernel meets odd device trees: QEMU's own, changed in one place, handed back to QEMU.
//!
//! QEMU writes `/memory`, `/psci` and `/chosen` itself, so what may be wrong there is tried by the reader's unit tests
//! (`boot/src/tree/tests.rs`).

use super::tool::{Said, bare_qemu, tool};
use super::{Bench, Case, Outcome};
use crate::build::Board;
use crate::machine::{Machine, Size};
use crate::setup::Qemu;
use anyhow::{Context, Result, anyhow, bail, ensure};
use dtoolkit::Node;
use dtoolkit::fdt::Fdt;
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
use std::ffi::OsString;
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
    ("trees::no_tree_where_it_should_be", no_tree_there),
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

/// A loader that hands over any address: a few instructions that go on to the kernel with it.
fn no_tree_there(bench: &Bench<'_>) -> Result<Outcome> {
    const KERNEL: u64 = 0x4020_0000;
    const STUB: u64 = 0x4400_0000;
    let places: [(u64, &str); 7] = [
        (0, "the device tree is missing"),
        // In the first page, in no memory, in the image, among registers, not aligned, beyond what can be addressed.
        (0x100, "0x100"),
        (0x3000_0000_0000, "0x300000000000"),
        (0x4020_0000, "0x40200000"),
        (0x0900_0000, "0x9000000"),
        (0x4400_0001, "0x44000001"),
        (0xffff_0000_0000_0000, "0xffff000000000000"),
    ];
    for (address, expected) in places {
        let parts = (0..4_u32).map(|part| (part, (address >> (16 * part)) as u32 & 0xffff));
        // movz, movk: x0 = address. movz: x1 = the kernel's. br x1.
        let load = parts
            .map(|(part, bits)| if part == 0 { 0xd280_0000 } else { 0xf280_0000 } | part << 21 | bits << 5);
        let go = [0xd2a0_0001 | ((KERNEL >> 16) as u32) << 5, 0xd61f_0020];
        let stub: Vec<u8> = load.chain(go).flat_map(u32::to_le_bytes).collect();
        let path = bench.folder.join("stub.bin");
        fs::write(&path, stub).with_context(|| format!("cannot write {}", path.display()))?;
        let machine = Machine::new(1, Size::from_mebibytes(512), None)?;
        let (usual, _) = bare_qemu("hello", Board::Virt, machine, 300)?;
        let mut command = Command::new(usual.get_program());
        let mut words: Vec<OsString> = usual.get_args().map(OsString::from).collect();
        let Some(at) = words.iter().position(|word| word == "-kernel") else { bail!("QEMU gets no kernel") };
        let kernel = words[at + 1].to_string_lossy().into_owned();
        words[at] = "-device".into();
        words[at + 1] = format!("loader,file={kernel},addr={KERNEL:#x},force-raw=on").into();
        command.args(words);
        command.arg("-device").arg(format!("loader,file={},addr={STUB:#x},force-raw=on", path.display()));
        command.arg("-device").arg(format!("loader,addr={STUB:#x},cpu-num=0"));
        let said = Said::of(command)?;
        ensure!(said.status == Some(1), "{address:#x}: status {:?}\n{}", said.status, said.text());
        ensure!(said.text().contains(expected), "{address:#x}: '{expected}' is missing in\n{}", said.text());
    }
    Ok(Outcome::Passed)
}
