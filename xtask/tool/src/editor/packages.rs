//! What cargo says of the packages: their programs, libraries and tests, and what each uses on each platform. What it has built of
//! them is in `built`.

use super::{Platform, Triples, cargo_says, strings};
use crate::build::is_suite;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// This library: who links it is for the host.
const TOOL_PACKAGE: &str = "magpie-xtask";

/// The packages of the workspace and those that they use.
pub struct Packages {
    known: HashMap<String, Package>,
    members: Vec<String>,
    kernel: HashMap<String, Node>,
    host: HashMap<String, Node>,
}

/// One package.
pub struct Package {
    pub name: String,
    pub version: String,
    pub folder: PathBuf,
    pub manifest: PathBuf,
    pub targets: Vec<Target>,
    /// It is a host tool.
    pub is_tool: bool,
}

/// A library, a program, a test: what cargo calls a target.
pub struct Target {
    pub kind: Kind,
    pub name: String,
    pub file: PathBuf,
    pub edition: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Library,
    Macros,
    Program,
    /// Tests in the kernel.
    Suite,
    /// Benchmarks in the kernel.
    Benchmarks,
    /// Tests on the host.
    HostTest,
    BuildScript,
    /// Benchmarks and examples of cargo's own, on the host.
    Other,
}

/// What a package uses and which of its features are on, on one platform.
#[derive(Default)]
pub struct Node {
    pub features: Vec<String>,
    pub uses: Vec<Use>,
}

pub struct Use {
    /// How the code names it; empty if it has no library.
    pub name: String,
    pub package: String,
    pub is_normal: bool,
    pub is_for_tests: bool,
    pub is_for_build: bool,
}

impl Packages {
    /// Asks cargo, once for each platform.
    pub fn ask(triples: &Triples) -> Result<Self> {
        let mut known = HashMap::new();
        let mut members = Vec::new();
        let mut nodes = |platform| -> Result<HashMap<String, Node>> {
            let words = ["metadata", "--format-version=1", "--filter-platform", triples.of(platform)];
            let said = cargo_says(&words, true)?;
            let said = said.first().context("cargo metadata says nothing")?;
            members = strings(&said["workspace_members"]).into_iter().map(str::to_owned).collect();
            for package in said["packages"].as_array().into_iter().flatten() {
                if let (Some(id), Some(read)) = (package["id"].as_str(), Package::read(package)) {
                    known.entry(id.to_owned()).or_insert(read);
                }
            }
            let nodes = said["resolve"]["nodes"].as_array().context("cargo metadata has resolved nothing")?;
            Ok(nodes
                .iter()
                .filter_map(|node| Some((node["id"].as_str()?.to_owned(), Node::read(node))))
                .collect())
        };
        let (kernel, host) = (nodes(Platform::Kernel)?, nodes(Platform::Host)?);
        members.sort_unstable();
        Ok(Self { known, members, kernel, host })
    }

    /// The workspace's own, by their names at cargo, in an order that stays.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Package)> {
        self.members.iter().filter_map(|id| Some((id.as_str(), self.known.get(id)?)))
    }

    pub fn package(&self, id: &str) -> Option<&Package> {
        self.known.get(id)
    }

    pub fn is_member(&self, id: &str) -> bool {
        self.members.iter().any(|member| member == id)
    }

    /// Macros and build scripts are only known to the host where the kernel's target does without the package.
    pub fn node(&self, id: &str, platform: Platform) -> Option<&Node> {
        let of_kernel = (platform == Platform::Kernel).then(|| self.kernel.get(id)).flatten();
        of_kernel.or_else(|| self.host.get(id))
    }
}

impl Package {
    fn read(package: &Value) -> Option<Self> {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        let name = package["name"].as_str()?.to_owned();
        let uses_tool = |one: &Value| one["name"] == TOOL_PACKAGE && one["kind"].is_null();
        Some(Self {
            is_tool: name == TOOL_PACKAGE || package["dependencies"].as_array()?.iter().any(uses_tool),
            name,
            version: package["version"].as_str()?.to_owned(),
            folder: manifest.parent()?.to_owned(),
            manifest: manifest.to_owned(),
            targets: package["targets"].as_array()?.iter().filter_map(Target::read).collect(),
        })
    }

    /// What the code names it by, if others can use it.
    pub fn library(&self) -> Option<&Target> {
        self.targets.iter().find(|target| matches!(target.kind, Kind::Library | Kind::Macros))
    }

    /// What one of its targets is built for, as it is seen first.
    pub fn platform(&self, target: &Target) -> Platform {
        match target.kind {
            _ if self.is_tool => Platform::Host,
            Kind::Library | Kind::Program | Kind::Suite | Kind::Benchmarks => Platform::Kernel,
            Kind::Macros | Kind::HostTest | Kind::BuildScript | Kind::Other => Platform::Host,
        }
    }
}

impl Target {
    fn read(target: &Value) -> Option<Self> {
        let kinds: HashSet<_> = strings(&target["kind"]).into_iter().collect();
        let file = PathBuf::from(target["src_path"].as_str()?);
        let kind = if kinds.contains("proc-macro") {
            Kind::Macros
        } else if kinds.contains("custom-build") {
            Kind::BuildScript
        } else if kinds.contains("bin") {
            Kind::Program
        } else if kinds.contains("test") {
            if is_suite(&file) { Kind::Suite } else { Kind::HostTest }
        } else if kinds.contains("bench") {
            if is_suite(&file) { Kind::Benchmarks } else { Kind::Other }
        } else if kinds.contains("example") {
            Kind::Other
        } else {
            Kind::Library
        };
        Some(Self {
            kind,
            name: target["name"].as_str()?.to_owned(),
            file,
            edition: target["edition"].as_str()?.to_owned(),
        })
    }

    /// How cargo is told to build it alone; nothing for what is built with others.
    pub fn option(&self) -> Option<[&str; 2]> {
        let option = match self.kind {
            Kind::Program => "--bin",
            Kind::Suite | Kind::HostTest => "--test",
            Kind::Benchmarks => "--bench",
            Kind::Library | Kind::Macros | Kind::BuildScript | Kind::Other => return None,
        };
        Some([option, &self.name])
    }

    /// The crate's name.
    pub fn crate_name(&self) -> String {
        self.name.replace('-', "_")
    }
}

impl Node {
    fn read(node: &Value) -> Self {
        let uses = node["deps"].as_array().into_iter().flatten();
        Self {
            features: strings(&node["features"]).into_iter().map(str::to_owned).collect(),
            uses: uses.filter_map(Use::read).collect(),
        }
    }
}

impl Use {
    fn read(used: &Value) -> Option<Self> {
        let kinds = used["dep_kinds"].as_array()?;
        Some(Self {
            name: used["name"].as_str()?.to_owned(),
            package: used["pkg"].as_str()?.to_owned(),
            is_normal: kinds.iter().any(|kind| kind["kind"].is_null()),
            is_for_tests: kinds.iter().any(|kind| kind["kind"] == "dev"),
            is_for_build: kinds.iter().any(|kind| kind["kind"] == "build"),
        })
    }
}
