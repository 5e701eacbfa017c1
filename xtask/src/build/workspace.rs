//! What the workspace contains, as `cargo metadata` tells it: examples and test suites.

use super::cargo::KERNEL_PACKAGE;
use crate::failure::usage;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The package whose `[[test]]`s are the in-kernel suites.
pub const TESTS_PACKAGE: &str = "magpie-tests";
/// What an application names.
const FACADE_PACKAGE: &str = "magpie";
const BOOT_PACKAGE: &str = "magpie-boot";

/// The project's root folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// One package of the workspace.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    folder: PathBuf,
    programs: Vec<String>,
    tests: Vec<String>,
    /// What it depends on.
    uses: Vec<String>,
}

/// The packages of the workspace and where cargo builds them.
#[derive(Debug)]
pub struct Workspace {
    packages: Vec<Package>,
    target: PathBuf,
    root: PathBuf,
}

impl Workspace {
    /// Asks cargo.
    pub fn load() -> Result<Self> {
        let output = super::cargo()
            .args(["metadata", "--no-deps", "--format-version=1"])
            .output()
            .context("cargo cannot be started")?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Self::parse(&output.stdout)
    }

    fn parse(json: &[u8]) -> Result<Self> {
        let metadata: Value = serde_json::from_slice(json).context("cargo metadata is not JSON")?;
        let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
        Ok(Self {
            packages: packages.iter().filter_map(Package::parse).collect(),
            target: metadata["target_directory"]
                .as_str()
                .context("cargo metadata has no target folder")?
                .into(),
            root: metadata["workspace_root"].as_str().context("cargo metadata has no root")?.into(),
        })
    }

    /// Where cargo builds.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The names of the programs below `examples/`, sorted. A package is named as its program, unless it has several.
    pub fn examples(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.example_packages().flat_map(|package| package.programs.iter().map(String::as_str)).collect();
        names.sort_unstable();
        names
    }

    fn example_packages(&self) -> impl Iterator<Item = &Package> {
        let folder = self.root.join("examples");
        self.packages.iter().filter(move |package| package.folder.starts_with(&folder))
    }

    /// The package that an example is in.
    pub fn package_of_example(&self, name: &str) -> Option<&str> {
        self.with_example(name).map(|package| package.name.as_str())
    }

    fn with_example(&self, name: &str) -> Option<&Package> {
        self.example_packages().find(|package| package.programs.iter().any(|program| program == name))
    }

    /// The folder of an example; a usage error that lists the known ones when there is none of that name.
    pub fn example(&self, name: &str) -> Result<&Path> {
        if let Some(package) = self.with_example(name) {
            return Ok(&package.folder);
        }
        let known = self.examples();
        let list = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
        Err(usage(format!("there is no example '{name}'; known examples: {list}")))
    }

    /// The names of the in-kernel suites, sorted.
    pub fn suites(&self) -> Vec<&str> {
        let tests = self.packages.iter().find(|package| package.name == TESTS_PACKAGE);
        let mut names: Vec<&str> =
            tests.map_or(Vec::new(), |package| package.tests.iter().map(String::as_str).collect());
        names.sort_unstable();
        names
    }

    /// The packages whose unit tests run on the host, of those that exist.
    pub fn host_packages(&self) -> Vec<&str> {
        self.of_names(&["magpie-kernel", "magpie-boot", "magpie", "loader", "xtask"])
    }

    /// The packages that are built for the kernel's target, and apart from them the package of in-kernel
    /// suites.
    pub fn kernel_packages(&self) -> (Vec<&str>, Option<&str>) {
        let all = self.packages.iter().map(|package| package.name.as_str());
        let (tests, others): (Vec<_>, Vec<_>) =
            all.filter(|name| *name != "xtask").partition(|name| *name == TESTS_PACKAGE);
        (others, tests.first().copied())
    }

    /// The name by which a feature of the kernel or of boot is switched on for a package: the facade's, or their own for
    /// one that does without it.
    pub fn feature_of(&self, name: &str, feature: &str) -> String {
        let package = self.packages.iter().find(|package| package.name == name);
        let has_facade =
            package.is_some_and(|package| package.uses.iter().any(|used| used == FACADE_PACKAGE));
        let owner = match feature {
            _ if has_facade => FACADE_PACKAGE,
            "rpi4" => BOOT_PACKAGE,
            _ => KERNEL_PACKAGE,
        };
        format!("{owner}/{feature}")
    }

    fn of_names<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        names.iter().copied().filter(|name| self.packages.iter().any(|p| p.name == *name)).collect()
    }
}

impl Package {
    fn parse(package: &Value) -> Option<Self> {
        let targets = package["targets"].as_array()?;
        let of_kind = |wanted: &str| {
            let is_wanted = |target: &&Value| {
                target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted))
            };
            let names = targets.iter().filter(is_wanted);
            names.filter_map(|target| Some(target["name"].as_str()?.to_owned())).collect()
        };
        Some(Self {
            name: package["name"].as_str()?.to_owned(),
            folder: Path::new(package["manifest_path"].as_str()?).parent()?.to_owned(),
            uses: package["dependencies"].as_array().map_or(Vec::new(), |all| {
                all.iter().filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect()
            }),
            programs: of_kind("bin"),
            tests: of_kind("test"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Workspace;

    const METADATA: &str = r#"{
        "workspace_root": "/m", "target_directory": "/t",
        "packages": [
            {"name": "xtask", "manifest_path": "/m/xtask/Cargo.toml",
             "targets": [{"kind": ["bin"], "name": "xtask"}]},
            {"name": "wordcount", "manifest_path": "/m/examples/wordcount/Cargo.toml",
             "targets": [{"kind": ["bin"], "name": "wordcount"}]},
            {"name": "magpie-tests", "manifest_path": "/m/tests/Cargo.toml",
             "targets": [{"kind": ["lib"], "name": "magpie_tests"},
                         {"kind": ["test"], "name": "sched"}, {"kind": ["test"], "name": "boot"}]}
        ]}"#;

    fn workspace() -> Workspace {
        Workspace::parse(METADATA.as_bytes()).unwrap()
    }

    #[test]
    fn finds_examples_and_suites() {
        assert_eq!(workspace().examples(), ["wordcount"]);
        assert_eq!(workspace().suites(), ["boot", "sched"]);
        assert_eq!(workspace().host_packages(), ["xtask"]);
        assert_eq!(workspace().kernel_packages(), (vec!["wordcount"], Some("magpie-tests")));
    }

    #[test]
    fn an_unknown_example_is_a_usage_error_that_lists_the_known() {
        let error = workspace().example("nonesuch").unwrap_err();
        assert_eq!(crate::failure::status_of(&error), crate::failure::USAGE);
        assert_eq!(error.to_string(), "there is no example 'nonesuch'; known examples: wordcount");
        // A package elsewhere is no example.
        assert!(workspace().example("xtask").is_err());
    }
}
