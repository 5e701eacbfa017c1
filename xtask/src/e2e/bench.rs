//! The benchmarks run, and what they print is understood. Parameters are small. What few of them come to is a test's business, too: that is in
//! [`bounds`].

mod bounds;

use super::tool::{Said, tool_as_it_is};
use super::{Bench, Case, Outcome};
use crate::figures::RUNS_IN_A_BOOT;
use anyhow::{Context, Result, ensure};
use serde_json::Value;

pub const CASES: &[Case] = &[
    ("bench::prints_a_line_for_each", figures),
    ("bench::runs_on_16_cores", sixteen_cores),
    ("bench::repeats_its_instruction_counts", repeats),
    ("bench::says_what_the_kernel_did", activity),
    ("bench::without_statistics", without_statistics),
    ("bench::clocks_what_is_named", wall),
    ("bench::compares_settings_in_wall_clock", comparisons),
    ("bench::interrupts_are_masked_and_preemption_disabled_for_a_bounded_time", bounds::masked),
    ("bench::latencies_stay_within_what_is_promised", bounds::latencies),
    ("bench::json_is_all_there_is", json),
    ("bench::a_page_has_the_figures", page),
    ("bench::sweeps_a_grid_of_settings", sweep),
    ("bench::short_slices_cost_little", bounds::short_slices),
    ("bench::cores_are_held_in_step", bounds::in_step),
    ("bench::thefts_in_vain_are_rare", bounds::thefts_in_vain),
    ("bench::crowds_stay_beside_idle_cores", bounds::crowds_stay),
    ("bench::collections_take_no_longer_on_several_cores", bounds::collections),
    ("bench::notices_a_misspelt_setting", misspelt),
    ("bench::fails_with_a_wrong_result", wrong_result),
    ("bench::bad_parameters", bad_parameters),
    ("bench::unknown_benchmark", unknown),
    ("bench::options_that_do_not_fit", options),
];

/// Every benchmark.
const SPECS: [&str; 62] = [
    "send-static:2000",
    "send-self:500",
    "send-self-64:500",
    "send-self-256:500",
    "send-self-1024:500",
    "send-dynamic:2000",
    "ping-pong:500",
    "thread-ring:10:500",
    "executor:40:10:2",
    "repeat:20:5",
    "fork-join:10:50",
    "fan-in:2:2000",
    "big:20:20",
    "spawn:500",
    "balance-one:20:5:10",
    "balance-multi:20:5:10",
    "process-one:20:5:10",
    "process-each:20:5:10",
    "yield-200:20:5",
    "yield-1000:50:5",
    "yield-2:2:20",
    "allocate:50",
    "allocate-beside:50",
    "allocate-limited:50",
    "collection:64",
    "mutex-free:50",
    "semaphore-switch:50",
    "process-end:50",
    "restart:50",
    "boot",
    "wake-idle:20",
    "wake-hogs:20",
    "wake-thieves:20",
    "wake-timers:20",
    "wake-offline:20",
    "mail-idle:20",
    "mail-hogs:20",
    "mail-thieves:20",
    "mail-timers:20",
    "mail-offline:20",
    "irq-idle:20",
    "irq-claimed:20",
    "irq-hogs:20",
    "irq-thieves:20",
    "irq-timers:20",
    "irq-offline:20",
    "irq-mail-idle:20",
    "irq-mail-hogs:20",
    "irq-mail-thieves:20",
    "irq-mail-timers:20",
    "irq-mail-offline:20",
    "behind:2:20",
    "crashes:1",
    "send-wait:10:5:4",
    "bank:3:4:20",
    "chameneos:5:50",
    "philosophers:3:10",
    "barber:20:5:20:20",
    "sieve:200:10",
    "quicksort:500:50",
    "n-queens:3:6:2",
    "dictionary:3:20:50",
];

fn run(bench: &Bench<'_>, words: &[&str]) -> Result<Said> {
    let mut command = tool_as_it_is()?;
    command.args(["bench", "--no-install", "--timeout", &bench.limit.as_secs().to_string()]).args(words);
    Said::of(command)
}

fn measure(bench: &Bench<'_>, words: &[&str]) -> Result<String> {
    let said = run(bench, words)?;
    said.expect_status(0)?;
    Ok(said.text())
}

/// The columns of the first line that begins with a word, without that.
fn columns<'a>(text: &'a str, word: &str) -> Result<Vec<&'a str>> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|line| line.first() == Some(&word));
    line.map(|line| line[1..].to_vec()).with_context(|| format!("no line for {word}:\n{text}"))
}

fn number(columns: &[&str], index: usize) -> Result<f64> {
    let number: Option<f64> = columns.get(index).and_then(|word| word.parse().ok());
    number.with_context(|| format!("no number at {index} of {columns:?}"))
}

