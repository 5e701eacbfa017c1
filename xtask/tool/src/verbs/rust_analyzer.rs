//! `cargo xtask rust-analyzer`: describes the workspace to rust-analyzer, which calls it by itself where its settings say so.

use crate::build::{root, write_whole};
use crate::editor;
use crate::failure::SUCCESS;
use crate::setup::{Install, ready_sources, ready_target};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// What it accepts.
#[derive(Args)]
pub struct Options {
    /// Write the description into this file, which has to be called rust-project.json: for an editor that does not call this verb
    /// [default: standard output, in the form that rust-analyzer expects of its workspace.discoverConfig]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Never install anything: stop with status 2 when something is missing
    #[arg(long)]
    no_install: bool,
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    let described = ready(options).and_then(|()| editor::describe());
    let Some(file) = &options.output else {
        if let Err(error) = &described {
            // Standard error is not shown there.
            println!("{}", json!({"kind": "error", "error": format!("{error:#}"), "source": null}));
        }
        println!(
            "{}",
            json!({"kind": "finished", "buildfile": root().join("Cargo.toml"), "project": described?})
        );
        return Ok(SUCCESS);
    };
    let text = serde_json::to_vec_pretty(&described?).context("the description is no JSON")?;
    write_whole(file, &text)?;
    Ok(SUCCESS)
}

fn ready(options: &Options) -> Result<()> {
    let install = Install::unless(options.no_install);
    ready_target(install)?;
    ready_sources(install)
}
