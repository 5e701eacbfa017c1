//! `cargo xtask report`: runs an application on QEMU, or takes what was recorded of a run, and writes a page about it: one file of HTML, for any
//! browser, with nothing in it from elsewhere.

use super::qemu;
use crate::build::check_output;
use crate::failure::SUCCESS;
use crate::report::{Run, page, picture};
use crate::stream::{Notice, Output, show};
use crate::trace::tape;
use anyhow::{Context, Result};
use clap::Args;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What `cargo xtask report` accepts.
#[derive(Args)]
#[group(id = "report")]
pub struct Options {
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Take what `top` or `trace` has recorded, and run nothing
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Also draw each core's load, as a picture by itself, into this file: SVG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    #[command(flatten)]
    qemu: qemu::Options,
}

/// Runs the verb.
pub fn execute(options: Options) -> Result<u8> {
    let Options { output, from, picture: drawn, qemu } = options;
    check_output(&output)?;
    drawn.as_deref().map(check_output).transpose()?;
    let mut run = Run::default();
    let (title, status) = match from {
        Some(path) => {
            for frame in tape::frames(&path)? {
                let (_, sequence, record) = frame?;
                run.take(sequence, record);
            }
            (name_of(&path), SUCCESS)
        }
        None => heard(qemu, &mut run)?,
    };
    run.finish();
    std::fs::write(&output, page(&title, &run))
        .with_context(|| format!("cannot write {}", output.display()))?;
    if let Some(path) = drawn {
        std::fs::write(&path, picture(&title, &run))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    eprintln!(
        "xtask: {}: {} turns, {} crashes; any browser opens it",
        output.display(),
        run.turns.count(),
        run.crashes.len()
    );
    Ok(status)
}

fn name_of(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Boots what the options ask for, and shows what it prints. Its name, and its status.
fn heard(options: qemu::Options, run: &mut Run) -> Result<(String, u8)> {
    let mut title = String::from("a run");
    let mut out = io::stdout().lock();
    let status = qemu::hear(options, "trace series=0.01", &mut |output| {
        match output {
            Output::Record(sequence, record, _) => run.take(sequence, record),
            output => {
                match &output {
                    Output::Notice(Notice::Boot { app, board, cores, .. }) => {
                        title = format!("{app} on {board}, {cores} cores");
                    }
                    Output::Text(line) => run.hear(&String::from_utf8_lossy(line)),
                    _ => {}
                }
                // Who does not read the text may want the page.
                let _ = show(&output, &mut out);
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok((title, status))
}
