//! The assembly's instruction sequences against the Arm memory model.
//!
//!     cargo test -p magpie --test litmus
//!
//! runs `herd7` (7.58 or newer; the variable HERD7 may name the command) on every file of `kernel/litmus`.
//! Each file holds the sequences of `arch/aarch64/` with the bad outcome as its condition, which the model
//! must never allow. Lines of its comment of the form
//!
//!     mutant NAME: P0: INSTRUCTION => INSTRUCTION ; P1: ...
//!
//! break the sequence in one or more places (nothing after the arrow takes the instruction out), and the
//! model must then allow the outcome. An argument keeps the tests whose names contain it.

use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let filter = std::env::args().nth(1).filter(|argument| !argument.starts_with('-')).unwrap_or_default();
    match run(&filter) {
        Ok((expected, unexpected)) => {
            println!("{expected} passed, {unexpected} failed");
            if unexpected == 0 && expected > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(message) => {
            eprintln!("litmus: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(filter: &str) -> Result<(u32, u32), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("litmus");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "litmus"))
        .collect();
    files.sort();
    let (mut expected, mut unexpected) = (0, 0);
    let mut line = |name: &str, mutant: &str, observed: &str, wanted: bool| {
        let mark = if wanted { "  " } else { "! " };
        if wanted {
            expected += 1
        } else {
            unexpected += 1
        }
        println!("{mark}{name:<26} {mutant:<34} {observed}");
    };
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !name.contains(filter) {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let observed = herd(&name, &text)?;
        line(&name, "", &observed, observed.starts_with("Never"));
        for mutant in text.lines().filter_map(|line| line.trim().strip_prefix("mutant ")) {
            let (mutant, edits) =
                mutant.split_once(": ").ok_or(format!("{name}: mutant {mutant}: no edit"))?;
            let mut broken = text.clone();
            for edit in edits.split(" ; ") {
                broken = apply(&broken, edit).map_err(|error| format!("{name}: mutant {mutant}: {error}"))?;
            }
            let observed = herd(&name, &broken)?;
            line(&name, mutant, &observed, observed.starts_with("Sometimes"));
        }
    }
    Ok((expected, unexpected))
}

/// Replaces every occurrence of an instruction in one thread's column.
fn apply(text: &str, edit: &str) -> Result<String, String> {
    let (thread, edit) = edit.split_once(": ").ok_or(format!("{edit}: no thread"))?;
    let number = thread.trim().strip_prefix('P').and_then(|number| number.parse::<usize>().ok());
    let column = number.ok_or(format!("{thread}: not a thread"))?;
    let (from, to) = edit.split_once("=>").ok_or(format!("{edit}: no arrow"))?;
    let (from, to) = (from.trim(), to.trim());
    let mut changed = false;
    let lines = text.lines().map(|line| {
        let Some(row) = line.strip_suffix(';') else { return line.to_owned() };
        let mut cells: Vec<_> = row.split('|').map(str::trim).collect();
        match cells.get_mut(column) {
            Some(cell) if *cell == from => *cell = to,
            _ => return line.to_owned(),
        }
        changed = true;
        format!(" {} ;", cells.join(" | "))
    });
    let result = lines.collect::<Vec<_>>().join("\n") + "\n";
    if changed { Ok(result) } else { Err(format!("no {from} in {thread}")) }
}

/// What herd7 observes: `Never`, `Sometimes` or `Always`, and in how many executions.
fn herd(name: &str, text: &str) -> Result<String, String> {
    let command = std::env::var("HERD7").unwrap_or_else(|_| "herd7".to_owned());
    // herd7 reads files, and takes its standard input for a list of them.
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.litmus"));
    std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut words = command.split_whitespace();
    let output =
        Command::new(words.next().ok_or("HERD7 is empty")?).args(words).arg(&file).output().map_err(
            |error| format!("{command}: {error}; install herdtools7 (Debian unstable has it), or set HERD7"),
        )?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let observed = printed.lines().find_map(|line| line.strip_prefix("Observation ")?.split_once(' '));
    observed
        .map(|(_, observed)| observed.to_owned())
        .ok_or_else(|| format!("{name}: {}{}", printed, String::from_utf8_lossy(&output.stderr)))
}
