//! `cargo xtask new DIR`: makes a project of one's own, outside this tree, which builds against it.

use crate::build::{cargo, root};
use crate::failure::{SUCCESS, usage};
use anyhow::{Context, Result};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What `cargo xtask new` accepts.
#[derive(Args)]
pub struct Options {
    /// The folder to make; its name is the project's, unless --name says another
    dir: PathBuf,
    /// The project's name
    #[arg(long)]
    name: Option<String>,
    /// Depend on Magpie in this git repository [default: on this tree, by its path]
    #[arg(long, value_name = "URL")]
    git: Option<String>,
    /// With --git: this revision
    #[arg(long, requires = "git", conflicts_with = "branch")]
    rev: Option<String>,
    /// With --git: this branch
    #[arg(long, requires = "git")]
    branch: Option<String>,
    /// Depend on the packages of this tree's version in the registry, once they are published
    #[arg(long, conflicts_with = "git")]
    registry: bool,
}

/// What is made, and from what: the name of the package, of its crate, and where Magpie is are put in.
const FILES: [(&str, &str); 11] = [
    ("Cargo.toml", include_str!("../project/Cargo.toml.in")),
    (".cargo/config.toml", include_str!("../project/cargo-config.toml.in")),
    (".vscode/settings.json", include_str!("../project/settings.json.in")),
    ("src/lib.rs", include_str!("../project/lib.rs.in")),
    ("src/main.rs", include_str!("../project/main.rs.in")),
    ("tests/kernel.rs", include_str!("../project/kernel.rs.in")),
    ("tests/host.rs", include_str!("../project/host.rs.in")),
    ("benches/figures.rs", include_str!("../project/figures.rs.in")),
    ("xtask/Cargo.toml", include_str!("../project/xtask-Cargo.toml.in")),
    ("xtask/src/main.rs", include_str!("../project/xtask-main.rs.in")),
    ("README.md", include_str!("../project/README.md.in")),
];

/// What a project depends on: what stands for it in the manifest, and its folder in this tree.
const PACKAGES: [(&str, &str); 6] = [
    ("@MAGPIE@", "magpie"),
    ("@MAGPIE-DRIVERS@", "drivers"),
    ("@MAGPIE-NET@", "net"),
    ("@MAGPIE-RANDOM@", "random"),
    ("@MAGPIE-TEST@", "harness"),
    ("@MAGPIE-XTASK@", "xtask/tool"),
];

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    let name = name_of(options)?;
    let sources = PACKAGES.map(|(mark, folder)| Ok((mark, source(options, folder)?)));
    let sources = sources.into_iter().collect::<Result<Vec<_>>>()?;
    let dir = &options.dir;
    if is_in(dir, root()) {
        return Err(usage(format!(
            "{} is in this tree, whose settings for cargo would hold there, too: give a folder elsewhere",
            dir.display()
        )));
    }
    make_folder(dir)?;
    let crate_name = name.replace('-', "_");
    for (file, template) in FILES {
        let mut text = template.replace("@NAME@", &name).replace("@CRATE@", &crate_name);
        for (mark, source) in &sources {
            text = text.replace(mark, source);
        }
        write(&dir.join(file), &text)?;
    }
    write(&dir.join(".gitignore"), "/target\n")?;
    let toolchain = fs::read_to_string(root().join("rust-toolchain.toml"));
    write(&dir.join("rust-toolchain.toml"), &toolchain.context("this tree names no toolchain")?)?;
    // The very versions that were tried with this tree; cargo adds and drops what differs.
    fs::copy(root().join("Cargo.lock"), dir.join("Cargo.lock")).context("Cargo.lock cannot be copied")?;
    // It is made all the same if this fails: cargo says why when it is built.
    let _ = cargo()
        .args(["metadata", "--format-version=1", "--offline", "--manifest-path"])
        .arg(absolute(&dir.join("Cargo.toml")))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    // The project's name decides how its sources are laid out; where there is no rustfmt they are as they are.
    let _ = cargo()
        .args(["fmt", "--all", "--manifest-path"])
        .arg(absolute(&dir.join("Cargo.toml")))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    println!("{} is made. There:", dir.display());
    println!("  cargo run           # boots it on QEMU");
    println!("  cargo test          # runs its tests, in the booted kernel and on this machine");
    println!(
        "  cargo xtask help    # lists what else there is: benchmarks, a card's image, a board's serial line, lints"
    );
    Ok(SUCCESS)
}

/// Where one of Magpie's packages is, as a manifest says it.
fn source(options: &Options, folder: &str) -> Result<String> {
    if options.registry {
        return Ok(format!("version = \"{}\"", env!("CARGO_PKG_VERSION")));
    }
    let Some(url) = &options.git else {
        let path = root().join(folder);
        return Ok(format!("path = \"{}\"", quotable(path.to_str(), "the path of this tree; move it")?));
    };
    let mut source = format!("git = \"{}\"", quotable(Some(url), "--git")?);
    for (key, value) in [("rev", &options.rev), ("branch", &options.branch)] {
        if let Some(value) = value {
            source.push_str(&format!(", {key} = \"{}\"", quotable(Some(value), key)?));
        }
    }
    Ok(source)
}

