//! The list of crates: each target of each package of the workspace, and the libraries that they use, for the platforms on which
//! they are used.

use super::built::Built;
use super::packages::{Kind, Package, Packages, Target, Use};
use super::{Platform, Triples};
use crate::build::root;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The crates, each naming what it uses by its place in the list.
pub fn list(packages: &Packages, built: &Built, triples: &Triples) -> Vec<Value> {
    let mut list = List { packages, built, triples, crates: Vec::new(), libraries: HashMap::new() };
    for platform in [Platform::Kernel, Platform::Host] {
        for (id, package) in packages.members() {
            for target in package.targets.iter().filter(|target| package.platform(target) == platform) {
                match target.kind {
                    Kind::Library | Kind::Macros => drop(list.library(id, platform)),
                    _ => drop(list.add(id, package, target, platform)),
                }
            }
        }
    }
    list.crates
}

struct List<'a> {
    packages: &'a Packages,
    built: &'a Built,
    triples: &'a Triples,
    crates: Vec<Value>,
    /// Where the library of a package is in `crates`; none while what it uses is being put there.
    libraries: HashMap<(String, Platform), Option<usize>>,
}

impl List<'_> {
    /// The library of a package, which is put into the list if it is not in there; nothing if it has none.
    fn library(&mut self, id: &str, platform: Platform) -> Option<usize> {
        let package = self.packages.package(id)?;
        let target = package.library()?;
        let platform = if target.kind == Kind::Macros { Platform::Host } else { platform };
        let key = (id.to_owned(), platform);
        if let Some(place) = self.libraries.get(&key) {
            return *place;
        }
        // Tests of a library may use what uses the library: cargo allows the circle, an editor's list does not.
        self.libraries.insert(key.clone(), None);
        let place = Some(self.add(id, package, target, platform));
        self.libraries.insert(key, place);
        place
    }

    /// Puts a crate and what it uses into the list.
    fn add(&mut self, id: &str, package: &Package, target: &Target, platform: Platform) -> usize {
        let packages = self.packages;
        let is_member = packages.is_member(id);
        let node = packages.node(id, platform);
        let mut uses = Vec::new();
        for used in node.into_iter().flat_map(|node| &node.uses) {
            if is_used(used, target.kind, is_member)
                && let Some(place) = self.library(&used.package, platform)
            {
                uses.push(json!({"crate": place, "name": used.name}));
            }
        }
        let has_own = !matches!(target.kind, Kind::Library | Kind::Macros | Kind::BuildScript);
        if let Some(library) = package.library().filter(|_| has_own)
            && let Some(place) = self.library(id, platform)
        {
            uses.push(json!({"crate": place, "name": library.crate_name()}));
        }

        let script = self.built.script(id, platform).filter(|_| target.kind != Kind::BuildScript);
        let mut cfgs: Vec<_> = node
            .into_iter()
            .flat_map(|node| &node.features)
            .map(|feature| format!("feature=\"{feature}\""))
            .collect();
        cfgs.extend(script.into_iter().flat_map(|script| script.cfgs.iter().cloned()));
        let mut environment = environment(package, target);
        // The workspace's own may name a file of each other's.
        let mut included = vec![if is_member { root().to_owned() } else { package.folder.clone() }];
        let mut excluded = vec![];
        if is_member {
            excluded.extend([root().join("target"), root().join(".git")]);
        } else {
            excluded.extend(["tests", "benches", "examples", "target"].map(|part| package.folder.join(part)));
        }
        if let Some(script) = script {
            environment.push(("OUT_DIR", script.folder.clone()));
            included.push(script.folder.clone().into());
        }
        let mut environment: serde_json::Map<String, Value> =
            environment.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        for (key, value) in script.into_iter().flat_map(|script| &script.environment) {
            environment.insert(key.clone(), value.as_str().into());
        }

        let mut this = json!({
            "display_name": target.crate_name(),
            "root_module": target.file,
            "edition": target.edition,
            "version": package.version,
            "deps": uses,
            "cfg": cfgs,
            "target": self.triples.of(platform),
            "env": environment,
            "is_workspace_member": is_member,
            "is_proc_macro": target.kind == Kind::Macros,
            "source": {"include_dirs": included, "exclude_dirs": excluded},
        });
        if target.kind == Kind::Macros
            && let Some(library) = self.built.macros(id)
        {
            this["proc_macro_dylib_path"] = library.into();
        }
        if is_member {
            this["build"] = offered(package, target);
        }
        self.crates.push(this);
        self.crates.len() - 1
    }
}

/// Whether code of a kind uses what its package depends on in this way. Tests within a library are part of it.
fn is_used(used: &Use, kind: Kind, is_member: bool) -> bool {
    match kind {
        Kind::BuildScript => used.is_for_build,
        Kind::Library | Kind::Macros | Kind::Program => used.is_normal || (is_member && used.is_for_tests),
        Kind::Suite | Kind::Benchmarks | Kind::HostTest | Kind::Other => used.is_normal || used.is_for_tests,
    }
}

/// What cargo sets for the compiler, and code asks for by `env!`.
fn environment(package: &Package, target: &Target) -> Vec<(&'static str, String)> {
    let numbers = package.version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = numbers.split('.').map(str::to_owned);
    let mut environment = vec![
        ("CARGO", "cargo".to_owned()),
        ("CARGO_CRATE_NAME", target.crate_name()),
        ("CARGO_MANIFEST_DIR", package.folder.display().to_string()),
        ("CARGO_PKG_NAME", package.name.clone()),
        ("CARGO_PKG_VERSION", package.version.clone()),
    ];
    for key in ["CARGO_PKG_VERSION_MAJOR", "CARGO_PKG_VERSION_MINOR", "CARGO_PKG_VERSION_PATCH"] {
        environment.push((key, numbers.next().unwrap_or_default()));
    }
    environment
}

/// What an editor needs to offer its tests.
fn offered(package: &Package, target: &Target) -> Value {
    let kind = if target.kind == Kind::HostTest { "test" } else { "lib" };
    json!({"label": package.name, "build_file": package.manifest, "target_kind": kind})
}
