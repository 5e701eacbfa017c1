//! The bar of `cargo xtask test`: on a terminal it is there, with what runs; a pipe gets the lines alone.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, ensure};
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::Read;
use std::process::Command;
use std::thread;

pub const CASES: &[Case] = &[
    ("progress::a_terminal_shows_a_bar", terminal),
    ("progress::a_dumb_terminal_shows_none", dumb_terminal),
    ("progress::a_pipe_gets_the_lines_alone", pipe),
];

/// A run of the tests that takes a second or two.
fn short_run() -> Result<Command> {
    let mut command = tool()?;
    command.args(["test", "--kernel", "boot", "--smp", "1", "--filter", "machine", "--no-install"]);
    Ok(command)
}

/// What only the bar has.
const BAR: &str = "kernel boot, 1 core (";
/// What is printed in any case.
const LINE: &str = "kernel boot, 1 core: ";

/// Tells a terminal to empty the line.
const WIPED: &str = "\u{1b}[2K";

/// What a terminal of that kind gets to see, and the status.
fn on_terminal(kind: &str) -> Result<Said> {
    let size = Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    let pair = openpty(Some(&size), None).context("there is no terminal to be had")?;
    let mut screen = File::from(pair.master);
    let reader = thread::spawn(move || {
        let mut seen = Vec::new();
        // Linux says so when nobody has the other end any more.
        let _ = screen.read_to_end(&mut seen);
        seen
    });
    let mut command = short_run()?;
    command.env("TERM", kind).stdout(pair.slave.try_clone()?).stderr(pair.slave);
    let status = command.status().context("this tool cannot start itself")?.code();
    // It holds the other end.
    drop(command);
    let out = reader.join().map_err(|_| anyhow::anyhow!("the reading thread panicked"))?;
    Ok(Said { status, out, err: String::new() })
}

fn terminal(_: &Bench<'_>) -> Result<Outcome> {
    let said = on_terminal("xterm")?;
    said.expect_status(0)?;
    let text = said.text();
    ensure!(text.contains(BAR) && text.contains(" of "), "there is no bar:\n{text:?}");
    ensure!(text.contains(LINE), "the result is missing:\n{text:?}");
    // A line begins where the bar was wiped away, not behind it.
    let is_clean = |(at, _): (usize, &str)| text[..at].ends_with(['\n', '\r', 'K', 'm']);
    ensure!(text.match_indices(LINE).all(is_clean), "the bar and the lines mix:\n{text:?}");
    // What is left in the last line, once everything in it was wiped away that was to be.
    let last = text.trim_end().lines().last().unwrap_or_default().rsplit(WIPED).next().unwrap_or_default();
    ensure!(last.contains(" passed, 0 failed") && !last.contains('['), "the last line is {last:?}");
    Ok(Outcome::Passed)
}

fn dumb_terminal(_: &Bench<'_>) -> Result<Outcome> {
    let said = on_terminal("dumb")?;
    said.expect_status(0)?;
    let text = said.text();
    ensure!(!text.contains(BAR) && text.contains(LINE), "there is a bar, or no result:\n{text:?}");
    Ok(Outcome::Passed)
}

fn pipe(_: &Bench<'_>) -> Result<Outcome> {
    let mut command = short_run()?;
    command.env("TERM", "xterm");
    let said = Said::of(command)?;
    said.expect_status(0)?;
    ensure!(!said.err.contains(BAR) && !said.text().contains(BAR), "there is a bar:\n{}", said.err);
    ensure!(!said.text().contains(['\r', '\u{1b}']), "the output is not plain:\n{:?}", said.text());
    Ok(Outcome::Passed)
}
