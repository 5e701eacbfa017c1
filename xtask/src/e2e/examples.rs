//! The examples that a reader tries: each is booted, ends well, and says what does not depend on chance.

use super::tool::{Said, tell, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Result, ensure};

pub const CASES: &[Case] = &[
    ("examples::ping_pong", |bench| {
        says(bench, "ping-pong", "2", &["ping has struck 50000 times, pong 50000"])
    }),
    ("examples::ring", |bench| says(bench, "ring", "4", &["100 members, 50000 hops, 500 each"])),
    ("examples::matrix", |bench| {
        says(bench, "matrix", "4", &["96 times 96 in 8 bands: the trace is 221202, 0 cells are wrong"])
    }),
    ("examples::primes", |bench| says(bench, "primes", "4", &["303 primes up to 2000, the largest is 1999"])),
    ("examples::philosophers", |bench| {
        let each = [0, 1, 2, 3, 4].map(|seat| format!("philosopher {seat} has eaten 200 times"));
        says(bench, "philosophers", "3", &each.each_ref().map(String::as_str))
    }),
    ("examples::chameneos", |bench| {
        says(bench, "chameneos", "4", &["6 creatures, 10000 meetings; they remember 20000, two for each"])
    }),
    ("examples::bank", |bench| {
        let expected = "2000 transfers were made or refused; the accounts have 10000, as at the beginning";
        says(bench, "bank", "4", &[expected])
    }),
    ("examples::sensor", |bench| {
        let expected = [
            "after 5 readings: 21.50 degrees",
            "after 10 readings: 22.80 degrees",
            "after 15 readings: 24.50 degrees",
            "after 20 readings: 25.80 degrees",
        ];
        says(bench, "sensor", "1", &expected)
    }),
    // On one core, where nobody else could do it.
    ("examples::hog", |bench| {
        says(bench, "hog", "1", &["20 times the core was given up by a hog that went round and round: true"])
    }),
    ("examples::victims", victims),
    ("examples::counter", |bench| says(bench, "counter", "1", &["the sum is 42"])),
    ("examples::serial_echo", serial_echo),
    // Its driver crashes at the second one, and goes on.
    ("examples::clock", |bench| {
        let expected = ["driving pl031@9010000", "second 2 came, 1 later", "second 4 came, 1 later"];
        says(bench, "clock", "2", &expected)
    }),
    ("examples::hello", |bench| says(bench, "hello", "2", &["hello from core 0", "hello from core 1"])),
];

/// What is typed comes back, with every way to end a line; the kernel's commands go first.
fn serial_echo(bench: &Bench<'_>) -> Result<Outcome> {
    // What arrives before the port is set up, a byte at most, is lost.
    let typed = b"\nhello\r\nMagpie\n\n\x80\rbye\nto nobody\n";
    let said = tell(bench, "serial-echo", &["--typed", "--smp", "2"], typed)?;
    for line in ["you said: hello", "you said: Magpie", "3 lines came back"] {
        said.expect_line(line)?;
    }
    let said = tell(bench, "serial-echo", &["--commands"], typed)?;
    said.expect_line("no input: the kernel takes what is typed: leave out the boot argument commands")?;
    Ok(Outcome::Passed)
}

/// Boots an example on so many cores.
fn run(bench: &Bench<'_>, example: &str, cores: &str) -> Result<Said> {
    let mut command = tool()?;
    let limit = bench.limit.as_secs().to_string();
    command.args(["qemu", example, "--no-install", "--smp", cores, "--timeout", &limit]);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    Ok(said)
}

fn says(bench: &Bench<'_>, example: &str, cores: &str, lines: &[&str]) -> Result<Outcome> {
    let said = run(bench, example, cores)?;
    for line in lines {
        said.expect_line(line)?;
    }
    Ok(Outcome::Passed)
}

/// Every rule does the same work; how fast, and which was the best, is chance here.
fn victims(bench: &Bench<'_>) -> Result<Outcome> {
    let said = run(bench, "victims", "4")?;
    let text = said.text();
    for rule in ["None", "LongestVictim", "Random", "Load", "Locality", "Hybrid"] {
        let start = format!("{rule}: dug 1088000 in ");
        ensure!(text.lines().any(|line| line.starts_with(&start)), "nothing begins with '{start}':\n{text}");
    }
    ensure!(text.lines().any(|line| line.starts_with("None: ") && line.ends_with(" 0 mailboxes stolen")));
    ensure!(text.lines().any(|line| line.starts_with("this time ")), "no rule is named:\n{text}");
    Ok(Outcome::Passed)
}
