//! What the workspace contains, as `cargo metadata` tells it: applications and suites of tests. It is this tree's, or that of a
//! project of one's own, whose `xtask` says where it is.

use super::cargo::KERNEL_PACKAGE;
use crate::failure::usage;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What an application names.
const FACADE_PACKAGE: &str = "magpie";
const BOOT_PACKAGE: &str = "magpie-boot";
/// What a suite is made with, and the line that makes one.
const HARNESS_PACKAGE: &str = "magpie-test";
const SUITE: &str = "::suite!();";

static ROOT: OnceLock<PathBuf> = OnceLock::new();

/// Says which workspace the tool is for: the one that a package, by its folder, is a member of. Before anything else is asked.
pub fn set_root_of(package: &Path) {
    // Only a second call finds it set, and that names the same.
    let _ = ROOT.set(workspace_of(package));
}

/// The workspace's root folder.
pub fn root() -> &'static Path {
    // Not said: this library's own tests.
    ROOT.get_or_init(|| workspace_of(Path::new(env!("CARGO_MANIFEST_DIR"))))
}

/// The nearest folder upwards whose manifest begins a workspace; without one, the package itself.
fn workspace_of(package: &Path) -> PathBuf {
    let begins_one = |folder: &&Path| {
        let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        text.lines().any(|line| line.trim() == "[workspace]")
    };
    package.ancestors().find(begins_one).unwrap_or(package).to_owned()
}

/// One package of the workspace.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    folder: PathBuf,
    programs: Vec<String>,
    tests: Vec<Source>,
    benches: Vec<Source>,
    /// What it depends on.
    uses: Vec<String>,
    /// It says that its programs are applications: `[package.metadata.magpie] application = true`.
    says_so: bool,
}

/// A test's or benchmark's name, and its file.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    name: String,
    file: PathBuf,
}

impl Source {
    fn is_suite(&self) -> bool {
        is_suite(&self.file)
    }
}

/// Whether a file of tests or benchmarks is an in-kernel suite.
pub fn is_suite(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.contains(SUITE))
}

/// The packages of the workspace and where cargo builds them.
#[derive(Debug)]
pub struct Workspace {
    packages: Vec<Package>,
    target: PathBuf,
    build: PathBuf,
    /// `[workspace.metadata.magpie] application`.
    application: Option<String>,
}

impl Workspace {
    /// Asks cargo.
    pub fn load() -> Result<Self> {
        Self::parse(&metadata(&["--no-deps"])?)
    }

    fn parse(metadata: &Value) -> Result<Self> {
        let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
        let target: PathBuf =
            metadata["target_directory"].as_str().context("cargo metadata has no target folder")?.into();
        Ok(Self {
            packages: packages.iter().filter_map(Package::parse).collect(),
            build: metadata["build_directory"].as_str().map_or_else(|| target.clone(), PathBuf::from),
            target,
            application: metadata["metadata"]["magpie"]["application"].as_str().map(str::to_owned),
        })
    }

    /// Where cargo puts what it has built.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Where cargo builds.
    pub fn build(&self) -> &Path {
        &self.build
    }

    /// The names of the applications, sorted: programs of packages that depend on `magpie`, or that say so. A package is named as its
    /// program, unless it has several.
    pub fn applications(&self) -> Vec<&str> {
        let packages = self.application_packages();
        let mut names: Vec<&str> =
            packages.flat_map(|package| package.programs.iter().map(String::as_str)).collect();
        names.sort_unstable();
        names
    }

    fn application_packages(&self) -> impl Iterator<Item = &Package> {
        let is_one =
            |package: &&Package| package.says_so || package.uses.iter().any(|used| used == FACADE_PACKAGE);
        self.packages.iter().filter(is_one)
    }

    /// The package that an application is in.
    pub fn package_of_application(&self, name: &str) -> Option<&str> {
        self.with_application(name).map(|package| package.name.as_str())
    }

    fn with_application(&self, name: &str) -> Option<&Package> {
        self.application_packages().find(|package| package.programs.iter().any(|program| program == name))
    }

