//! The code of the guides `docs/actors.md` and `docs/supervisors.md`: a chapter is a module, which runs here on std threads. That of
//! `docs/first-actor.md` is in `examples/first`, and is run by the end-to-end tests `first`.
//!
//! Every block of Rust in a guide must be found, line for line, in one of these modules or in the in-kernel
//! suite that it names, or of the example; so what a guide shows is what was compiled and run.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use magpie::arch::MAX_CORES;
use magpie::machine::{self, Location, Machine};
use magpie::sched;

mod asking;
mod bounds;
mod counting;
mod crashes;
mod interrupts;
mod killing;
mod lives;
mod many;
mod memory;
mod naming;
mod placing;
mod receiving;
mod seeing;
mod sharing;
#[cfg(not(feature = "uncounted"))]
mod statistics;
mod supervising;
mod timers;
mod watching;

/// What a chapter returns.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What chapters have printed.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints a line, and keeps it.
fn say(line: String) {
    println!("{line}");
    SAID.lock().expect("nobody panics with it").push(line);
}

async fn all_chapters() -> Result {
    counting::chapter().await?;
    many::chapter().await?;
    lives::chapter().await?;
    bounds::chapter().await?;
    memory::chapter().await?;
    placing::chapter().await?;
    asking::chapter().await?;
    receiving::chapter().await?;
    crashes::chapter();
    timers::chapter().await?;
    interrupts::chapter().await?;
    sharing::chapter().await?;
    watching::chapter().await?;
    killing::chapter().await?;
    naming::chapter().await?;
    supervising::chapter().await?;
    seeing::chapter().await?;
    #[cfg(not(feature = "uncounted"))]
    statistics::chapter().await?;
    Ok(())
}

#[test]
fn the_guides_code_does_what_the_guide_says() {
    machine::describe(Machine {
        board: "host",
        application: "guide",
        cores: 2,
        places: [Location::default(); MAX_CORES],
        arguments: "",
        input: None,
    });
    sched::run_on_threads(2, 1, all_chapters()).expect("the scheduler runs").expect("every chapter succeeds");
    compare_output();
}

/// What the guide to supervisors shows as output is all that its code has printed, in order.
fn compare_output() {
    let guide = fs::read_to_string(root().join("docs/supervisors.md")).expect("the guide exists");
    let shown = blocks(&guide, "```text").into_iter().flat_map(|(_, block)| block);
    let said = SAID.lock().expect("nobody panics with it");
    assert_eq!(shown.collect::<Vec<_>>(), *said, "what docs/supervisors.md shows as output");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The lines of a text without indentation and blank lines.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// The blocks in a text that begin so, each with its first line's number.
fn blocks<'a>(text: &'a str, begin: &str) -> Vec<(usize, Vec<&'a str>)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, Vec<&str>)> = None;
    for (number, line) in text.lines().enumerate() {
        match (&mut open, line.trim()) {
            (None, line) if line == begin => open = Some((number + 2, Vec::new())),
            (Some(_), "```") => found.extend(open.take()),
            (Some((_, block)), line) if !line.is_empty() => block.push(line),
            _ => {}
        }
    }
    found
}

#[test]
fn every_block_of_the_guide_was_compiled() {
    let mut sources = Vec::new();
    for folder in ["kernel/tests/guide", "tests/suites/process", "examples/first/src"] {
        for entry in fs::read_dir(root().join(folder)).expect("the folder exists") {
            sources.push(fs::read_to_string(entry.expect("an entry").path()).expect("a source file"));
        }
    }
    for (name, at_least) in [("docs/actors.md", 10), ("docs/supervisors.md", 4), ("docs/first-actor.md", 12)]
    {
        let guide = fs::read_to_string(root().join(name)).expect("the guide exists");
        let blocks = blocks(&guide, "```rust");
        assert!(blocks.len() >= at_least, "only {} blocks were found in {name}", blocks.len());
        for (number, block) in blocks {
            let compiled =
                sources.iter().any(|source| lines(source).windows(block.len()).any(|w| w == block));
            assert!(compiled, "the block at {name}:{number} is in no module of the guide");
        }
    }
}
