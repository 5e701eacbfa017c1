//! The guide's first actor: each of its programs prints what the page shows, in that order.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use crate::build::root;
use anyhow::{Context, Result, bail};
use std::fs;

const PAGE: &str = "docs/first-actor.md";

pub const CASES: &[Case] = &[
    ("first::an_actor", |bench| as_shown(bench, 1)),
    ("first::ask", |bench| as_shown(bench, 2)),
    ("first::crash", |bench| as_shown(bench, 3)),
    ("first::supervised", |bench| as_shown(bench, 4)),
    ("first::watched", |bench| as_shown(bench, 5)),
];

fn as_shown(bench: &Bench<'_>, step: u32) -> Result<Outcome> {
    let page = fs::read_to_string(root().join(PAGE)).context("the page is missing")?;
    let shown = shown(&page, step)?;
    let mut command = tool()?;
    let limit = bench.limit.as_secs().to_string();
    command.args(["qemu", &format!("first-{step}"), "--no-install", "--smp", "1", "--timeout", &limit]);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    compare(&shown, &said.text())?;
    Ok(Outcome::Passed)
}

/// What the page shows below a program's command.
fn shown(page: &str, step: u32) -> Result<Vec<&str>> {
    let command = format!("$ cargo xtask qemu first-{step} --smp 1");
    let mut lines = page.lines().skip_while(|line| **line != command);
    lines.next().with_context(|| format!("the page does not show '{command}'"))?;
    Ok(lines.take_while(|line| *line != "```").collect())
}

/// Fails unless the lines are there one behind the other; `...` stands for any number of others.
fn compare(shown: &[&str], said: &str) -> Result<()> {
    let mut rest = said.lines();
    let mut others_may_come = false;
    for &line in shown {
        if line == "..." {
            others_may_come = true;
            continue;
        }
        let found = if others_may_come { rest.find(|found| *found == line) } else { rest.next() };
        if found != Some(line) {
            bail!("'{line}' is not where the page has it:\n{said}");
        }
        others_may_come = false;
    }
    if !others_may_come && rest.next().is_some() {
        bail!("more is printed than the page shows:\n{said}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{compare, shown};

    #[test]
    fn what_is_shown_must_be_said_in_order() {
        let page = "x\n```text\n$ cargo xtask qemu first-1 --smp 1\n...\na\nb\n...\n```\nc\n";
        let lines = shown(page, 1).unwrap();
        assert_eq!(lines, ["...", "a", "b", "..."]);
        compare(&lines, "start\na\nb\nend\n").unwrap();
        for wrong in ["a\nc\nb\n", "b\na\n", "", "a\n"] {
            assert!(compare(&lines, wrong).is_err(), "{wrong}");
        }
        assert!(compare(&["a"], "a\nb\n").is_err());
        assert!(shown(page, 2).is_err());
    }
}
