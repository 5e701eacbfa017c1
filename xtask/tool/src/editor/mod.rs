//! What an editor is told of the workspace, so that rust-analyzer sees code of the kernel with the kernel's target and code of the
//! host with the host's. It is no plug-in of an editor: those ask rust-analyzer, which asks `cargo xtask rust-analyzer`.
//!
//! rust-analyzer knows one target for a whole workspace of cargo's. But it takes a list of crates as well, each with its target
//! (`rust-project.json`), and that is what is made here from what cargo says. A crate that code of both uses is in it twice; the
//! kernel's comes first, because rust-analyzer shows a file as the first crate has it that the file is part of.

mod built;
mod crates;
mod packages;

use built::Built;
use packages::Packages;

use crate::build::{TARGET, cargo, root};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// What a crate is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Platform {
    Kernel,
    Host,
}

/// A triple for each platform.
struct Triples {
    host: String,
}

impl Triples {
    fn of(&self, platform: Platform) -> &str {
        match platform {
            Platform::Kernel => TARGET,
            Platform::Host => &self.host,
        }
    }
}

/// The workspace in the form of `rust-project.json`. Has cargo run build scripts and compile macros, because both decide what the
/// code is; what of the code does not compile is described all the same.
pub fn describe() -> Result<Value> {
    let version = rustc(&["--version", "--verbose"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let triples = Triples { host: host.context("rustc does not say what it runs on")?.to_owned() };
    let sysroot = rustc(&["--print", "sysroot"])?.trim().to_owned();
    let packages = Packages::ask(&triples)?;
    let built = Built::ask(&packages)?;
    Ok(json!({
        "sysroot": sysroot,
        "sysroot_src": Path::new(&sysroot).join("lib/rustlib/src/rust/library"),
        "crates": crates::list(&packages, &built, &triples),
        "runnables": runnables(),
    }))
}

/// What an editor offers above a test of the host. `{label}` is the crate's package.
fn runnables() -> Value {
    let words = ["test", "--package", "{label}", "--", "{test_id}", "--nocapture"];
    json!([{"kind": "testOne", "program": "cargo", "args": words, "cwd": root()}])
}

/// What the workspace's compiler says.
fn rustc(arguments: &[&str]) -> Result<String> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler).args(arguments).current_dir(root()).output();
    let output = output.context("rustc cannot be started; is Rust installed?")?;
    ensure!(output.status.success(), "rustc {}: {}", arguments.join(" "), errors(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What cargo says, as JSON, a value for each line. `is_whole` says that a part is of no use.
fn cargo_says(arguments: &[&str], is_whole: bool) -> Result<Vec<Value>> {
    let output = cargo().args(arguments).output().context("cargo cannot be started; is Rust installed?")?;
    let verb = arguments.first().copied().unwrap_or_default();
    ensure!(output.status.success() || !is_whole, "cargo {verb} failed: {}", errors(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn errors(stderr: &[u8]) -> String {
    String::from_utf8_lossy(stderr).trim().to_owned()
}

/// The strings of a list; none if it is no list.
fn strings(value: &Value) -> Vec<&str> {
    value.as_array().map_or(Vec::new(), |all| all.iter().filter_map(Value::as_str).collect())
}