    /// The folder of an application; a usage error that lists the known ones when there is none of that name.
    pub fn application(&self, name: &str) -> Result<&Path> {
        if let Some(package) = self.with_application(name) {
            return Ok(&package.folder);
        }
        let known = self.applications();
        let list = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
        Err(usage(format!("there is no application '{name}'; known applications: {list}")))
    }

    /// The application that a command means: the one it names, the workspace's own choice, or the only one.
    pub fn chosen<'a>(&'a self, named: Option<&'a str>) -> Result<&'a str> {
        let chosen = named.or(self.application.as_deref());
        match (chosen, self.applications().as_slice()) {
            (Some(name), _) => self.application(name).map(|_| name),
            (None, [only]) => Ok(only),
            (None, []) => Err(usage(format!(
                "there is no application here: no package with a program depends on {FACADE_PACKAGE}"
            ))),
            (None, several) => Err(usage(format!(
                "there are several applications, name one of them: {} (or say in Cargo.toml: \
                 [workspace.metadata.magpie] application = \"NAME\")",
                several.join(", ")
            ))),
        }
    }

    /// The names of the in-kernel suites, sorted: `[[test]]`s that end with `suite!`.
    pub fn suites(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.suites_by(|package| &package.tests).map(|(_, name)| name).collect();
        names.sort_unstable();
        names
    }

    /// The same of `[[bench]]`s, each with its package.
    pub fn benches(&self) -> Vec<(&str, &str)> {
        self.suites_by(|package| &package.benches).collect()
    }

    fn suites_by<'a>(
        &'a self,
        sources: impl Fn(&'a Package) -> &'a Vec<Source>,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let packages =
            self.packages.iter().filter(|package| package.uses.iter().any(|used| used == HARNESS_PACKAGE));
        packages.flat_map(move |package| {
            let suites = sources(package).iter().filter(|source| source.is_suite());
            suites.map(|source| (package.name.as_str(), source.name.as_str()))
        })
    }

    /// The package that a suite is in.
    pub fn package_of_suite(&self, name: &str) -> Option<&str> {
        let of_name =
            |package: &&Package| package.tests.iter().any(|test| test.name == name && test.is_suite());
        self.packages.iter().find(of_name).map(|package| package.name.as_str())
    }

    /// The names of all packages.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        self.packages.iter().map(|package| package.name.as_str())
    }

    /// The name by which a feature of the kernel or of boot is switched on for a package: the facade's, or their own for
    /// one that does without it.
    pub fn feature_of(&self, name: &str, feature: &str) -> String {
        let package = self.packages.iter().find(|package| package.name == name);
        let has_facade =
            package.is_some_and(|package| package.uses.iter().any(|used| used == FACADE_PACKAGE));
        let owner = match feature {
            _ if has_facade => FACADE_PACKAGE,
            "rpi4" | "traced" => BOOT_PACKAGE,
            _ => KERNEL_PACKAGE,
        };
        format!("{owner}/{feature}")
    }
}

/// The folder of a package that the workspace has or depends on.
pub fn folder_of(package: &str) -> Result<PathBuf> {
    let metadata = metadata(&[])?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let found = packages.iter().find(|one| one["name"] == package);
    let manifest = found.and_then(|one| one["manifest_path"].as_str());
    let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
    folder.map(Path::to_owned).with_context(|| format!("the workspace does not have the package {package}"))
}

fn metadata(options: &[&str]) -> Result<Value> {
    let output = super::cargo()
        .args(["metadata", "--format-version=1"])
        .args(options)
        .output()
        .context("cargo cannot be started")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")
}

