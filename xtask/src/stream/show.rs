//! Writes decoded output for a person, at once and line by line.

use super::{Notice, Output};
use std::io::{self, Write};

/// Writes one piece of output. Text passes byte for byte; the tool's own remarks go to standard error so
/// that a program's output can be taken from a pipe.
pub fn show(output: &Output, out: &mut dyn Write) -> io::Result<()> {
    match output {
        Output::Text(line) => {
            out.write_all(line)?;
            out.write_all(b"\n")?;
        }
        Output::Log(line) => writeln!(out, "{line}")?,
        Output::Notice(notice) => show_notice(notice, out)?,
        Output::Warning(warning) => {
            out.flush()?;
            eprintln!("xtask: warning: {warning}");
        }
    }
    out.flush()
}

fn show_notice(notice: &Notice, out: &mut dyn Write) -> io::Result<()> {
    match notice {
        Notice::Boot { build, app, board, cores } => {
            let s = if *cores == 1 { "" } else { "s" };
            writeln!(out, "--- Magpie: {app} on {board}, {cores} core{s}, build {build:016x} ---")
        }
        Notice::TestStart(name) => writeln!(out, "test {name} ..."),
        Notice::TestOk(name, time) => writeln!(out, "test {name}: ok ({} ms)", time.as_millis()),
        Notice::TestFail(name, reason) => writeln!(out, "test {name}: FAILED: {reason}"),
        Notice::TestSkip(name, reason) => writeln!(out, "test {name}: skipped: {reason}"),
        Notice::TestDone(passed, failed, skipped) => {
            writeln!(out, "tests: {passed} passed, {failed} failed, {skipped} skipped")
        }
        Notice::Bench(name, figures) => writeln!(out, "bench {name}: {figures}"),
        Notice::TestPanics(text) => writeln!(out, "(it expects a panic of the kernel: {text})"),
        Notice::Panic(message) => writeln!(out, "*** kernel panic: {message}"),
    }
}
