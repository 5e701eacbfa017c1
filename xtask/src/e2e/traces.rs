//! Traces, statistics and the live view, from the kernel to the user: what the tool says agrees with what the kernel prints at the end.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, ensure};
use magpie_xtask::trace::{Kind, Record, tape};
use std::path::Path;
use std::process::Command;

pub const CASES: &[Case] = &[
    ("traces::thefts_are_those_of_the_table", thefts),
    ("traces::what_is_lost_of_eight_cores_at_full_rate_is_known", full_rate),
    ("traces::the_file_is_what_perfettos_schema_says", schema),
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

/// Perfetto's schema as a Python package, in an environment of its own.
const PACKAGE: &str = "perfetto==0.59.1";
const CHECK: &str = include_str!("../../fixtures/perfetto_schema.py");

/// A Python that has it, installed if that can be.
fn python_with_schema(bench: &Bench<'_>) -> Result<std::path::PathBuf, String> {
    let place = bench.common.join("perfetto");
    let python = place.join("bin/python");
    let has_it = || {
        let mut command = Command::new(&python);
        command.args(["-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"]);
        command.output().is_ok_and(|output| output.status.success())
    };
    if !has_it() {
        for line in [
            Command::new("python3").args(["-m", "venv"]).arg(&place),
            Command::new(&python).args(["-m", "pip", "install", "--quiet", PACKAGE]),
        ] {
            let output = line.output().map_err(|error| format!("{line:?}: {error}"))?;
            if !output.status.success() {
                return Err(format!("{line:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
            }
        }
    }
    if has_it() { Ok(python) } else { Err(format!("{PACKAGE} has no schema")) }
}

fn schema(bench: &Bench<'_>) -> Result<Outcome> {
    let python = match python_with_schema(bench) {
        Ok(python) => python,
        Err(reason) => return Ok(Outcome::Skipped(format!("Perfetto's schema is not to be had: {reason}"))),
    };
    let (file, check) = (bench.folder.join("schema.pftrace"), bench.folder.join("check.py"));
    std::fs::write(&check, CHECK).context("cannot write the check")?;
    let mut command = tool()?;
    command.args(["trace", EXAMPLE, "--no-install", "--smp", "4", "-o"]).arg(&file);
    let traced = Said::of(command)?;
    traced.expect_status(0)?;
    let mut command = Command::new(python);
    command.arg(&check).arg(&file);
    let said = Said::of(command)?;
    let text = said.expect_status(0)?.text();
    let turns = drawn(&format!("{}\n{}", traced.text(), traced.err), "turns")?;
    ensure!(text.starts_with("unknown 0 lost 0 ill 0 loose 0 slices "), "the schema finds: {text}");
    let slices: u64 =
        text.split_whitespace().nth(9).and_then(|word| word.parse().ok()).context("no slices")?;
    // Handlers of interrupts have slices as well.
    ensure!(slices >= turns && turns > 0, "{slices} slices of {turns} turns");
    Ok(Outcome::Passed)
}

/// A page about the recording: it says what the picture says, and a browser opens it in both colours, without a network, and reads it by keys.
fn report(bench: &Bench<'_>, recorded: &Path, counted: (u64, u64, u64)) -> Result<Outcome> {
    let file = bench.folder.join("run.html");
    let mut command = tool()?;
    let picture = bench.folder.join("run.svg");
    command.args(["report", "--from"]).arg(recorded).arg("-o").arg(&file).arg("--picture").arg(&picture);
    Said::of(command)?.expect_status(0)?;
    let picture = std::fs::read_to_string(&picture).context("there is no picture")?;
    ensure!(picture.ends_with("</svg>\n"), "the picture is cut off");
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

/// The example `marks`: each core's marks are numbered, and so are its lines. Where no event is missing by the events' own numbers, no mark is; where some
/// are, no more marks are. Every line of the log is there, in order: logging waits, and loses nothing.
fn full_rate(bench: &Bench<'_>) -> Result<Outcome> {
    const CORES: u64 = 8;
    const MARKS: u64 = 20_000;
    const LINES: u64 = MARKS / 1_000;
    let recorded = bench.folder.join("marks.frames");
    let mut command = tool()?;
    command.args(["trace", "marks", "--no-install", "--smp", "8", "--record"]).arg(&recorded);
    command.arg("-o").arg(bench.folder.join("marks.pftrace"));
    let said = Said::of(command)?;
    said.expect_status(0)?;
    said.expect_line(&format!(
        "{CORES} cores have set {} marks and written {} lines",
        CORES * MARKS,
        CORES * LINES
    ))?;
    let text = format!("{}\n{}", said.text(), said.err);
    ensure!(!text.contains("frames could not be decoded"), "frames are mixed:\n{text}");
    for core in 0..CORES {
        let lines = text.lines().filter_map(|line| {
            let (_, number) = line.split_once(&format!("core {core} is at mark "))?;
            number.split_whitespace().next()?.parse::<u64>().ok()
        });
        let expected = (0..LINES).map(|line| line * (MARKS / LINES));
        ensure!(lines.eq(expected), "lines of core {core} are missing, or not in order:\n{text}");
    }
    let (mut frames, mut received, mut lost, mut missing) = (0, 0, 0, 0);
    // Of each core: the number of the next event, of the next mark, and how many are known to be lost since the last mark.
    let mut next = [(None::<u64>, 0_u64, 0_u64); CORES as usize];
    for frame in tape::frames(&recorded)? {
        let (_, sequence, record) = frame?;
        ensure!(sequence == frames, "frame {sequence} comes in the place of {frames}");
        frames += 1;
        let Record::Events { core, lost: of_frame, first, events } = record else { continue };
        let (next_event, next_mark, gap) = &mut next[usize::from(core)];
        if let Some(next_event) = *next_event {
            ensure!(
                next_event + of_frame == first,
                "core {core}: {of_frame} lost from {next_event} to {first}"
            );
        }
        *next_event = Some(first + events.len() as u64);
        lost += of_frame;
        *gap += of_frame;
        for event in events {
            let Some(Kind::Mark) = event.kind else { continue };
            ensure!(
                u64::from(event.value) == u64::from(core),
                "a mark of core {} is core {core}'s",
                event.value
            );
            let skipped = event.subject.checked_sub(*next_mark);
            let skipped = skipped.with_context(|| format!("mark {} comes twice", event.subject))?;
            ensure!(skipped <= *gap, "core {core}: {skipped} marks are missing where {gap} events were lost");
            missing += skipped;
            received += 1;
            (*next_mark, *gap) = (event.subject + 1, 0);
        }
    }
    for (core, (_, next_mark, gap)) in next.into_iter().enumerate() {
        ensure!(MARKS - next_mark <= gap, "core {core}: no marks from {next_mark} on, {gap} lost");
        missing += MARKS - next_mark;
    }
    ensure!(received + missing == CORES * MARKS, "{received} marks came and {missing} did not");
    // Between two lines a core sets four times as many marks as it keeps, so some are always lost unless the host stands still.
    ensure!(
        received > 0 && missing <= lost,
        "{received} came, {missing} did not, {lost} are said to be lost"
    );
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
