//! `cargo xtask line`: the other end of the serial line that a board has its network on. This machine is 10.0.2.2 there, and the board 10.0.2.15.

use super::monitor::Line;
use crate::failure::{FAILURE, INTERRUPTED};
use crate::machine::{Net, catch_interrupts, interrupted};
use crate::serial::port;
use crate::serial_line::{Ending, Ends, Gateway, open, run};
use anyhow::{Context, Result};
use clap::Args;
use std::thread;
use std::time::Duration;

/// How often it is looked whether a port that vanished is back.
const RETRY: Duration = Duration::from_millis(200);

/// What `cargo xtask line` accepts.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    line: Line,
    /// What comes to a TCP port of this machine goes to a port of the board; may be given several times
    #[arg(long, value_name = "[ADDRESS:]HOST:BOARD")]
    forward: Vec<String>,
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    let Line { port: name, baud, once } = &options.line;
    let net = Net::checked(&options.forward)?;
    catch_interrupts()?;
    let mut line = open(name, *baud).map_err(|error| port::explain(name, &error))?;
    let mut gateway = Gateway::new(&net.forwards)?;
    eprintln!("xtask: this machine is 10.0.2.2 on {name}, and the board 10.0.2.15; Ctrl-C ends it");
    loop {
        let ending = run(&mut *line, &mut gateway, |notice| eprintln!("xtask: {notice}"), interrupted);
        match ending.context("the line cannot be waited for")? {
            Ending::Stopped => return Ok(INTERRUPTED),
            Ending::Gone => eprintln!("xtask: {name} is gone"),
        }
        if *once {
            return Ok(FAILURE);
        }
        let Some(back) = wait_for(name, *baud) else { return Ok(INTERRUPTED) };
        eprintln!("xtask: {name} is back");
        line = back;
    }
}

/// Until it is there again, or Ctrl-C.
fn wait_for(name: &str, baud: u32) -> Option<Box<dyn Ends>> {
    while !interrupted() {
        if let Ok(line) = open(name, baud) {
            return Some(line);
        }
        thread::sleep(RETRY);
    }
    None
}
