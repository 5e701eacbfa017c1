//! A project of one's own: made outside this tree, booted, tested, measured and put on a card, as its README says; with Magpie by
//! its path, from a git repository, and from packages as a registry would have them. What else can be done with it is in `verbs`.
//!
//! Not in a folder of this tree: cargo would read this tree's configuration there as well. But what cargo builds lies in this
//! tree's folder for that, where most of the tool's dependencies are built already.

mod verbs;

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome, card, editor};
use crate::build::{cargo as own_cargo, root};
use crate::setup::{Install, ready_rust_analyzer};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub const CASES: &[Case] = &[
    ("project::is_made_booted_and_tested", made),
    ("project::takes_magpie_from_git", from_git),
    ("project::takes_magpie_from_packages", from_packages),
];

/// What would be published, and its folder.
const PUBLISHED: [(&str, &str); 11] = [
    ("magpie-kernel", "kernel"),
    ("magpie-boot", "boot"),
    ("magpie", "magpie"),
    ("magpie-random", "random"),
    ("magpie-net", "net"),
    ("magpie-node", "node"),
    ("magpie-dist", "dist"),
    ("magpie-drivers", "drivers"),
    ("magpie-test", "harness"),
    ("magpie-loader", "loader"),
    ("magpie-xtask", "xtask/tool"),
];

/// A folder elsewhere, removed in the end.
struct Elsewhere(PathBuf);

