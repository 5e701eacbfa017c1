//! Traces, statistics and the live view, from the kernel to the user: what the tool says agrees with what the kernel prints at the end.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

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
    let recorded = bench.folder.join("run.frames");
    command.arg("--record").arg(&recorded);
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
    report(bench, &recorded, (drawn(&text, "turns")?, drawn(&text, "processes")?, drawn(&text, "mailboxes")?))
}

/// A page about the recording: it says what the picture says, and a browser opens it in both colours, without a network, and reads it by keys.
fn report(bench: &Bench<'_>, recorded: &Path, counted: (u64, u64, u64)) -> Result<Outcome> {
    let file = bench.folder.join("run.html");
    let mut command = tool()?;
    command.args(["report", "--from"]).arg(recorded).arg("-o").arg(&file);
    Said::of(command)?.expect_status(0)?;
    let page = std::fs::read_to_string(&file).context("there is no page")?;
    let (turns, processes, mailboxes) = counted;
    let summary =
        format!("{turns} turns, {processes} processes and {mailboxes} mailboxes stolen, 0 crashes.");
    ensure!(page.contains(&summary), "the page does not say '{summary}'");
    for foreign in ["http:", "https:", "src=", "url(", "@import", "<link"] {
        ensure!(!page.contains(foreign), "the page has {foreign}");
    }
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    }) else {
        return Ok(Outcome::Skipped(
            "the page was not opened: there is no chromium (apt-get install chromium)".into(),
        ));
    };
    // What a user would press, and what comes of it.
    const KEYS: &str = "<script>
        const press = (plot, key) => plot.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        const plots = [...document.querySelectorAll('.plot')];
        for (const plot of plots) { plot.focus(); press(plot, 'ArrowRight'); press(plot, 'End'); press(plot, 'ArrowLeft'); }
        const all = [...document.querySelectorAll('a, summary, pre, .plot')];
        document.body.dataset.found = [plots.length, document.querySelectorAll('output:not(:empty)').length,
            all.filter((one) => one.tabIndex !== 0).length, getComputedStyle(document.body).backgroundColor].join(' ');
        </script></body>";
    std::fs::write(&file, page.replace("</body>", KEYS)).context("cannot write the page")?;
    let mut colours = Vec::new();
    // As Chromium numbers them: dark, light.
    for scheme in ["0", "1"] {
        let mut command = Command::new(browser);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--dump-dom",
        ]);
        command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
        command.arg(format!("--user-data-dir={}", bench.folder.join("browser").display()));
        let said = Said::of({
            command.arg(format!("file://{}", file.display()));
            command
        })?;
        let text = said.text();
        let (_, found) =
            text.split_once("data-found=\"").with_context(|| format!("no script ran: {}", said.err))?;
        let (found, _) = found.split_once('"').context("it has no end")?;
        let mut words = found.splitn(4, ' ');
        let mut number = || words.next().and_then(|word| word.parse::<usize>().ok()).context("no number");
        // Four cores, sizes of gulps, three latencies; one text below the first four, one below each of the others.
        let (plots, readings, out_of_reach) = (number()?, number()?, number()?);
        ensure!(plots == 8 && readings == 5 && out_of_reach == 0, "plots, readings, out of reach: {found}");
        colours.push(words.next().context("no colour")?.to_owned());
    }
    ensure!(colours == ["rgb(21, 23, 27)", "rgb(255, 255, 255)"], "dark and light are {colours:?}");
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
