//! Writes decoded output for a person, at once and line by line.

use super::split::is_readable;
use super::{Notice, Output};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

/// Writes one piece of output. Text passes byte for byte, but for what noise on the line would do to a terminal; the tool's
/// own remarks go to standard error so that a program's output can be taken from a pipe.
pub fn show(output: &Output, out: &mut dyn Write) -> io::Result<()> {
    match output {
        Output::Text(line) => {
            show_text(line, out)?;
            out.write_all(b"\n")?;
        }
        Output::Part(part) => show_text(part, out)?,
        Output::Log(line) => writeln!(out, "{line}")?,
        // Who wants them asks for them.
        Output::Record(..) => {}
        Output::Notice(notice) => show_notice(notice, out)?,
        Output::Warning(warning) => {
            out.flush()?;
            eprintln!("xtask: warning: {warning}");
        }
    }
    out.flush()
}

fn show_text(text: &[u8], out: &mut dyn Write) -> io::Result<()> {
    match io::stdout().is_terminal() && !is_readable(text) {
        true => out.write_all(escaped(text).as_bytes()),
        false => out.write_all(text),
    }
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

/// The text with its bytes that are none, and its control characters, by their numbers.
fn escaped(line: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in line.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c.is_control() && c != '\t' {
                true => shown.extend(c.escape_default()),
                false => shown.push(c),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn noise_is_shown_by_its_numbers() {
        assert_eq!(escaped(b"a\tb\x1b[2J\x07\xff caf\xc3\xa9"), "a\tb\\u{1b}[2J\\u{7}\\xff caf\u{e9}");
    }
}
