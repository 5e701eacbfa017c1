//! `cargo xtask book`: the guide in `docs/` as a book, by mdBook, which is a program of its own. A page that mdBook complains of is an
//! error.

use crate::build::{Workspace, root};
use crate::failure::{FAILURE, SUCCESS, usage};
use crate::setup::{Install, run_shown, shown};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What `cargo xtask book` accepts.
#[derive(Args)]
pub struct Options {
    /// Show it in a browser
    #[arg(long)]
    open: bool,
    /// Never install anything: stop with status 2 when mdBook is missing
    #[arg(long)]
    no_install: bool,
}

/// The mdBook that the pages were looked at with; one of another major or minor version makes other pages.
const VERSION: &str = "0.5.4";

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    let target = Workspace::load()?.target().to_owned();
    let tools = target.join("tools");
    let candidates = [PathBuf::from("mdbook"), tools.join("bin/mdbook")];
    let program = ready(&candidates, &tools, Install::unless(options.no_install))?;
    build(program, &target.join("book"), options.open)
}

/// The first of these that is an mdBook of the right version, installed if it may be.
fn ready<'a>(candidates: &'a [PathBuf], tools: &Path, install: Install) -> Result<&'a Path> {
    let fitting = || candidates.iter().find(|program| fits(program)).map(PathBuf::as_path);
    if let Some(program) = fitting() {
        return Ok(program);
    }
    let tools = tools.to_string_lossy();
    // Without the parts that serve and watch pages, which are most of it; and not optimized, which takes a third of the time and makes the book in
    // a second all the same.
    let arguments = ["install", "mdbook", "--locked", "--version", VERSION, "--no-default-features"];
    let arguments = [&arguments[..], &["--features", "search", "--debug", "--root", &tools]].concat();
    if install == Install::Never {
        return Err(usage(format!(
            "mdBook {VERSION} is missing; install it with: {}; the pages in docs/ can be read as they are",
            shown("cargo", &arguments)
        )));
    }
    run_shown("cargo", &arguments)?;
    fitting().context("mdBook was installed, and cannot be found")
}

fn fits(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").stderr(Stdio::null()).output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    version.is_ok_and(|version| is_version(&version))
}

fn is_version(said: &str) -> bool {
    let series = VERSION.rsplit_once('.').map_or(VERSION, |(series, _)| series);
    let number = said.trim_start_matches("mdbook ").trim_start_matches('v');
    number.strip_prefix(series).is_some_and(|rest| rest.starts_with('.'))
}

fn build(program: &Path, into: &Path, is_opened: bool) -> Result<u8> {
    let mut command = Command::new(program);
    command.arg("build").arg(root().join("docs")).arg("--dest-dir").arg(into);
    if is_opened {
        command.arg("--open");
    }
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{} cannot be started", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || complains(&said) {
        eprint!("{said}");
        return Ok(FAILURE);
    }
    let index = into.join("index.html");
    ensure!(index.exists(), "mdBook made no {}", index.display());
    println!("{}", index.display());
    Ok(SUCCESS)
}

/// mdBook's own status is good where a page is missing or a mark was not closed.
fn complains(said: &str) -> bool {
    said.lines().any(|line| [" WARN ", "ERROR "].iter().any(|word| line.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::{VERSION, complains, is_version, ready};
    use crate::failure::{USAGE, status_of};
    use crate::setup::Install;

    #[test]
    fn without_mdbook_it_says_what_installs_it() {
        let none = ["/no/such/program/as/mdbook".into()];
        let error = ready(&none, "/tools".as_ref(), Install::Never).unwrap_err();
        assert_eq!(status_of(&error), USAGE);
        let text = "cargo install mdbook --locked --version 0.5.4 --no-default-features --features search --debug --root /tools";
        assert!(error.to_string().contains(text), "{error}");
    }

    #[test]
    fn ci_installs_the_same() {
        let run = std::fs::read_to_string(crate::build::root().join(".ci/run")).unwrap();
        let line = format!("mdbook --version {VERSION} --no-default-features --features search --debug");
        assert!(run.contains(&line), "no {line} in .ci/run");
    }

    #[test]
    fn a_version_of_the_series_will_do() {
        assert!(is_version("mdbook v0.5.4") && is_version("mdbook v0.5.0"));
        assert!(!is_version("mdbook v0.4.40") && !is_version("mdbook v0.50.1") && !is_version(""));
    }

    #[test]
    fn its_warnings_are_complaints() {
        assert!(!complains(" INFO Book building has started\n INFO Running the html backend\n"));
        assert!(complains(
            " INFO Book building has started\n WARN unclosed HTML tag `<T>` found in `x.md`\n"
        ));
        assert!(complains("ERROR Chapter file not found\n"));
    }
}