fn figures(bench: &Bench<'_>) -> Result<Outcome> {
    let text = measure(bench, &SPECS)?;
    ensure!(columns(&text, "benchmark")?[..5] == ["1", "2", "4", "8", "worst"], "{text}");
    for spec in SPECS {
        let line = columns(&text, spec)?;
        for index in 0..4 {
            ensure!(number(&line, index)? > 0.0, "no figure for {spec}:\n{text}");
        }
        let worst = (1..4).map(|index| Ok(number(&line, index)? / number(&line, 0)?));
        let worst = worst.collect::<Result<Vec<f64>>>()?.into_iter().fold(0.0, f64::max);
        // Both are rounded.
        ensure!((number(&line, 4)? - worst).abs() < 0.01 * worst.max(1.0), "{spec}: {worst}?\n{text}");
    }
    Ok(Outcome::Passed)
}

fn sixteen_cores(bench: &Bench<'_>) -> Result<Outcome> {
    let text = measure(bench, &[&["--cores", "1,16"], &SPECS[..]].concat())?;
    for spec in SPECS {
        ensure!(number(&columns(&text, spec)?, 1)? > 0.0, "no figure for {spec}:\n{text}");
    }
    Ok(Outcome::Passed)
}

fn repeats(bench: &Bench<'_>) -> Result<Outcome> {
    let figure =
        || number(&columns(&measure(bench, &["fan-in:4:20000", "--cores=1"])?, "fan-in:4:20000")?, 0);
    let (first, second) = (figure()?, figure()?);
    ensure!((first / second - 1.0).abs() < 0.01, "{first} instructions, then {second}");
    Ok(Outcome::Passed)
}

fn activity(bench: &Bench<'_>) -> Result<Outcome> {
    let text = measure(bench, &["process-one:50:20:10", "--cores", "1,2", "--activity"])?;
    let (_, table) = text.split_once("what the kernel did").context("there is no second table")?;
    let line = columns(table, "process-one:50:20:10")?;
    ensure!(line[0] == "1" && number(&line, 1)? >= 1.0, "each operation is a turn:\n{table}");
    ensure!(number(&line, 3)? == 0.0, "one core steals from nobody:\n{table}");
    Ok(Outcome::Passed)
}

/// Counting costs something, and can be left out.
fn without_statistics(bench: &Bench<'_>) -> Result<Outcome> {
    let figure = |options: &[&str]| -> Result<f64> {
        let words = [&["ping-pong:5000", "--cores", "1"], options].concat();
        number(&columns(&measure(bench, &words)?, "ping-pong:5000")?, 0)
    };
    let (counted, uncounted) = (figure(&[])?, figure(&["--uncounted"])?);
    ensure!(uncounted < counted, "{counted} instructions with statistics, {uncounted} without");
    Ok(Outcome::Passed)
}

fn wall(bench: &Bench<'_>) -> Result<Outcome> {
    let words = ["fan-in:2:2000", "bank:3:4:20", "--wall", "--smp", "1,2", "--repeat", "2"];
    let text = measure(bench, &words)?;
    for spec in &words[..2] {
        let line = columns(&text, spec)?;
        ensure!(line.len() == 3 && number(&line, 0)? > 0.0 && number(&line, 1)? > 0.0, "{text}");
    }
    Ok(Outcome::Passed)
}

fn comparisons(bench: &Bench<'_>) -> Result<Outcome> {
    let text = measure(bench, &["--cores", "0", "--smp", "2", "--repeat", "1"])?;
    for (name, variants) in
        [("balance-one", 2), ("balance-multi", 2), ("process-one", 3), ("process-each", 3)]
    {
        let line = columns(&text, name)?;
        ensure!(line.len() == variants + 2 && number(&line, variants + 1)? > 0.0, "{text}");
    }
    Ok(Outcome::Passed)
}

fn json(bench: &Bench<'_>) -> Result<Outcome> {
    let parse = |words: &[&str]| -> Result<Value> {
        let text = measure(bench, &[words, &["--json"]].concat())?;
        serde_json::from_str(&text).with_context(|| format!("this is no JSON:\n{text}"))
    };
    let counted = parse(&["spawn:500", "bank:3:4:20", "--cores", "1,2", "--repeat", "3"])?;
    ensure!(counted["build"].as_str().is_some_and(|build| build.len() == 16), "{counted}");
    ensure!(
        counted["qemu"].is_string() && counted["figures"].as_array().map(Vec::len) == Some(4),
        "{counted}"
    );
    let figure = &counted["figures"][3];
    ensure!(figure["benchmark"] == "bank" && figure["kind"] == "icount" && figure["cores"] == 2, "{figure}");
    ensure!(figure["runs"] == 3 && figure["operations"] == 60 && figure["parameters"][2] == 20, "{figure}");
    ensure!(figure["ratio_to_one_core"].is_number() && figure["counters"]["turns"].is_number(), "{figure}");
    ensure!(counted["figures"][0]["best_peer"]["figure"] == 4227, "{counted}");
    let clocked = parse(&["spawn:500", "--wall", "--smp", "2", "--repeat", "2"])?;
    let figure = &clocked["figures"][0];
    ensure!(
        figure["kind"] == "wall" && figure["runs"] == 2 * RUNS_IN_A_BOOT && figure["cores"] == 2,
        "{clocked}"
    );
    let swept = parse(&["ping-pong:100", "--sweep", "sched.doze_us=0,20", "--cores", "1,2"])?;
    ensure!(swept["sweep"].as_array().map(Vec::len) == Some(2), "{swept}");
    ensure!(swept["sweep"][0]["score"].is_number(), "{swept}");
    Ok(Outcome::Passed)
}

