//! What cargo had to run or compile before the code is known: what build scripts said, and the libraries of macros.

use super::packages::{Packages, Target};
use super::{Platform, cargo_says, strings};
use crate::build::TARGET;
use anyhow::Result;
use serde_json::Value;
use std::collections::HashMap;

/// What there is of it.
#[derive(Default)]
pub struct Built {
    scripts: HashMap<(String, Platform), Script>,
    macros: HashMap<String, String>,
}

/// What a build script has said.
pub struct Script {
    pub folder: String,
    pub cfgs: Vec<String>,
    pub environment: Vec<(String, String)>,
}

impl Built {
    /// Has cargo check the workspace for each platform, as far as it goes: a package that does not compile keeps nothing from others.
    pub fn ask(packages: &Packages) -> Result<Self> {
        let mut built = Self::default();
        for platform in [Platform::Host, Platform::Kernel] {
            let wanted = wanted(packages, platform);
            if !wanted.is_empty() {
                let check = ["check", "--quiet", "--keep-going", "--message-format=json"];
                built.read(&cargo_says(&[&check[..], &wanted].concat(), false)?);
            }
        }
        Ok(built)
    }

    fn read(&mut self, messages: &[Value]) {
        for message in messages {
            let Some(package) = message["package_id"].as_str() else { continue };
            match message["reason"].as_str() {
                Some("build-script-executed") => {
                    let Some((platform, script)) = Script::read(message) else { continue };
                    self.scripts.insert((package.to_owned(), platform), script);
                }
                Some("compiler-artifact") if strings(&message["target"]["kind"]).contains(&"proc-macro") => {
                    if let Some(library) = strings(&message["filenames"]).first() {
                        self.macros.insert(package.to_owned(), (*library).to_owned());
                    }
                }
                _ => {}
            }
        }
    }

    /// What the package's build script has said, if it has one.
    pub fn script(&self, package: &str, platform: Platform) -> Option<&Script> {
        self.scripts.get(&(package.to_owned(), platform))
    }

    /// The library of a package of macros.
    pub fn macros(&self, package: &str) -> Option<&str> {
        self.macros.get(package).map(String::as_str)
    }
}

impl Script {
    fn read(message: &Value) -> Option<(Platform, Self)> {
        let folder = message["out_dir"].as_str()?.to_owned();
        // A build for the kernel's target runs scripts of what it builds for the host, too: macros and scripts use them.
        let is_kernel = folder.split(['/', '\\']).any(|part| part == TARGET);
        let platform = if is_kernel { Platform::Kernel } else { Platform::Host };
        let pair = |pair: &Value| match strings(pair)[..] {
            [key, value] => Some((key.to_owned(), value.to_owned())),
            _ => None,
        };
        Some((
            platform,
            Self {
                cfgs: strings(&message["cfgs"]).into_iter().map(str::to_owned).collect(),
                environment: message["env"].as_array().into_iter().flatten().filter_map(pair).collect(),
                folder,
            },
        ))
    }
}

/// What cargo is to check for a platform: everything that is for it. Libraries are for both; on the host their tests are as well.
fn wanted(packages: &Packages, platform: Platform) -> Vec<&str> {
    let mut words = Vec::new();
    for (_, package) in packages.members() {
        let of_platform = package.targets.iter().filter(|target| package.platform(target) == platform);
        let named: Vec<_> = of_platform.filter_map(Target::option).collect();
        let has_library = platform == Platform::Host && package.library().is_some();
        if has_library || !named.is_empty() {
            words.extend(["--package", &package.name]);
            words.extend(named.concat());
        }
    }
    match platform {
        _ if words.is_empty() => {}
        Platform::Host => words.extend(["--lib", "--profile", "test"]),
        Platform::Kernel => words.extend(["--target", TARGET]),
    }
    words
}
