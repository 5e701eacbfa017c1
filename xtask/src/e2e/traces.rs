//! Traces, statistics and the live view, from the kernel to the user: what the tool says agrees with what the kernel prints at the end.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, ensure};

pub const CASES: &[Case] = &[
    ("traces::thefts_are_those_of_the_table", thefts),
    ("traces::statistics_are_those_of_the_table", statistics),
];

const EXAMPLE: &str = "wordcount";

/// The numbers in the last line of the table at the end.
fn sums(text: &str) -> Result<Vec<u64>> {
    let line =
        text.lines().rfind(|line| line.trim_start().starts_with("all ")).context("there is no table")?;
    line.split_whitespace().skip(1).map(|word| word.parse().context("no number")).collect()
}

/// The number before a word in the line of the tool's that says what it has drawn.
fn drawn(text: &str, word: &str) -> Result<u64> {
    let line =
        text.lines().find(|line| line.contains("arrows")).context("it does not say what it has drawn")?;
    let words: Vec<_> = line.split_whitespace().collect();
    let at = words
        .iter()
        .position(|found| found.trim_end_matches(',') == word)
        .context("the word is not there")?;
    words[at - 1].parse().with_context(|| format!("no number before {word} in {line}"))
}

fn thefts(bench: &Bench<'_>) -> Result<Outcome> {
    let file = bench.folder.join("run.pftrace");
    let mut command = tool()?;
    command.args(["trace", EXAMPLE, "--no-install", "--smp", "4", "-o"]).arg(&file);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    let text = format!("{}\n{}", said.text(), said.err);
    let sums = sums(&text)?;
    // Where some were overwritten the picture has fewer.
    let is_whole = !text.contains("overwritten");
    for (word, counted) in [("processes", sums[7]), ("mailboxes", sums[4])] {
        let drawn = drawn(&text, word)?;
        ensure!(
            if is_whole { drawn == counted } else { drawn <= counted },
            "{drawn} stolen {word} are drawn, {counted} counted:\n{text}"
        );
    }
    ensure!(drawn(&text, "turns")? > 0, "no turn is drawn");
    ensure!(!text.contains("frames could not be decoded"), "frames are mixed:\n{text}");
    ensure!(std::fs::metadata(&file).context("there is no file")?.len() > 1_000, "the file is empty");
    Ok(Outcome::Passed)
}

fn statistics(_: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.args(["stats", EXAMPLE, "--no-install", "--smp", "2", "--json"]);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    let text = format!("{}\n{}", said.text(), said.err);
    let (mut lines, mut messages, mut stolen) = (0, 0, 0);
    for line in text.lines().filter(|line| line.starts_with("{\"core\"")) {
        let values: serde_json::Value = serde_json::from_str(line).context("no JSON")?;
        let number = |name: &str| values[name].as_u64().with_context(|| format!("no {name}"));
        lines += 1;
        messages += number("messages_handled")?;
        stolen += number("mailboxes_stolen")?;
    }
    let sums = sums(&text)?;
    ensure!(lines == 2, "{lines} lines for 2 cores:\n{text}");
    ensure!((messages, stolen) == (sums[0], sums[4]), "{messages} messages, {stolen} mailboxes:\n{text}");
    Ok(Outcome::Passed)
}