fn page(bench: &Bench<'_>) -> Result<Outcome> {
    let file = bench.folder.join("bench.html");
    let mut command = tool_as_it_is()?;
    command.args([
        "bench",
        "--no-install",
        "--smp",
        "0",
        "--cores",
        "1,2",
        "send-static:2000",
        "wake-idle:20",
    ]);
    command.arg("--report").arg(&file);
    Said::of(command)?.expect_status(0)?.expect_error("xtask: a page about it is in ")?;
    let page = std::fs::read_to_string(&file).context("there is no page")?;
    for part in [
        "2 benchmarks, ",
        "<td>send-static:2000</td>",
        "<th>2 cores</th>",
        "wake-idle:20 on 2 cores: how many samples came so late",
    ] {
        ensure!(page.contains(part), "the page does not say '{part}'");
    }
    Ok(Outcome::Passed)
}

fn sweep(bench: &Bench<'_>) -> Result<Outcome> {
    let words = ["ping-pong:200", "bank:3:4:20", "--cores", "1,2"];
    let grid = ["--sweep", "sched.doze_us=0,20", "--sweep", "sched.thieves=1,2", "--repeat=2"];
    let text = measure(bench, &[&words[..], &grid].concat())?;
    let scores: Vec<f64> = text
        .lines()
        .filter(|line| line.contains("sched.thieves=") && !line.starts_with("with"))
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect();
    ensure!(scores.len() == 4 && scores.is_sorted(), "four scores, the best first:\n{text}");
    Ok(Outcome::Passed)
}

fn misspelt(bench: &Bench<'_>) -> Result<Outcome> {
    let words =
        ["ping-pong:100", "--cores", "1,2", "--sweep", "sched.doze_us=0", "--sweep", "sched.theives=1"];
    run(bench, &words)?.expect_status(2)?.expect_error("sched.theives=1: no setting has this name")?;
    let words = ["ping-pong:100", "--cores", "1", "--append", "sched.thieves=65"];
    run(bench, &words)?.expect_status(2)?.expect_error("sched.thieves=65: it goes from 0 to 64")?;
    Ok(Outcome::Passed)
}

/// The programs that check their result are made to doubt it.
fn wrong_result(bench: &Bench<'_>) -> Result<Outcome> {
    let first = SPECS.iter().position(|spec| spec.starts_with("wake-idle"));
    let programs = first.map_or(&[][..], |first| &SPECS[first..]);
    ensure!(programs.len() > 20, "only {} programs check their result", programs.len());
    let said = run(bench, &[programs, &["--cores", "1", "--append", "doubt"]].concat())?;
    said.expect_status(1)?;
    for program in programs {
        let name = program.split(':').next().unwrap_or_default();
        said.expect_error(&format!("{name} failed: wrong result: "))?;
    }
    Ok(Outcome::Passed)
}

fn bad_parameters(bench: &Bench<'_>) -> Result<Outcome> {
    run(bench, &["bank:1:1", "--cores", "1"])?
        .expect_status(1)?
        .expect_error("bank failed: it does not take")?;
    run(bench, &["spawn:5:5", "--cores", "1"])?.expect_status(1)?.expect_error("at most 1 whole number")?;
    run(bench, &["spawn:many"])?.expect_status(2)?.expect_error("'many'")?;
    Ok(Outcome::Passed)
}

fn unknown(bench: &Bench<'_>) -> Result<Outcome> {
    run(bench, &["nonesuch"])?.expect_status(2)?.expect_error("known benchmarks: send-static")?;
    Ok(Outcome::Passed)
}

fn options(bench: &Bench<'_>) -> Result<Outcome> {
    for (words, says) in [
        (&["--wall"][..], "takes the names of benchmarks"),
        (&["big", "--smp", "2"], "--wall"),
        (&["big", "--wall", "--cores", "2"], "--smp"),
        (&["big", "--wall", "--sweep", "sched.doze_us=1"], "give one of them"),
        (&["big", "--sweep", "sched.doze_us=1", "--cores", "2"], "--cores 1"),
        (&["big", "--sweep", "doze=1"], "a point"),
        (&["big", "--cores", "65"], "--cores 64"),
    ] {
        run(bench, words)?.expect_status(2)?.expect_error(says)?;
    }
    Ok(Outcome::Passed)
}
