//! The benchmarks run, and what they print is understood; what they come to is not a test's business. Parameters are
//! small, so that all of these take less than a minute.

use super::tool::{Said, tool_as_it_is};
use super::{Bench, Case, Outcome};
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
    ("bench::interrupts_are_masked_and_preemption_disabled_for_a_bounded_time", masked),
    ("bench::latencies_stay_within_what_is_promised", latencies),
    ("bench::json_is_all_there_is", json),
    ("bench::a_page_has_the_figures", page),
    ("bench::sweeps_a_grid_of_settings", sweep),
    ("bench::short_slices_cost_little", short_slices),
    ("bench::thefts_in_vain_are_rare", thefts_in_vain),
    ("bench::crowds_stay_beside_idle_cores", crowds_stay),
    ("bench::collections_take_no_longer_on_several_cores", collections),
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

/// For how many instructions interrupts are masked at most, on one core and on two: the goal.
const MOST_MASKED: [f64; 2] = [500.0, 500.0];
/// Likewise preemption disabled in a turn. The goal is 2,000; a line of output, which the port takes byte by byte, is left out.
const MOST_UNPREEMPTIBLE: [f64; 2] = [1400.0, 1400.0];
/// The same with hundreds of mailboxes for each worker, and many new actors.
const MOST_BEHIND: [f64; 2] = [2000.0, 2000.0];
const OUTPUT: &str = "magpie::log::console::";
/// While all cores stand still, nothing is waited for.
const STANDSTILL: &str = "magpie::sched::run::collect::";