impl Package {
    fn parse(package: &Value) -> Option<Self> {
        let targets = package["targets"].as_array()?;
        let of_kind = |wanted: &str| {
            let is_wanted = |target: &&Value| {
                target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted))
            };
            let source = |target: &Value| {
                Some(Source {
                    name: target["name"].as_str()?.to_owned(),
                    file: target["src_path"].as_str()?.into(),
                })
            };
            targets.iter().filter(is_wanted).filter_map(source).collect::<Vec<_>>()
        };
        Some(Self {
            name: package["name"].as_str()?.to_owned(),
            folder: Path::new(package["manifest_path"].as_str()?).parent()?.to_owned(),
            uses: package["dependencies"].as_array().map_or(Vec::new(), |all| {
                all.iter().filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect()
            }),
            says_so: package["metadata"]["magpie"]["application"] == true,
            programs: of_kind("bin").into_iter().map(|source| source.name).collect(),
            tests: of_kind("test"),
            benches: of_kind("bench"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Workspace, root, workspace_of};
    use crate::failure::{USAGE, status_of};
    use serde_json::{Value, json};
    use std::path::Path;

    fn package(name: &str, programs: &[&str], uses: &[&str]) -> Value {
        let target = |name: &&str| json!({"kind": ["bin"], "name": name, "src_path": "/m/main.rs"});
        json!({
            "name": name, "manifest_path": format!("/m/{name}/Cargo.toml"),
            "targets": programs.iter().map(target).collect::<Vec<_>>(),
            "dependencies": uses.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        })
    }

    fn workspace(packages: &[Value], metadata: Value) -> Workspace {
        let json = json!({"target_directory": "/t", "packages": packages, "metadata": metadata});
        Workspace::parse(&json).unwrap()
    }

    fn two() -> [Value; 3] {
        [
            package("xtask", &["xtask"], &["magpie-xtask"]),
            package("wordcount", &["wordcount"], &["magpie"]),
            package("first", &["first-1"], &["magpie"]),
        ]
    }

    #[test]
    fn applications_are_programs_on_the_facade() {
        let workspace = workspace(&two(), Value::Null);
        assert_eq!(workspace.applications(), ["first-1", "wordcount"]);
        assert_eq!(workspace.package_of_application("first-1"), Some("first"));
        assert_eq!(workspace.build(), Path::new("/t"));
    }

    #[test]
    fn an_unknown_application_is_a_usage_error_that_lists_the_known() {
        let workspace = workspace(&two(), Value::Null);
        for error in [workspace.application("xtask"), workspace.application("nonesuch")] {
            assert_eq!(status_of(error.as_ref().unwrap_err()), USAGE);
        }
        let error = workspace.application("nonesuch").unwrap_err();
        let text = "there is no application 'nonesuch'; known applications: first-1, wordcount";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn an_application_is_named_chosen_or_the_only_one() {
        let chooses = json!({"magpie": {"application": "wordcount"}});
        let chosen = workspace(&two(), chooses);
        assert_eq!(chosen.chosen(None).unwrap(), "wordcount");
        assert_eq!(chosen.chosen(Some("first-1")).unwrap(), "first-1");
        let [xtask, wordcount, _] = two();
        assert_eq!(workspace(&[xtask.clone(), wordcount], Value::Null).chosen(None).unwrap(), "wordcount");
        for (packages, says) in [(&two()[..], "first-1, wordcount"), (&[xtask], "depends on magpie")] {
            let error = workspace(packages, Value::Null).chosen(None).unwrap_err();
            assert_eq!(status_of(&error), USAGE);
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    /// One that uses the kernel's own parts cannot depend on the facade as well, which has the kernel's name.
    #[test]
    fn every_example_is_an_application() {
        let workspace = Workspace::load().unwrap();
        let examples = root().join("examples");
        let is_example = |package: &&super::Package| package.folder.starts_with(&examples);
        let missing = workspace.packages.iter().filter(is_example).flat_map(|package| &package.programs);
        let missing: Vec<_> =
            missing.filter(|program| workspace.package_of_application(program).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn a_member_finds_its_workspace() {
        assert!(root().join("kernel/rooms.txt").is_file(), "{}", root().display());
        assert_eq!(workspace_of(&root().join("examples/hello")), root());
        assert_eq!(workspace_of(Path::new("/nowhere/at/all")), Path::new("/nowhere/at/all"));
    }

    #[test]
    fn suites_are_tests_that_end_as_one() {
        let workspace = Workspace::load().unwrap();
        let suites = workspace.suites();
        assert!(suites.contains(&"sched") && !suites.contains(&"guide"), "{suites:?}");
        assert_eq!(workspace.package_of_suite("sched"), Some("magpie-tests"));
        assert_eq!(workspace.package_of_suite("guide"), None);
    }
}
