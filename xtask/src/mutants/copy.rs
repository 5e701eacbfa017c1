//! The copy of the kernel that holds every mutant: a workspace of its own in the target folder, built with the same
//! dependencies and profiles.
//!
//! Only files that have changed are written, so cargo builds again what has to be built again and no more.

use super::entry::{Subject, read_lists};
use super::weave::weave;
use crate::build::{Workspace, root, write_whole};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The kernel's folder, in the project and in the copy.
const KERNEL: &str = "kernel";
/// The lists of mutants, and the module that is added to the copy.
const LISTS: &str = "mutants";
const MODULE: &str = "mutant.rs";
/// What of the kernel is copied.
const COPIED: [&str; 3] = ["Cargo.toml", "src", "tests"];

/// Makes the copy, or brings it up to date. Where its manifest is.
pub fn write_copy() -> Result<PathBuf> {
    let copy = Workspace::load()?.target().join(LISTS);
    let files = woven_files(&root().join(KERNEL))?;
    for (path, text) in &files {
        write_file(&copy.join(KERNEL).join(path), text.as_bytes())?;
    }
    remove_others(&copy.join(KERNEL), Path::new(""), &files.into_keys().collect())?;
    let read = |name: &str| fs::read(root().join(name)).with_context(|| format!("cannot read {name}"));
    let manifest = String::from_utf8(read("Cargo.toml")?).context("Cargo.toml is not text")?;
    write_file(&copy.join("Cargo.toml"), workspace_manifest(&manifest)?.as_bytes())?;
    write_file(&copy.join("Cargo.lock"), &read("Cargo.lock")?)?;
    Ok(copy.join(KERNEL).join("Cargo.toml"))
}

/// The files of the copy, from the kernel's folder on.
fn woven_files(kernel: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    for name in COPIED {
        read_into(&mut files, kernel, Path::new(name))?;
    }
    let mut complaints = Vec::new();
    for subject in read_lists(&kernel.join(LISTS))? {
        let Subject { list, file, .. } = &subject;
        let text = files
            .get_mut(Path::new(file))
            .with_context(|| format!("{}: there is no file {file} in the kernel", list.display()))?;
        match weave(&subject, text) {
            Ok(woven) => *text = woven,
            Err(more) => complaints.extend(more),
        }
    }
    if !complaints.is_empty() {
        bail!("mutants that do not fit the kernel:\n{}", complaints.join("\n"));
    }
    let module = kernel.join(LISTS).join(MODULE);
    let module = fs::read_to_string(&module).with_context(|| format!("cannot read {}", module.display()))?;
    files.insert(Path::new("src").join(MODULE), module);
    files.get_mut(Path::new("src/lib.rs")).context("the kernel has no src/lib.rs")?.push_str("mod mutant;\n");
    Ok(files)
}

/// Reads a file, or all the files below a folder.
fn read_into(files: &mut BTreeMap<PathBuf, String>, kernel: &Path, path: &Path) -> Result<()> {
    let full = kernel.join(path);
    let context = || format!("cannot read {}", full.display());
    if full.is_dir() {
        for entry in fs::read_dir(&full).with_context(context)? {
            read_into(files, kernel, &path.join(entry.with_context(context)?.file_name()))?;
        }
    } else {
        files.insert(path.to_owned(), fs::read_to_string(&full).with_context(context)?);
    }
    Ok(())
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    write_whole(path, bytes)
}

/// Removes what an earlier copy had and this one has not.
fn remove_others(copy: &Path, folder: &Path, kept: &BTreeSet<PathBuf>) -> Result<()> {
    let full = copy.join(folder);
    for entry in fs::read_dir(&full).with_context(|| format!("cannot read {}", full.display()))? {
        let path = folder.join(entry?.file_name());
        if copy.join(&path).is_dir() {
            remove_others(copy, &path, kept)?;
        } else if !kept.contains(&path) {
            fs::remove_file(copy.join(&path)).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// The project's manifest for a workspace of the kernel alone. Its lints are for code that somebody has written, and how
/// development builds treat single packages is mostly about packages that are not there.
fn workspace_manifest(project: &str) -> Result<String> {
    let mut manifest: Table = project.parse().context("Cargo.toml")?;
    let workspace = manifest.get_mut("workspace").and_then(Value::as_table_mut);
    let workspace = workspace.context("Cargo.toml has no [workspace]")?;
    workspace.insert("members".into(), Value::Array(vec![KERNEL.into()]));
    workspace.remove("default-members");
    workspace.insert("lints".into(), "rust.warnings = 'allow'".parse::<Table>()?.into());
    let profiles = manifest.get_mut("profile").and_then(Value::as_table_mut);
    if let Some(dev) = profiles.and_then(|profiles| profiles.get_mut("dev")).and_then(Value::as_table_mut) {
        dev.remove("package");
    }
    Ok(manifest.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::entry::read_lists;
    use super::{KERNEL, LISTS, workspace_manifest, woven_files};
    use crate::build::root;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_mutant_fits_the_kernel() {
        let kernel = root().join(KERNEL);
        let files = woven_files(&kernel).unwrap_or_else(|error| panic!("{error:#}"));
        for subject in read_lists(&kernel.join(LISTS)).unwrap() {
            let woven = &files[Path::new(&subject.file)];
            for name in subject.names() {
                assert_eq!(woven.matches(&format!("mutant::is(\"{name}\")")).count(), 1, "{name}");
            }
            let source = fs::read_to_string(kernel.join(&subject.file)).unwrap();
            assert_eq!(woven.lines().count(), source.lines().count(), "{}", subject.file);
        }
    }

    /// What all files of a folder say, and of those in it.
    fn text_below(folder: &Path) -> String {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths
            .map(|path| if path.is_dir() { text_below(&path) } else { fs::read_to_string(path).unwrap() })
            .collect()
    }

    #[test]
    fn the_models_have_every_mutant_and_no_other() {
        let kernel = root().join(KERNEL);
        let text = text_below(&kernel.join("tests/models"));
        let names_after = |head: &str| -> BTreeSet<String> {
            text.split(head).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
        };
        let heads = ["step(\"", "seldom(\"", "ordering(\"", "Mutant { name: \""];
        let in_tables: BTreeSet<String> = heads.into_iter().flat_map(names_after).collect();
        // Some models have steps of their own, which they break themselves.
        let mut broken = names_after("mutant(\"");
        for subject in read_lists(&kernel.join(LISTS)).unwrap() {
            broken.extend(subject.names().map(str::to_owned));
        }
        assert_eq!(in_tables, broken);
    }

    #[test]
    fn the_copys_workspace_is_the_kernel_alone() {
        let project = "[workspace]\nmembers = ['a', 'kernel']\ndefault-members = ['a']\n\
                       [workspace.lints.rust]\nmissing_docs = 'warn'\n[profile.proof]\ninherits = 'release'\n\
                       [profile.dev]\nopt-level = 1\n[profile.dev.package]\nobject.opt-level = 1\n";
        let manifest = workspace_manifest(project).unwrap();
        assert!(
            manifest.contains("members = [\"kernel\"]") && manifest.contains("[profile.proof]"),
            "{manifest}"
        );
        assert!(!manifest.contains("default-members") && !manifest.contains("missing_docs"), "{manifest}");
        assert!(manifest.contains("warnings = \"allow\""), "{manifest}");
    }
}
