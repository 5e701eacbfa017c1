//! `cargo xtask image`: makes the image of a bootable SD card.

use crate::build::{Board, Workspace};
use crate::card::{self, image};
use crate::failure::{SUCCESS, usage};
use crate::setup::{Install, ready_target};
use anyhow::{Context, Result};
use clap::Args;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// What goes onto a card.
#[derive(Args)]
pub struct Card {
    /// The example to put on the card: a package below examples/, or `loader`, which takes kernels by `push`
    #[arg(default_value = "wordcount")]
    pub app: String,
    /// The board
    #[arg(long, default_value_t = Board::Rpi4)]
    pub board: Board,
    /// The file that the kernel processes [default: the example's own input.txt, if it has one]
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
        card::gather(&workspace, &self.app, self.input.as_deref(), self.firmware.as_deref(), install)
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
    let contents = options.card.gather()?;
    let output = match &options.output {
        Some(output) => output.clone(),
        None => Workspace::load()?.target().join("card.img"),
    };
    let bytes = write(&contents, &output).inspect_err(|_| {
        // Half an image is worse than none.
        let _ = std::fs::remove_file(&output);
    })?;
    println!("{}: {} MiB, with", output.display(), bytes >> 20);
    for (name, content) in &contents.0 {
        println!("  {name} ({} bytes)", content.len());
    }
    Ok(SUCCESS)
}

fn write(contents: &card::Contents, output: &Path) -> Result<u64> {
    let bytes = image::size(contents);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(output)
        .with_context(|| format!("cannot make {}", output.display()))?;
    // A file with a hole: what is not written takes no room.
    file.set_len(bytes).with_context(|| format!("cannot make {} that long", output.display()))?;
    image::write(&mut file, bytes, contents)?;
    Ok(bytes)
}
