//! The code of the guides `docs/actors.md`, `docs/scheduling.md` and `docs/supervisors.md`: a chapter is a module, which runs here on std threads. That of
//! `docs/first-actor.md` is in `examples/first`, and is run by the end-to-end tests `first`.
//!
//! The host tool's tests look for every block of Rust in a guide, line for line, in these modules, in the in-kernel suites that run it
//! and in the example; so what a guide shows is what was compiled and run.

use std::error::Error;
use std::fs;
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
mod scheduling;
mod seeing;
mod sharing;
#[cfg(not(feature = "uncounted"))]
mod statistics;
mod supervising;
mod timers;
mod watching;

/// What a chapter returns.
pub type Result<T = (), E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

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
    scheduling::chapter().await?;
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
    let guide = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/supervisors.md"))
        .expect("the guide exists");
    let said = SAID.lock().expect("nobody panics with it");
    assert_eq!(shown(&guide, "```text"), *said, "what docs/supervisors.md shows as output");
}

/// The lines of the blocks in a text that begin so.
fn shown<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    let (mut found, mut is_open) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        match line {
            "```" => is_open = false,
            line if line == begin => is_open = true,
            line if is_open && !line.is_empty() => found.push(line),
            _ => {}
        }
    }
    found
}
