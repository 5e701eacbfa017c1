//! The main job: the example `wordcount` counts a file that the host hands over, and its result equals the
//! host's own count.

use super::reference::Count;
use super::text::large_text;
use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, bail, ensure};
use std::fs;

const EXAMPLE: &str = "wordcount";
/// 24 MB.
const LARGE_BYTES: usize = 24_000_000;

pub const CASES: &[Case] = &[
    ("wordcount::large_file_equals_the_hosts_count", large_file),
    ("wordcount::small_file_on_one_core", small_file),
    ("wordcount::the_text_that_ships", shipped_text),
    ("wordcount::a_file_without_bytes", |bench| compare(bench, "empty", b"", &["--smp", "4"])),
];

fn large_file(bench: &Bench<'_>) -> Result<Outcome> {
    compare(bench, "large", &large_text(LARGE_BYTES), &["--smp", "4"])
}

fn small_file(bench: &Bench<'_>) -> Result<Outcome> {
    // No end of line at the end, two separators at the start, a word of every allowed kind of byte.
    let text = "\n\n--Don't panic: caf\u{e9} 42 DON'T x".as_bytes();
    compare(bench, "small", text, &["--smp", "1"])
}

fn shipped_text(bench: &Bench<'_>) -> Result<Outcome> {
    let Ok(folder) = bench.workspace.application(EXAMPLE) else { return missing() };
    let text = fs::read(folder.join("input.txt")).context("the example has no input.txt")?;
    // No --input: the default is what is tested.
    let said = run(bench, &[])?;
    check(&said.text(), &Count::of(&text))?;
    Ok(Outcome::Passed)
}

fn missing() -> Result<Outcome> {
    Ok(Outcome::Skipped(format!("there is no application '{EXAMPLE}'")))
}

/// Counts a text in the guest and on the host.
pub(super) fn compare(bench: &Bench<'_>, name: &str, text: &[u8], arguments: &[&str]) -> Result<Outcome> {
    if bench.workspace.application(EXAMPLE).is_err() {
        return missing();
    }
    let path = bench.folder.join(format!("{name}.txt"));
    fs::write(&path, text).context("cannot write the text")?;
    let shown = path.to_string_lossy();
    let said = run(bench, &[arguments, &["--input", &shown]].concat())?;
    check(&said.text(), &Count::of(text))?;
    fs::remove_file(&path).context("cannot remove the text")?;
    Ok(Outcome::Passed)
}

fn run(bench: &Bench<'_>, arguments: &[&str]) -> Result<Said> {
    let mut command = tool()?;
    command.args(["qemu", EXAMPLE, "--no-install", "--timeout", &bench.limit.as_secs().to_string()]);
    command.args(arguments);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    Ok(said)
}

/// Compares what the guest printed with the host's count. Words with equal counts may come in any order.
fn check(printed: &str, count: &Count) -> Result<()> {
    let expected = [
        ("words", count.words),
        ("lines", count.lines),
        ("bytes", count.bytes),
        ("distinct", count.each.len() as u64),
    ];
    for (key, value) in expected {
        let found = printed.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        let Some(found) = found else { bail!("the guest printed no '{key}'\n{printed}") };
        ensure!(found.trim() == value.to_string(), "{key}: the guest counted {found}, the host {value}");
    }
    let top: Vec<(u64, &str)> = printed.lines().filter_map(top_line).collect();
    for (number, word) in &top {
        let actual = count.each.get(word.as_bytes()).copied().unwrap_or(0);
        ensure!(actual == *number, "'{word}': the guest counted {number}, the host {actual}");
    }
    let counts: Vec<u64> = top.iter().map(|(number, _)| *number).collect();
    let expected = count.top_ten_counts();
    ensure!(counts == expected, "the ten most frequent: the guest has {counts:?}, the host {expected:?}");
    Ok(())
}

/// Reads `  <count> <word>`.
fn top_line(line: &str) -> Option<(u64, &str)> {
    let (number, word) = line.strip_prefix("  ")?.trim_start().split_once(' ')?;
    // The statistics' table has more than two columns.
    (!word.contains(' ')).then_some((number.parse().ok()?, word))
}

#[cfg(test)]
mod tests {
    use super::{Count, check};

    const TEXT: &[u8] = b"b a b\na b c\n";
    const PRINTED: &str =
        "words: 6\nlines: 2\nbytes: 12\ndistinct: 3\ntop:\n  3 b\n  2 a\n  1 c\n  0 12 13 table\n";

    #[test]
    fn an_equal_count_is_accepted() {
        check(PRINTED, &Count::of(TEXT)).unwrap();
    }

    #[test]
    fn every_difference_is_found() {
        for (from, to) in [
            ("words: 6", "words: 7"),
            ("lines: 2\n", ""),
            ("bytes: 12", "bytes: 1"),
            ("distinct: 3", "distinct: 4"),
            ("  3 b", "  4 b"),
            ("  2 a\n", ""),
            ("  1 c", "  1 d"),
        ] {
            assert!(check(&PRINTED.replace(from, to), &Count::of(TEXT)).is_err(), "{from} -> {to}");
        }
    }
}
