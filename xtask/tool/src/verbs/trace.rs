//! `cargo xtask trace`: runs an application on QEMU, shows what it prints, and writes a file of what has happened on each core, which
//! <https://ui.perfetto.dev> opens.

use super::qemu;
use crate::build::check_output;
use crate::stream::{Output, show};
use crate::trace::{Record, Recording, perfetto, tape, values::Values};
use anyhow::{Context, Result};
use clap::Args;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// What `cargo xtask trace` accepts.
#[derive(Args)]
#[group(id = "trace")]
pub struct Options {
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "magpie.pftrace")]
    output: PathBuf,
    /// Write what was sent to a file, too, for `report` and `top --replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    qemu: qemu::Options,
}

/// Runs the verb.
pub fn execute(options: Options) -> Result<u8> {
    let Options { output: path, record, qemu } = options;
    check_output(&path)?;
    let mut recorder = record.as_deref().map(tape::Writer::create).transpose()?;
    let mut recorded = Ok(());
    let mut recording = Recording::default();
    let mut waiting = Vec::new();
    let mut out = io::stdout().lock();
    let status = qemu::hear(qemu, "trace series=0.01", &mut |output| match output {
        Output::Record(sequence, record, frame) => {
            if let Some(recorder) = &mut recorder
                && recorded.is_ok()
            {
                recorded = recorder.take(&frame);
            }
            if let Record::Values(core, values) = &record
                && let Some(values) = Values::of(values)
            {
                waiting.push((*core, values.at(), values.waiting().iter().sum()));
            }
            recording.take(sequence, record);
            ControlFlow::Continue(())
        }
        // Who does not read the text may want the file.
        output => {
            let _ = show(&output, &mut out);
            ControlFlow::Continue(())
        }
    })?;
    recorded?;
    recorder.map_or(Ok(()), tape::Writer::finish)?;
    let (file, drawn) = perfetto::draw(&recording, &waiting);
    std::fs::write(&path, &file).with_context(|| format!("cannot write {}", path.display()))?;
    let perfetto::Drawn { turns, thefts, mailbox_thefts, arrows, arrows_left_out } = drawn;
    eprintln!(
        "xtask: {}: {turns} turns, {thefts} processes and {mailbox_thefts} mailboxes stolen, {arrows} arrows, {arrows_left_out} left out; \
         open it at https://ui.perfetto.dev",
        path.display()
    );
    let Recording { overwritten, missing_frames, .. } = recording;
    if overwritten > 0 || missing_frames > 0 {
        eprintln!(
            "xtask: {overwritten} events were overwritten before they were sent, {missing_frames} frames are missing"
        );
    }
    Ok(status)
}
