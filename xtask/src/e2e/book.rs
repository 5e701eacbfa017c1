//! The guide as a book, where mdBook is installed: each of its pages is made, and mdBook has nothing to complain of.

use super::tool::{Said, tool_as_it_is};
use super::{Bench, Case, Outcome};
use crate::build::root;
use anyhow::{Context, Result, ensure};
use std::fs;

pub const CASES: &[Case] = &[("book::has_every_page", made)];

fn made(bench: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool_as_it_is()?;
    command.args(["book", "--no-install"]);
    let said = Said::of(command)?;
    if said.status == Some(2) && said.err.contains("mdBook") {
        return Ok(Outcome::Skipped("there is no mdBook here; .ci/book installs it".into()));
    }
    said.expect_status(0)?;
    let summary =
        fs::read_to_string(root().join("docs/SUMMARY.md")).context("the list of pages is missing")?;
    let pages: Vec<_> = summary.split("](").skip(1).filter_map(|rest| rest.split(".md)").next()).collect();
    ensure!(pages.len() > 20, "only {} pages are listed", pages.len());
    for page in pages {
        let page = page.replace("README", "index");
        let text = fs::read_to_string(bench.workspace.target().join(format!("book/{page}.html")));
        let text = text.with_context(|| format!("the book has no page {page}"))?;
        // The playground of another site cannot run what needs Magpie.
        ensure!(
            text.contains("<main>") && !text.contains("class=\"playground\""),
            "{page} is not as it should be"
        );
    }
    Ok(Outcome::Passed)
}
