//! `cargo xtask image`: makes the image of a bootable SD card.

use crate::build::{Board, Workspace};
use crate::card::{self, image};
use crate::failure::{SUCCESS, usage};
use crate::setup::{Install, ready_target};
use anyhow::{Context, Result};
use clap::Args;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

/// What goes onto a card.
#[derive(Args)]
pub struct Card {
    /// The application to put on the card, or `loader`, which takes kernels by `push` [default: the only one, or the
    /// workspace's choice]
    pub app: Option<String>,
    /// The board
    #[arg(long, default_value_t = Board::Rpi4)]
    pub board: Board,
    /// The file that the kernel processes [default: the application's own input.txt, if it has one]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Where start4.elf, fixup4.dat and bcm2711-rpi-4-b.dtb are [default: where distributions put them]
    #[arg(long, value_name = "FOLDER")]
    pub firmware: Option<PathBuf>,
    /// Never install or download anything: stop with status 2 when something is missing
    #[arg(long)]
    pub no_install: bool,
}

impl Card {
    /// Builds what is asked for, and gathers the card's files.
    pub fn gather(&self) -> Result<card::Contents> {
        if self.board != Board::Rpi4 {
            return Err(usage("only --board rpi4 boots from a card; for virt use: cargo xtask qemu"));
        }
        let install = Install::unless(self.no_install);
        ready_target(install)?;
        let workspace = Workspace::load()?;
        card::gather(
            &workspace,
            self.app.as_deref(),
            self.input.as_deref(),
            self.firmware.as_deref(),
            install,
        )
    }
}

/// What `cargo xtask image` accepts.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    card: Card,
    /// Where to write the image [default: card.img in the target folder]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    if let Some(output) = &options.output {
        check(output)?;
    }
    let contents = options.card.gather()?;
    let output = match &options.output {
        Some(output) => output.clone(),
        None => Workspace::load()?.target().join("card.img"),
    };
    let bytes = write(&contents, &output)?;
    println!("{}: {} MiB, with", output.display(), bytes >> 20);
    for (name, content) in &contents.0 {
        println!("  {name} ({} bytes)", content.len());
    }
    Ok(SUCCESS)
}

/// Whether an image may go there: to a new name, or in place of a file.
fn check(output: &Path) -> Result<()> {
    let shown = output.display();
    match std::fs::metadata(output) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(usage(format!(
            "{shown} is no file; give a file or a new name (a card is written by: cargo xtask flash)"
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match folder(output).is_dir() {
            true if output.file_name().is_some() => Ok(()),
            _ => Err(usage(format!("{shown} cannot be made: there is no folder for it"))),
        },
        Err(error) => Err(usage(format!("{shown} cannot be looked at: {error}"))),
    }
}

fn folder(output: &Path) -> &Path {
    output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes the image beside `output`, and puts it in that place when it is whole: what is there stays until then.
fn write(contents: &card::Contents, output: &Path) -> Result<u64> {
    // In place of what a link leads to, not of the link.
    let output = std::fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let part = folder(&output).join(format!(".{name}.{}.part", std::process::id()));
    let written = write_new(contents, &part).and_then(|bytes| {
        std::fs::rename(&part, &output).with_context(|| format!("cannot write {}", output.display()))?;
        Ok(bytes)
    });
    if written.is_err() {
        // It may not have come into being.
        let _ = std::fs::remove_file(&part);
    }
    written
}

fn write_new(contents: &card::Contents, part: &Path) -> Result<u64> {
    let bytes = image::size(contents);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(part)
        .with_context(|| format!("cannot make {}", part.display()))?;
    // A file with a hole: what is not written takes no room.
    file.set_len(bytes).with_context(|| format!("cannot make {} that long", part.display()))?;
    image::write(&mut file, bytes, contents, card::Moment::now()?)?;
    file.sync_all().with_context(|| format!("cannot write {}", part.display()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{check, write};
    use crate::card::Contents;
    use crate::failure::{USAGE, status_of};
    use std::fs;
    use std::path::Path;

    fn contents(bytes: usize) -> Contents {
        Contents(vec![("kernel8.img".into(), vec![7; bytes])])
    }

    #[test]
    fn what_is_no_file_is_refused_and_stays() {
        for there in ["/dev/null", "/dev/full", "/", ".", "/no/such/folder/card.img"] {
            let error = check(Path::new(there)).unwrap_err();
            assert_eq!(status_of(&error), USAGE, "{there}: {error:#}");
        }
        assert!(Path::new("/dev/null").exists());
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let folder = std::env::temp_dir().join(format!("magpie-image-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let output = folder.join("card.img");
        fs::write(&output, "precious").unwrap();
        // Two files of one name.
        let mut twice = contents(100);
        twice.0.push(("KERNEL8.IMG/x".into(), vec![1]));
        assert!(write(&twice, &output).is_err());
        assert_eq!(fs::read(&output).unwrap(), b"precious");
        let bytes = write(&contents(100), &output).unwrap();
        assert_eq!(fs::metadata(&output).unwrap().len(), bytes);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
        fs::remove_dir_all(&folder).unwrap();
    }
}
