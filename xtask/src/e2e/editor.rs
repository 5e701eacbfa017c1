//! Editors: what rust-analyzer makes of this tree, and of a project of one's own, with the settings that lie there. The server is the
//! toolchain's own; `client` stands for the editor.

mod client;

use super::tool::{Said, tool_as_it_is};
use super::{Bench, Case, Outcome};
use crate::build::root;
use crate::setup::{Install, ready_rust_analyzer};
use anyhow::{Context, Result, ensure};
use client::Client;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

pub const CASES: &[Case] = &[
    ("editor::sees_this_trees_code_with_its_targets", this_tree),
    ("editor::is_told_what_is_missing", is_told),
];

const INACTIVE: &str = "inactive-code";

/// Files of the kernel are seen with its target, files of the tool with this machine's, and files that only the host's build of the
/// kernel has with this machine's as well.
fn this_tree(_: &Bench<'_>) -> Result<Outcome> {
    let server = match ready_rust_analyzer(Install::Allowed) {
        Ok(server) => server,
        Err(reason) => return Ok(Outcome::Skipped(reason)),
    };
    let mut client = Client::start(server, root())?;
    let [rooms, kernel, host, boot, tool, suite] = [
        "kernel/src/arch/mod.rs",
        "kernel/src/arch/aarch64/cpu.rs",
        "kernel/src/arch/host/cpu.rs",
        "boot/src/lib.rs",
        "xtask/tool/src/machine/run.rs",
        "tests/suites/process/main.rs",
    ];
    let others = ["xtask/src/main.rs", "examples/hello/src/main.rs", "kernel/tests/guide/main.rs"];
    let files = [&[rooms, kernel, host, boot, tool, suite][..], &others].concat();
    client.open(&files)?;
    for file in files {
        has_no_error(&mut client, file)?;
    }
    is_inactive(&mut client, rooms, "#[cfg(not(target_os = \"none\"))]\nmod host;", true)?;
    is_inactive(&mut client, rooms, "#[cfg(target_os = \"none\")]\nmod aarch64;", false)?;
    is_inactive(&mut client, tool, "#[cfg(target_os = \"linux\")]", false)?;
    leads_to(&mut client, kernel, "MPIDR_EL1, Readable", "tock-registers")?;
    leads_to(&mut client, kernel, "asm::wfe", "aarch64-cpu")?;
    leads_to(&mut client, "examples/hello/src/main.rs", "magpie::entry", "/boot/src/")?;
    let offered = client.offered(tool)?;
    let test = "test --package magpie-xtask -- machine::run::tests::";
    ensure!(offered.iter().any(|words| words.starts_with(test)), "no test is offered: {offered:?}");
    Ok(Outcome::Passed)
}

/// What a project's code looks like in an editor, from settings and tool of its own; `command` starts rust-analyzer.
pub fn in_project(command: Command, folder: &Path) -> Result<()> {
    let mut client = Client::start(command, folder)?;
    let [image, suite, host] = ["src/main.rs", "tests/kernel.rs", "tests/host.rs"];
    let files = ["src/lib.rs", image, suite, host, "benches/figures.rs", "xtask/src/main.rs"];
    client.open(&files)?;
    for file in files {
        has_no_error(&mut client, file)?;
    }
    is_inactive(&mut client, suite, "#[cfg(target_os = \"none\")]\nmagpie_test", false)?;
    is_inactive(&mut client, suite, "#[cfg(not(target_os = \"none\"))]\nmagpie_xtask", true)?;
    leads_to(&mut client, image, "Executor", "/kernel/src/actor/")?;
    leads_to(&mut client, host, "testing::{Options, run", "/kernel/src/")?;
    let offered = client.offered(host)?;
    let test = "test --package my-app -- it_counts --nocapture";
    ensure!(offered.iter().any(|words| words == test), "the host's test is not offered: {offered:?}");

    // What is wrong is seen while it is typed.
    let text = fs::read_to_string(folder.join("src/lib.rs")).context("there is no library")?;
    client.change("src/lib.rs", &text.replace("        self.0\n", "        \"a text\"\n"))?;
    let remarks = client.remarks("src/lib.rs")?;
    ensure!(remarks.iter().any(|remark| remark.is_error), "nothing is wrong with a text for a number");
    Ok(())
}

/// Without rust-analyzer's settings the verb is as good: it says what is wrong in one line of the form that is read.
fn is_told(bench: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool_as_it_is()?;
    command.args(["rust-analyzer", "--no-install"]).env("RUSTC", bench.folder.join("no-compiler"));
    let said = Said::of(command)?;
    let line: Value = serde_json::from_str(said.text().trim()).context("what it says is no JSON")?;
    ensure!(line["kind"] == "error" && line["error"].is_string(), "no error is told: {line}");
    ensure!(said.status == Some(1), "it ends with {:?}", said.status);

    let file = bench.folder.join("rust-project.json");
    let mut command = tool_as_it_is()?;
    command.args(["rust-analyzer", "--no-install", "--output"]).arg(&file);
    Said::of(command)?.expect_status(0)?;
    let text = fs::read(&file).context("no file is written")?;
    let project: Value = serde_json::from_slice(&text).context("the file is no JSON")?;
    let crates = project["crates"].as_array().context("there are no crates")?;
    let targets: Vec<_> = crates
        .iter()
        .filter(|one| one["display_name"] == "wordcount" || one["display_name"] == "xtask")
        .filter_map(|one| one["target"].as_str())
        .collect();
    ensure!(targets.len() == 2 && targets[0] == "aarch64-unknown-none", "other targets: {targets:?}");
    ensure!(targets[1] != targets[0], "the tool is for the kernel's target");
    Ok(Outcome::Passed)
}

fn has_no_error(client: &mut Client, file: &str) -> Result<()> {
    let remarks = client.remarks(file)?;
    let errors: Vec<_> = remarks.iter().filter(|remark| remark.is_error).collect();
    let Some(first) = errors.first() else { return Ok(()) };
    anyhow::bail!("{file}:{}: {} ({})", first.line, first.message, first.code)
}

/// Whether the code that begins with these lines is shown as left out.
fn is_inactive(client: &mut Client, file: &str, code: &str, expected: bool) -> Result<()> {
    let source =
        fs::read_to_string(client.folder().join(file)).with_context(|| format!("there is no {file}"))?;
    let at = source.find(code).with_context(|| format!("{file} has no {code}"))?;
    let line = source[..at].matches('\n').count() as u64 + 1;
    let found = client.remarks(file)?.iter().any(|remark| remark.code == INACTIVE && remark.line == line);
    ensure!(found == expected, "{file}:{line}: is inactive: {found}");
    Ok(())
}

fn leads_to(client: &mut Client, file: &str, text: &str, part: &str) -> Result<()> {
    let found = client.definition(file, text)?;
    ensure!(found.contains(part), "{file}: {text} leads to {found}, not to {part}");
    Ok(())
}
