//! `cargo xtask push`: builds an application, hands it to the chain loader on a board, and shows what it says.

use super::monitor::{Line, follow};
use crate::build::{Board, Features, Workspace, build_application, write_flat};
use crate::failure::{INTERRUPTED, usage};
use crate::machine::{catch_interrupts, interrupted};
use crate::serial::port;
use crate::serial::push::{Told, push};
use crate::setup::{Install, ready_target};
use anyhow::{Context, Result};
use clap::Args;
use std::fs;
use std::time::Duration;

/// What `cargo xtask push` accepts.
#[derive(Args)]
pub struct Options {
    /// The application to run [default: the only one, or the workspace's choice]
    app: Option<String>,
    #[command(flatten)]
    line: Line,
    /// The board
    #[arg(long, default_value_t = Board::Rpi4)]
    board: Board,
    /// How many seconds to wait for the loader
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    /// Never install anything: stop with status 2 when something is missing
    #[arg(long)]
    no_install: bool,
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    if options.board != Board::Rpi4 {
        return Err(usage("only --board rpi4 has a loader; for virt use: cargo xtask qemu"));
    }
    let workspace = Workspace::load()?;
    let app = workspace.chosen(options.app.as_deref())?;
    ready_target(Install::unless(options.no_install))?;
    let elf = build_application(app, Features { board: Board::Rpi4, ..Features::default() })?;
    let flat = write_flat(&elf)?.flat;
    let kernel = fs::read(&flat).with_context(|| format!("cannot read {}", flat.display()))?;
    catch_interrupts()?;
    let mut port = port::open_now(&options.line.port, options.line.baud)?;
    eprintln!(
        "xtask: waiting for the loader on {}; reset the board now if it runs something else",
        options.line.port
    );
    let mut shown = 0;
    let mut tell = |told: Told| match told {
        Told::Remark(remark) => eprintln!("xtask: {remark}"),
        Told::Progress(done, all) => {
            let tenth = done * 10 / all.max(1);
            if tenth != shown {
                shown = tenth;
                eprintln!("xtask: {} %", tenth * 10);
            }
        }
    };
    let patience = Duration::from_secs(options.wait);
    let arrived = match push(&mut *port, &kernel, patience, &mut tell, &interrupted) {
        Err(_) if interrupted() => {
            eprintln!(
                "xtask: interrupted; the loader keeps what it has, so the next push of this kernel goes on there"
            );
            return Ok(INTERRUPTED);
        }
        result => result?,
    };
    if !arrived.is_certain {
        eprintln!("xtask: the kernel has arrived whole; whether it was started was not heard");
    }
    follow(port, arrived.rest, &options.line, &elf, None, None)
}