/// What may stand between quotes in a manifest.
fn quotable<'a>(text: Option<&'a str>, what: &str) -> Result<&'a str> {
    let fits =
        |text: &&str| !text.is_empty() && !text.contains(['"', '\\']) && !text.contains(char::is_control);
    text.filter(fits).ok_or_else(|| usage(format!("what is given does not fit into a manifest: {what}")))
}

/// The package's name, which must be one that cargo takes and that is no keyword or known crate in the sources made.
fn name_of(options: &Options) -> Result<String> {
    let given = options.name.clone().or_else(|| {
        let folder = options.dir.components().next_back()?;
        Some(folder.as_os_str().to_str()?.to_owned())
    });
    let name = given.unwrap_or_default();
    let begins_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
    if !begins_well || !is_plain {
        return Err(usage(format!(
            "'{name}' is no name for a project: give --name with small letters, digits and - (a letter first)"
        )));
    }
    const TAKEN: [&str; 11] =
        ["magpie", "xtask", "core", "alloc", "std", "test", "kernel", "host", "crate", "self", "super"];
    if TAKEN.contains(&name.as_str()) || name.starts_with("magpie-") || name.starts_with("magpie_") {
        return Err(usage(format!(
            "the name '{name}' means something else to the compiler: give another with --name"
        )));
    }
    Ok(name)
}

/// Whether a folder, which need not exist yet, is somewhere in another.
fn is_in(folder: &Path, other: &Path) -> bool {
    // Links and dots can be followed only in what there is.
    let there = absolute(folder).ancestors().find_map(|folder| folder.canonicalize().ok());
    there.zip(other.canonicalize().ok()).is_some_and(|(there, other)| there.starts_with(other))
}

/// Makes the folder, or takes one that is empty.
fn make_folder(dir: &Path) -> Result<()> {
    match fs::read_dir(dir) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(usage(format!("{} is not empty: give a new folder", dir.display()))),
        },
        Err(_) if dir.exists() => Err(usage(format!("{} is no folder: give a new one", dir.display()))),
        Err(_) => fs::create_dir_all(dir).map_err(|error| {
            usage(format!("{} cannot be made ({error}): give another folder", dir.display()))
        }),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Options, execute, is_in, name_of, root, source};
    use crate::failure::{USAGE, status_of};
    use std::fs;
    use std::path::Path;

    fn options(dir: &Path, name: Option<&str>) -> Options {
        let name = name.map(str::to_owned);
        Options { dir: dir.into(), name, git: None, rev: None, branch: None, registry: false }
    }

    #[test]
    fn magpie_is_found_by_path_git_or_registry() {
        let mut options = options("x".as_ref(), None);
        let path = source(&options, "magpie").unwrap();
        assert!(path.starts_with("path = \"/") && path.ends_with("/magpie\""), "{path}");
        options.git = Some("https://example.org/magpie".into());
        options.branch = Some("next".into());
        assert_eq!(
            source(&options, "magpie").unwrap(),
            "git = \"https://example.org/magpie\", branch = \"next\""
        );
        options.git = Some("a\"b".into());
        assert_eq!(status_of(&source(&options, "magpie").unwrap_err()), USAGE);
        options.registry = true;
        assert_eq!(
            source(&options, "magpie").unwrap(),
            concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"")
        );
    }

    fn named(dir: &str, name: Option<&str>) -> Result<String, u8> {
        let options = options(dir.as_ref(), name);
        name_of(&options).map_err(|error| status_of(&error))
    }

    #[test]
    fn the_folder_names_the_project() {
        assert_eq!(named("/tmp/my-app", None), Ok("my-app".into()));
        assert_eq!(named("some/where/", None), Ok("where".into()));
        assert_eq!(named("My App", Some("my-app")), Ok("my-app".into()));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for name in ["", "1st", "My-App", "a b", "\u{e4}", "a\"b", "magpie", "kernel", "magpie-test", "-x"] {
            assert_eq!(named("x", Some(name)), Err(USAGE), "{name}");
        }
        assert_eq!(named("/", None), Err(USAGE));
        assert_eq!(named("..", None), Err(USAGE));
    }

    #[test]
    fn a_folder_in_this_tree_is_refused() {
        let inside = root().join("target/../no/such/app");
        assert_eq!(status_of(&execute(&options(&inside, Some("app"))).unwrap_err()), USAGE);
        assert!(!root().join("no").exists(), "something was written");
        assert!(is_in(root(), root()) && is_in(&root().join("a"), root()));
        let beside = root().join("../a");
        assert!(!is_in(&beside, root()) && !is_in(Path::new("/"), root()), "{beside:?}");
    }

    #[test]
    fn what_is_there_is_left_alone() {
        let dir = std::env::temp_dir().join(format!("magpie-new-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("mine"), "precious").unwrap();
        let refused = execute(&options(&dir, Some("app"))).unwrap_err();
        assert_eq!(status_of(&refused), USAGE);
        let refused = execute(&options(&dir.join("mine"), Some("app"))).unwrap_err();
        assert_eq!(status_of(&refused), USAGE);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "something was written");
        assert_eq!(fs::read_to_string(dir.join("mine")).unwrap(), "precious");
        fs::remove_dir_all(&dir).unwrap();
    }
}