/// Every stretch is traced in which an interrupt, or what is urgent, would have to wait.
fn masked(bench: &Bench<'_>) -> Result<Outcome> {
    /// What is bounded, and by how much on one core and on two.
    type Bound = (&'static str, [f64; 2]);
    const MASKED: Bound = ("interrupts masked", MOST_MASKED);
    const UNPREEMPTIBLE: Bound = ("preemption disabled in a turn", MOST_UNPREEMPTIBLE);
    // Where the workers have hundreds of mailboxes, the longest is the memory for the smallest actors, of which a chunk has the most.
    const BEHIND: Bound = ("preemption disabled in a turn", MOST_BEHIND);
    let runs: [(&[&str], &[Bound]); 5] = [
        (&["wake-hogs:10", "mail-hogs:10"], &[MASKED, UNPREEMPTIBLE]),
        (&["behind:1:192"], &[MASKED, BEHIND]),
        // Hundreds are told that there is room.
        (&["send-wait:400:1:16"], &[MASKED, BEHIND]),
        // Actors that panic.
        (&["collection:1"], &[MASKED]),
        // Processes that panic, that use up their stacks, and that are killed.
        (&["crashes:3"], &[MASKED]),
    ];
    for (index, cores, (specs, bounds)) in
        ["1", "2"].into_iter().enumerate().flat_map(|(index, cores)| runs.map(|run| (index, cores, run)))
    {
        let text = measure(bench, &[specs, &["--masked", "--cores", cores]].concat())?;
        for &(what, most) in bounds {
            let found =
                stretches(&text, what).with_context(|| format!("nothing is said of {what}:\n{text}"))?;
            ensure!(!found.is_empty(), "{what}: no stretch was found\n{text}");
            for (longest, place) in found {
                let is_fine = longest <= most[index]
                    || [OUTPUT, STANDSTILL].iter().any(|left_out| place.starts_with(left_out));
                ensure!(
                    is_fine,
                    "{what} for {longest} instructions, not {}, from {place}:\n{text}",
                    most[index]
                );
            }
        }
    }
    Ok(Outcome::Passed)
}

/// The stretches in the table below a heading: how long, from where.
fn stretches<'a>(text: &'a str, heading: &str) -> Option<Vec<(f64, &'a str)>> {
    let (_, table) = text.split_once(heading)?;
    // What is left of the heading, and the heads of the columns, come first; another table's heading begins with a word.
    let lines = table.lines().skip(2).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let lines = lines.take_while(|words| words.first().is_some_and(|word| word.parse::<f64>().is_ok()));
    // The functions below a stretch have one number.
    let found = lines.filter_map(|words| match words[..] {
        [longest, times, place, ..] if times.parse::<u64>().is_ok() => Some((longest.parse().ok()?, place)),
        _ => None,
    });
    Some(found.collect())
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
    ensure!(figure["kind"] == "wall" && figure["runs"] == 2 && figure["cores"] == 2, "{clocked}");
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

/// What of these one core does in slices of 50 µs costs at most a twentieth more than in slices of 1 ms: actors that send densely,
/// in few mailboxes and in many, behaviours of some length, and processes. What does not keep that goal is in `docs/performance.md`.
const SHORT_SLICES: [&str; 14] = [
    "send-static:200000",
    "send-self:100000",
    "send-self-256:40000",
    "ping-pong:20000",
    "thread-ring:100:40000",
    "executor:2000:50:10",
    "executor:1000:40:10",
    "fan-in:4:40000",
    "balance-one:400:20:200",
    "process-one:200:50:100",
    "yield-200:200:100:0",
    "n-queens:4:8:4",
    "chameneos:20:5000",
    "big:100:3200",
];
const MOST_FOR_SHORT_SLICES: f64 = 1.05;
/// Those whose behaviours send densely for longer than a slice: they are suspended again and again, and have mailboxes in hand when they go on, few of them where nobody
/// steals. In boots of their own, because where slices end depends on what ran before. The goal in throughput: 5 per cent less.
const SUSPENDED_SENDERS: [&str; 4] =
    ["spawn:50000", "send-dynamic:20000", "fork-join:100:2000", "quicksort:50000:1024"];
const MOST_FOR_SUSPENDED: f64 = 1.0 / 0.95;

/// A long backlog goes round in one mailbox and in the usual number, in which twice as much would take longer to make room for than a slice. With 80
/// senders that each make a segment for it (in four mailboxes) it is 1.29.
const LONG_BACKLOG: &str = "executor:4000:100:10";

/// In instructions, which depend on no clock but the one that counts them.
fn short_slices(bench: &Bench<'_>) -> Result<Outcome> {
    let figures = |specs: &[&str], microseconds: &str, mailboxes: &str| {
        let slices = format!("sched.slice_us={microseconds} {mailboxes}");
        measure(bench, &[specs, &["--cores", "1", "--append", &slices]].concat())
    };
    let check = |specs: &[&str], slices: &[&str], mailboxes: &str, most: f64| {
        let long = figures(specs, "1000", mailboxes)?;
        for microseconds in slices {
            let short = figures(specs, microseconds, mailboxes)?;
            for spec in specs {
                let ratio = number(&columns(&short, spec)?, 0)? / number(&columns(&long, spec)?, 0)?;
                ensure!(
                    ratio <= most,
                    "{spec} costs {ratio:.3} times as much in slices of {microseconds} us, not {most:.3}:\n{long}\n{short}"
                );
            }
        }
        anyhow::Ok(())
    };
    check(&SHORT_SLICES, &["50"], "", MOST_FOR_SHORT_SLICES)?;
    for mailboxes in ["", "mailboxes=1"] {
        check(&[LONG_BACKLOG], &["50"], mailboxes, MOST_FOR_SHORT_SLICES)?;
    }
    for row in SUSPENDED_SENDERS {
        check(&[row], &["50", "54", "60"], "", MOST_FOR_SUSPENDED)?;
    }
    Ok(Outcome::Passed)
}

/// By how much a row costs more on 2, 4 and 8 cores than on one, in instructions of all; and what was printed.
fn ratios(bench: &Bench<'_>, spec: &str) -> Result<([f64; 3], String)> {
    let text = measure(bench, &[spec, "--cores", "1,2,4,8"])?;
    let row = columns(&text, spec)?;
    let alone = number(&row, 0)?;
    Ok(([number(&row, 1)? / alone, number(&row, 2)? / alone, number(&row, 3)? / alone], text))
}

/// What waits for room on one core is done at once: to take it from there is not worth it, and thieves find that out. Without that it is 1.6 times on two
/// cores, and 2.1 times on four. When thieves come is chance from one length to the next, so it is the mean of several.
fn thefts_in_vain(bench: &Bench<'_>) -> Result<Outcome> {
    const SPECS: [&str; 6] = [
        "send-wait:1000:20:16",
        "send-wait:1000:21:16",
        "send-wait:900:20:16",
        "send-wait:1000:40:16",
        "send-wait:500:40:16",
        "send-wait:300:20:16",
    ];
    const MOST: f64 = 1.5;
    let mut sums = [0.0; 3];
    let mut all = String::new();
    for spec in SPECS {
        let (ratios, text) = ratios(bench, spec)?;
        sums.iter_mut().zip(ratios).for_each(|(sum, ratio)| *sum += ratio);
        all += &text;
    }
    for mean in sums.map(|sum| sum / SPECS.len() as f64) {
        ensure!(mean <= MOST, "they cost {mean:.2} times as much on more cores, not {MOST}:\n{all}");
    }
    Ok(Outcome::Passed)
}

/// What many actors of a core send to each other stays in their worker's lane, beside idle cores, too. Where each second look at what waits closes it, *big* is at 1.18 on two cores and 1.21 on eight.
fn crowds_stay(bench: &Bench<'_>) -> Result<Outcome> {
    const MOST: f64 = 1.1;
    for spec in ["big:200:500", "chameneos:100:20000", "dictionary:20:1000:10"] {
        let (ratios, text) = ratios(bench, spec)?;
        for ratio in ratios {
            ensure!(
                ratio <= MOST,
                "{spec} costs {ratio:.2} times as much on more cores, not {MOST}:\n{text}"
            );
        }
    }
    Ok(Outcome::Passed)
}

/// A collection of 16 MiB, in instructions of all cores: those that stand still wait, and nobody collects again what was collected.
fn collections(bench: &Bench<'_>) -> Result<Outcome> {
    const MOST: f64 = 1.2;
    let (ratios, text) = ratios(bench, "collection:16384")?;
    for ratio in ratios {
        ensure!(ratio <= MOST, "it costs {ratio:.2} times as much on more cores, not {MOST}:\n{text}");
    }
    Ok(Outcome::Passed)
}

/// What `docs/scheduling.md` promises: the latest sample, in instructions on one core. The columns are what a timer wakes, a process and a
/// behaviour, and what a device's interrupt wakes, likewise.
const LATEST: [(&str, [u64; 4]); 5] = [
    ("idle", [100, 200, 300, 750]),
    ("hogs", [600, 600, 1400, 1600]),
    ("thieves", [1200, 1200, 2800, 3300]),
    ("timers", [600, 600, 2700, 2900]),
    ("offline", [600, 600, 1600, 2000]),
];
const SAMPLES: usize = 300;

/// Instructions are counted, so it does not depend on the host how late a sample is.
fn latencies(bench: &Bench<'_>) -> Result<Outcome> {
    let ways = ["wake", "mail", "irq", "irq-mail"];
    let rows = LATEST.into_iter().flat_map(|(beside, most)| {
        ways.into_iter().zip(most).map(move |(way, most)| (format!("{way}-{beside}:{SAMPLES}"), most))
    });
    let rows: Vec<_> = rows.collect();
    let specs = rows.iter().map(|(spec, _)| spec.as_str());
    let text = measure(bench, &specs.chain(["--cores", "1", "--histogram"]).collect::<Vec<_>>())?;
    let (_, table) = text.split_once("how late samples came").context("nothing is said of samples")?;
    for (spec, most) in &rows {
        let late: Vec<_> = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|words| words.first() == Some(&spec.as_str()) && words.len() == 7)
            .with_context(|| format!("nothing is said of {spec}:\n{text}"))?;
        let latest: u64 = late[5].parse().context("the latest is no number")?;
        ensure!(latest <= *most, "{spec}: the latest came after {latest} instructions, not {most}:\n{text}");
        let (_, histogram) =
            text.split_once(&format!("{spec}, 1 cores: ")).context("there is no histogram")?;
        let bars = histogram.lines().skip(1).map_while(|line| {
            let mut words = line.split_whitespace();
            words.next()?.parse::<u64>().ok()?;
            words.next()?.parse::<usize>().ok()
        });
        ensure!(bars.sum::<usize>() == SAMPLES, "{spec}: the histogram has not all samples:\n{text}");
    }
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
