//! The benchmarks run, and what they print is understood; what they come to is not a test's business.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Result, ensure};

pub const CASES: &[Case] = &[
    ("bench::prints_a_line_for_each", figures),
    ("bench::repeats_its_instruction_counts", repeats),
    ("bench::without_statistics", without_statistics),
    ("bench::unknown_benchmark", unknown),
];

fn measure(bench: &Bench<'_>, specs: &[&str]) -> Result<Said> {
    let mut command = tool()?;
    command.args(["bench", "--no-install", "--timeout", &bench.limit.as_secs().to_string()]).args(specs);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    Ok(said)
}

fn figures(bench: &Bench<'_>) -> Result<Outcome> {
    let specs = [
        "send-static:2000",
        "send-self:500",
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
    ];
    let text = measure(bench, &specs)?.text();
    for spec in specs {
        let name = spec.split(':').next().unwrap_or_default();
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(name));
        let measured: Option<f64> = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        ensure!(measured.is_some_and(|measured| measured > 0.0), "no figure for {name}:\n{text}");
    }
    Ok(Outcome::Passed)
}

fn repeats(bench: &Bench<'_>) -> Result<Outcome> {
    let figure = || -> Result<f64> {
        let text = measure(bench, &["fan-in:4:20000"])?.text();
        let line = text.lines().find(|line| line.starts_with("fan-in"));
        Ok(line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(f64::NAN))
    };
    let (first, second) = (figure()?, figure()?);
    ensure!((first / second - 1.0).abs() < 0.01, "{first} instructions, then {second}");
    Ok(Outcome::Passed)
}

/// Counting costs something, and can be left out.
fn without_statistics(bench: &Bench<'_>) -> Result<Outcome> {
    let figure = |options: &[&str]| -> Result<f64> {
        let text = measure(bench, options)?.text();
        let line = text.lines().find(|line| line.starts_with("send-self"));
        Ok(line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(f64::NAN))
    };
    let (counted, uncounted) = (figure(&["send-self:5000"])?, figure(&["send-self:5000", "--uncounted"])?);
    ensure!(uncounted < counted, "{counted} instructions with statistics, {uncounted} without");
    Ok(Outcome::Passed)
}

fn unknown(_: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.args(["bench", "nonesuch"]);
    Said::of(command)?.expect_status(2)?.expect_error("known benchmarks: send-static")?;
    Ok(Outcome::Passed)
}
