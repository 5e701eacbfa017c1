//! The board's firmware, which is not ours to ship: its licence allows use on a Raspberry Pi, and it is found in a
//! folder that the user names, where distributions put it, or in the distribution's package.

use crate::build::Workspace;
use crate::failure::usage;
use crate::setup::Install;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The second-stage loader and its data: a matched pair, so both come from one place.
const LOADER: [&str; 2] = ["start4.elf", "fixup4.dat"];
/// The board's device tree.
const TREE: &str = "bcm2711-rpi-4-b.dtb";
/// Where distributions put them.
const USUAL_PLACES: [&str; 3] = ["/usr/lib/raspi-firmware", "/boot/firmware", "/boot"];
/// Below these, kernels have their device trees.
const KERNELS: &str = "/usr/lib";
const PACKAGE: &str = "raspi-firmware";

/// The firmware's files.
pub fn find(
    workspace: &Workspace,
    folder: Option<&Path>,
    install: Install,
) -> Result<Vec<(String, Vec<u8>)>> {
    let unpacked = workspace.target().join(PACKAGE);
    let places = match folder {
        Some(folder) => vec![folder.to_owned()],
        None => {
            let mut places: Vec<PathBuf> = USUAL_PLACES.iter().map(PathBuf::from).collect();
            places.extend(device_trees(Path::new(KERNELS)));
            places.push(unpacked.join("usr/lib/raspi-firmware"));
            places
        }
    };
    if folder.is_none() && together(&places).is_none() && install == Install::Allowed {
        // A package that cannot be had is no error yet: what is missing is said below.
        if let Err(error) = unpack_package(&unpacked) {
            eprintln!("xtask: the package {PACKAGE} is not to be had ({error:#})");
        }
    }
    let tree = places.iter().find(|place| place.join(TREE).is_file());
    let missing: Vec<&str> = match (together(&places), tree) {
        (Some(loader), Some(tree)) => {
            let files = LOADER.iter().map(|name| (*name, loader)).chain([(TREE, tree)]);
            return files.map(|(name, place)| Ok((name.to_owned(), read(&place.join(name))?))).collect();
        }
        (None, Some(_)) => LOADER.to_vec(),
        (Some(_), None) => vec![TREE],
        (None, None) => LOADER.into_iter().chain([TREE]).collect(),
    };
    let searched: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    Err(usage(format!(
        "the Raspberry Pi's firmware is not complete: {} not found in {}; get {} from \
         https://github.com/raspberrypi/firmware (folder boot, branch stable), put them into one folder, and give \
         --firmware FOLDER",
        missing.join(", "),
        searched.join(", "),
        [LOADER[0], LOADER[1], TREE].join(", "),
    )))
}

/// The first place with both halves of the loader.
fn together(places: &[PathBuf]) -> Option<&PathBuf> {
    places.iter().find(|place| LOADER.iter().all(|name| place.join(name).is_file()))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// `/usr/lib/linux-image-*/broadcom`.
fn device_trees(below: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(below) else { return Vec::new() };
    let names =
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("linux-image-"));
    let mut folders: Vec<_> = names.map(|entry| entry.path().join("broadcom")).collect();
    // The newest kernel's, whatever order the folder is in.
    folders.sort_unstable_by(|a, b| b.cmp(a));
    folders
}

/// Downloads the distribution's package and unpacks it below the target folder. Not installed: that would put
/// hooks for the kernels of this machine in place.
fn unpack_package(into: &Path) -> Result<()> {
    fs::create_dir_all(into).with_context(|| format!("cannot make {}", into.display()))?;
    run(Command::new("apt-get").args(["download", PACKAGE]).current_dir(into))?;
    let entries = fs::read_dir(into).with_context(|| format!("cannot read {}", into.display()))?;
    let package =
        entries.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "deb"));
    let package = package.context("nothing was downloaded")?;
    run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(into))
}

fn run(command: &mut Command) -> Result<()> {
    eprintln!("xtask: {command:?}");
    let output = command.output().context("it cannot be started")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}", said.trim().lines().last().unwrap_or("no reason given"));
    }
    Ok(())
}