impl Elsewhere {
    fn new(name: &str) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("magpie-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for what is temporary.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A project, and how its cargo is to be called.
struct Project {
    folder: PathBuf,
    limit: String,
    build: PathBuf,
    /// Whether its images are built soon, and not as a user's are.
    is_cheap: bool,
}

impl Project {
    fn new(bench: &Bench<'_>, folder: PathBuf, options: &[&str]) -> Result<Self> {
        let mut new = tool()?;
        new.arg("new").arg(&folder).args(options);
        Said::of(new)?.expect_status(0)?.expect_line("  cargo run           # boots it on QEMU")?;
        let build = bench.workspace.build().to_owned();
        // One is built as a user's is: the others are about where Magpie comes from.
        let is_cheap = !options.is_empty();
        Ok(Self { folder, limit: bench.limit.as_secs().to_string(), build, is_cheap })
    }

    /// How long a command may take at most, building too.
    fn patience(&self) -> Duration {
        Duration::from_secs(1200)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        command.env("MAGPIE_TIMEOUT", &self.limit).env("MAGPIE_NO_INSTALL", "1");
        command.env_remove("CARGO_TARGET_DIR").env("CARGO_BUILD_BUILD_DIR", &self.build);
        if self.is_cheap {
            // Not what it is about: a third of the time.
            command.envs([("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")]);
            command
                .envs([("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"), ("CARGO_PROFILE_RELEASE_DEBUG", "0")]);
        }
        command
    }

    fn cargo(&self, arguments: &[&str]) -> Result<Said> {
        Ok(self.command(arguments).output().context("cargo cannot be started")?.into())
    }

    /// What cargo prints goes to standard error; what the guest prints comes decoded.
    fn boots(&self) -> Result<()> {
        let runs = self.cargo(&["run"])?;
        runs.expect_status(0)?.expect_line("the sum is 42")?;
        if !runs.text().starts_with("--- Magpie: my_app on virt, 4 cores") {
            bail!("the guest does not begin as others do\n{}", runs.text());
        }
        Ok(())
    }
}

fn made(bench: &Bench<'_>) -> Result<Outcome> {
    let elsewhere = Elsewhere::new("project")?;
    let project = Project::new(bench, elsewhere.0.join("my-app"), &[])?;
    project.boots()?;
    // Boot arguments reach the kernel, which says so of one that it does not know.
    let argued = project.cargo(&["run", "--", "sched.nonesuch=1"])?;
    argued.expect_status(0)?;
    ensure!(argued.text().contains("sched.nonesuch=1 ignored"), "no boot argument\n{}", argued.text());
    let tests = project.cargo(&["test"])?;
    tests.expect_status(0)?.expect_line("tests: 1 passed, 0 failed, 0 skipped")?;
    tests.expect_line("test it_counts ... ok")?;
    let suites = project.cargo(&["xtask", "test", "--smp", "1,3", "--no-install"])?;
    suites.expect_status(0)?.expect_line("2 passed, 0 failed")?;
    ensure!(
        suites.text().contains("\nkernel, 3 cores, 512M: 1 passed"),
        "no such machine\n{}",
        suites.text()
    );

    let figures = project.cargo(&["xtask", "bench", "--cores", "1", "--no-install"])?;
    let text = figures.expect_status(0)?.text();
    let figure = text.lines().find_map(|line| line.strip_prefix("ask ")?.trim().parse::<f64>().ok());
    ensure!(figure.is_some_and(|figure| (50.0..50_000.0).contains(&figure)), "no figure of an ask\n{text}");
    project.cargo(&["xtask", "check", "--no-install"])?.expect_status(0)?;

    // The loader comes from a package that the project depends on; the application is the only one.
    let firmware = card::firmware(bench)?;
    for words in [&["loader"][..], &[]] {
        let output = elsewhere.0.join("card.img");
        let (firmware, output) = (firmware.to_string_lossy(), output.to_string_lossy());
        let files = ["--firmware", &firmware, "--output", &output, "--no-install"];
        let said = project.cargo(&[&["xtask", "image"], words, &files].concat())?;
        said.expect_status(0)?;
        ensure!(said.text().contains("kernel8.img"), "no kernel on the card\n{}", said.text());
    }
    let mounted = elsewhere.0.join("mounted");
    fs::create_dir(&mounted).context("cannot make a folder")?;
    let (from, to) = (firmware.to_string_lossy(), mounted.to_string_lossy());
    let words = ["xtask", "flash", "--firmware", &from, "--dir", &to, "--no-install"];
    project.cargo(&words)?.expect_status(0)?;
    let kernel = fs::metadata(mounted.join("kernel8.img")).context("no kernel was copied")?;
    ensure!(kernel.len() > 50_000, "the kernel has {} bytes", kernel.len());

    verbs::watched(&project, &elsewhere.0)?;
    verbs::on_the_line(bench, &project)?;
    if let Ok(mut server) = ready_rust_analyzer(Install::Allowed) {
        server.env_remove("CARGO_TARGET_DIR").env("CARGO_BUILD_BUILD_DIR", &project.build);
        editor::in_project(server, &project.folder)?;
    }

    wrong_line(&project)?;
    let test = project.folder.join("tests/kernel.rs");
    let text = fs::read_to_string(&test).context("the project has no test")?;
    fs::write(&test, text.replace("42, \"the sum\"", "43, \"the sum\"")).context("it cannot be changed")?;
    let fails = project.cargo(&["test"])?;
    if fails.status == Some(0) || !fails.text().contains("the sum: found 42, expected 43") {
        bail!("a wrong expectation is not shown\n{}\n{}", fails.text(), fails.err);
    }
    Ok(Outcome::Passed)
}

/// An editor asks the tool for records, and shows the errors among them.
fn wrong_line(project: &Project) -> Result<()> {
    let path = project.folder.join("src/lib.rs");
    let text = fs::read_to_string(&path).context("the project has no library")?;
    fs::write(&path, format!("{text}\nconst WRONG: u8 = \"text\";\n")).context("it cannot be changed")?;
    let said = project.cargo(&["xtask", "check", "--message-format=json", "--no-install"])?;
    let printed = said.text();
    let records = printed.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let is_error = |record: &serde_json::Value| {
        let message = &record["message"];
        message["level"] == "error" && message["spans"][0]["file_name"] == "src/lib.rs"
    };
    ensure!(records.filter(is_error).count() > 0, "no record has the error\n{printed}");
    fs::write(&path, text).context("it cannot be changed back")
}

/// The repository has what is in this tree now, committed or not.
fn from_git(bench: &Bench<'_>) -> Result<Outcome> {
    let listed = git(root(), &["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let Ok(listed) = listed else {
        return Ok(Outcome::Skipped("there is no git here, or this tree is no repository".into()));
    };
    let elsewhere = Elsewhere::new("git")?;
    let repository = elsewhere.0.join("magpie");
    for name in listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = std::str::from_utf8(name).context("a file's name is no text")?;
        copy(&root().join(name), &repository.join(name))?;
    }
    git(&repository, &["init", "--quiet", "--initial-branch=main"])?;
    git(&repository, &["add", "--all"])?;
    let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    git(&repository, &[&author[..], &["commit", "--quiet", "--message=x"]].concat())?;
    let url = format!("file://{}", repository.display());
    let project = Project::new(bench, elsewhere.0.join("my-app"), &["--git", &url, "--branch", "main"])?;
    project.boots()?;
    let locked = fs::read_to_string(project.folder.join("Cargo.lock")).context("there is no Cargo.lock")?;
    ensure!(locked.contains(&format!("git+{url}?branch=main#")), "Magpie is not from git\n{locked}");
    Ok(Outcome::Passed)
}

fn git(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new("git").args(arguments).current_dir(folder).output();
    let output = output.context("git cannot be started")?;
    ensure!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}

/// A file, or what a link says; nothing where it was removed and not yet committed so.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let Ok(found) = fs::symlink_metadata(from) else { return Ok(()) };
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let copied = match found.is_symlink() {
        true => fs::read_link(from).and_then(|target| std::os::unix::fs::symlink(target, to)),
        false => fs::copy(from, to).map(drop),
    };
    copied.with_context(|| format!("cannot copy {}", from.display()))
}

/// Every package that would be published is packed, unpacked elsewhere, and stands in for the registry's.
fn from_packages(bench: &Bench<'_>) -> Result<Outcome> {
    let elsewhere = Elsewhere::new("packages")?;
    let mut pack = own_cargo();
    pack.args(["package", "--no-verify", "--allow-dirty", "--offline", "--quiet"]);
    for (package, _) in PUBLISHED {
        pack.args(["--package", package]);
    }
    pack.arg("--target-dir").arg(&elsewhere.0).stdin(Stdio::null());
    Said::of(pack)?.expect_status(0)?;
    let project = Project::new(bench, elsewhere.0.join("my-app"), &["--registry"])?;
    let version = env!("CARGO_PKG_VERSION");
    let mut patch = "\n[patch.crates-io]\n".to_owned();
    for (package, _) in PUBLISHED {
        let name = format!("{package}-{version}");
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(elsewhere.0.join("package").join(format!("{name}.crate")));
        Said::of({
            unpack.arg("-C").arg(&elsewhere.0);
            unpack
        })?
        .expect_status(0)?;
        patch.push_str(&format!("{package} = {{ path = \"{}\" }}\n", elsewhere.0.join(name).display()));
    }
    let manifest = project.folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).context("the project has no manifest")?;
    // With what an application may want besides.
    let wants = "magpie.workspace = true\nmagpie-drivers.workspace = true\nmagpie-net.workspace = true";
    let text = text.replacen("magpie.workspace = true", wants, 1);
    fs::write(&manifest, text + &patch).context("it cannot be changed")?;
    let main = project.folder.join("src/main.rs");
    let text = fs::read_to_string(&main).context("the project has no main")?;
    let looks = "async fn application() -> magpie::Result {\n    \
        let source = magpie_drivers::entropy::Source::open().await;\n    \
        text!(\"{:?}\", source.err());\n    \
        let network = magpie_net::Network::start(magpie_net::Config::dhcp())?;\n    \
        text!(\"{:?}\", network.statistics().await?.received);\n";
    fs::write(&main, text.replacen("async fn application() -> magpie::Result {\n", looks, 1))
        .context("it cannot be changed")?;
    project.boots()?;
    let random = project.cargo(&["xtask", "qemu", "--random", "--no-install"])?;
    random.expect_status(0)?.expect_line("None")?.expect_line("0")?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::PUBLISHED;
    use crate::build::root;
    use std::fs;

    #[test]
    fn every_package_is_published_or_says_that_it_is_not() {
        let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let workspace: toml::Table = workspace.parse().unwrap();
        for member in workspace["workspace"]["members"].as_array().unwrap() {
            let folder = member.as_str().unwrap();
            let text = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
            let stays =
                text.lines().any(|line| line == "publish.workspace = true" || line == "publish = false");
            let goes = PUBLISHED.iter().any(|(_, published)| *published == folder);
            assert!(stays != goes, "{folder}");
        }
    }
}
