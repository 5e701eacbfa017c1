//! `cargo xtask flash`: writes an SD card, or copies the files onto one that is mounted.

use super::image::Card;
use crate::card::device::{OpenCard, System, check_is_device};
use crate::card::flash::{self, Phase, check_size, write_and_verify};
use crate::card::{Moment, folder, image};
use crate::failure::{SUCCESS, usage};
use anyhow::{Context, Result};
use clap::Args;
use std::io::{self, BufRead, Cursor, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// What `cargo xtask flash` accepts.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    card: Card,
    /// The card's device, like /dev/sdb; everything on it is overwritten
    #[arg(long, value_name = "DEVICE", required_unless_present = "dir", conflicts_with = "dir")]
    device: Option<PathBuf>,
    /// Copy the files into this folder, where a card is mounted; nothing else on it is touched
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Do not ask before writing
    #[arg(long)]
    yes: bool,
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    match (&options.device, &options.dir) {
        (Some(device), _) => write_device(options, device),
        (None, Some(dir)) => {
            // Before anything is installed or built.
            folder::check(dir)?;
            folder::copy(&options.card.gather()?, dir)?;
            println!("done; unmount the card before you take it out");
            Ok(SUCCESS)
        }
        (None, None) => Err(usage("give --device or --dir")),
    }
}

fn write_device(options: &Options, device: &Path) -> Result<u8> {
    if !cfg!(target_os = "linux") {
        return Err(usage(
            "writing a card works on Linux; elsewhere make an image (cargo xtask image) and write it with a tool \
             of the system",
        ));
    }
    // What is wrong with the device is said before anything is built.
    check_is_device(device)?;
    let card = System::default().card(device)?;
    let contents = options.card.gather()?;
    let bytes = image::size(&contents);
    check_size(card.bytes, bytes)?;
    println!("{}: {}, {} MiB", device.display(), card.model, card.bytes >> 20);
    if !options.yes {
        confirm(device)?;
    }
    let mut disk =
        Cursor::new(vec![0; usize::try_from(bytes).context("the image does not fit into memory")?]);
    image::write(&mut disk, bytes, &contents, Moment::now()?)?;
    // Again, for it may have been mounted while the image was made.
    let card = System::default().card(device)?;
    let mut open = OpenCard::open(&card)?;
    let mut progress = Progress { shown: None, of: bytes };
    write_and_verify(&mut open, disk.get_ref(), &mut |phase, done| progress.show(phase, done))?;
    println!("done: {} MiB written and read back; the card can be taken out", bytes >> 20);
    Ok(SUCCESS)
}

fn confirm(device: &Path) -> Result<()> {
    if !io::stdin().is_terminal() {
        return Err(usage(
            "nobody can be asked, for the input is no terminal; give --yes to write without asking",
        ));
    }
    print!("Everything on it will be lost. Type {} to write: ", device.display());
    io::stdout().flush().context("the question cannot be written")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("no answer")?;
    if Path::new(answer.trim()) == device {
        return Ok(());
    }
    Err(usage("nothing was written"))
}

struct Progress {
    shown: Option<(Phase, u64)>,
    of: u64,
}

impl Progress {
    /// A line that is written over on a terminal, and one for every tenth elsewhere.
    fn show(&mut self, phase: Phase, done: u64) {
        let percent = done * 100 / self.of.max(1);
        let terminal = io::stderr().is_terminal();
        let step = if terminal { percent } else { percent / 10 * 10 };
        if self.shown == Some((phase, step)) {
            return;
        }
        self.shown = Some((phase, step));
        let what = if phase == flash::Phase::Writing { "writing" } else { "reading back" };
        if terminal {
            eprint!("\r{what}: {percent:>3} %  {}", if percent == 100 { "\n" } else { "" });
        } else {
            eprintln!("{what}: {step} %");
        }
    }
}
