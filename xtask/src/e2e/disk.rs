//! A disk of the guest's: what an application keeps there is there again, however the machine ends.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

pub const CASES: &[Case] = &[
    ("disk::what_is_kept_is_there_again", kept),
    ("disk::the_power_fails_at_any_moment", cut),
    ("disk::what_is_no_disk_is_refused", refused),
];

fn blank(bench: &Bench<'_>, name: &str) -> Result<std::path::PathBuf> {
    let file = bench.folder.join(name);
    let made = File::create(&file).and_then(|made| made.set_len(1 << 20));
    made.context("cannot make a disk")?;
    Ok(file)
}

fn journal(disk: &Path, more: &[&str]) -> Result<std::process::Command> {
    let mut command = tool()?;
    command.args(["qemu", "journal", "--no-install", "--random", "--disk"]).arg(disk).args(more);
    Ok(command)
}

fn kept(bench: &Bench<'_>) -> Result<Outcome> {
    // On one core, and on sixteen, which have another interrupt controller.
    for cores in ["1", "16"] {
        let disk = blank(bench, &format!("kept-{cores}"))?;
        for start in 0..3 {
            let said = Said::of(journal(&disk, &["--smp", cores])?)?;
            said.expect_status(0)?
                .expect_line(&format!("started {start} times before, counted to {}", start * 5))?
                .expect_line(&format!("{} lasts", start * 5 + 5))?;
        }
    }
    let mut without = tool()?;
    without.args(["qemu", "journal", "--no-install"]);
    Said::of(without)?
        .expect_status(1)?
        .expect_line("error: there is no disk: cargo xtask qemu journal --disk FILE")?;
    Ok(Outcome::Passed)
}

/// Ends QEMU while the application counts: what it said lasts is there at the next start. `MAGPIE_CUTS` says how often.
fn cut(bench: &Bench<'_>) -> Result<Outcome> {
    let cuts = std::env::var("MAGPIE_CUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(15_u64);
    let disk = blank(bench, "cut")?;
    let mut lasts = 0;
    for cut in 0..cuts {
        let cores = ["1", "4"][cut as usize % 2];
        // Any moment: while an entry is written, and while it is begun anew, which is every thirty-two.
        let after = Duration::from_micros(cut * 7919 % 100_000);
        // The one before may have the file for a moment still: QEMU ends a little later than the tool.
        let counts = (0..5).find_map(|_| count(&disk, cores, after).transpose());
        let (counted, last) = counts.with_context(|| format!("start {cut} did not say what is there"))??;
        // What it said last may have ended with the tool.
        ensure!(counted >= lasts, "cut {cut}: {lasts} was said to last, {counted} is there");
        lasts = last.unwrap_or(counted);
    }
    ensure!(lasts > 0, "nothing was ever kept in {cuts} starts");
    Ok(Outcome::Passed)
}

/// Starts the application and ends it after so long. What it found there, and what it said last; `None` if it did not come so far.
fn count(disk: &Path, cores: &str, after: Duration) -> Result<Option<(u64, Option<u64>)>> {
    let mut command = journal(disk, &["--smp", cores, "--append", "entries=1000000000"])?;
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.context("cannot start")?;
    let mut lines = BufReader::new(child.stdout.take().context("there is no output")?).lines();
    let counted = lines.by_ref().map_while(Result::ok).find_map(|line| {
        line.strip_prefix("started ")?.split_once(" times before, counted to ")?.1.parse::<u64>().ok()
    });
    let ended = thread::spawn(move || {
        thread::sleep(after);
        // QEMU ends with the tool.
        child.kill().and_then(|()| child.wait())
    });
    let said = lines.map_while(Result::ok).filter_map(|line| line.strip_suffix(" lasts")?.parse().ok());
    let last = said.last();
    ended.join().map_err(|_| anyhow::anyhow!("the thread panicked"))?.context("it was not ended")?;
    Ok(counted.map(|counted| (counted, last)))
}

fn refused(bench: &Bench<'_>) -> Result<Outcome> {
    let part = bench.folder.join("part");
    fs::write(&part, [0; 700]).context("cannot write a file")?;
    for (file, says) in
        [(bench.folder.join("nowhere"), "cannot write to the disk"), (part, "no file of whole sectors")]
    {
        let mut command = tool()?;
        command.args(["qemu", "hello", "--no-install", "--disk"]).arg(&file);
        let said = Said::of(command)?;
        said.expect_status(2)?;
        ensure!(said.err.contains(says) && said.err.contains("truncate -s 16M"), "{file:?}: {}", said.err);
    }
    let mut board = tool()?;
    board.args(["qemu", "hello", "--no-install", "--board", "rpi4", "--disk"]).arg(blank(bench, "board")?);
    Said::of(board)?
        .expect_status(2)?
        .expect_error("xtask: --disk is for virt: QEMU's raspi4b has no devices of virtio")?;
    Ok(Outcome::Passed)
}
