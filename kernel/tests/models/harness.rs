//! Runs every model and every mutant in a process of its own and compares the verdicts with the table's.

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::tool;

/// A model: a few threads at a structure, and what must hold.
#[derive(Clone, Copy)]
pub struct Model {
    /// `structure::situation`.
    pub name: &'static str,
    /// loom explores so many preemptions; `None`: every schedule.
    pub preemptions: Option<usize>,
    /// One execution. Panics when something does not hold.
    pub body: fn(),
    /// The broken copies, and which tool notices.
    pub mutants: &'static [Mutant],
}

/// A broken copy of the code that a model runs.
#[derive(Clone, Copy)]
pub struct Mutant {
    /// The name, as in `MAGPIE_MUTANT`.
    pub name: &'static str,
    /// The tools that reject it with this model; the others are blind to it.
    pub rejected_by: &'static [&'static str],
}

/// A mutant that both tools reject: a step is missing.
pub const fn step(name: &'static str) -> Mutant {
    Mutant { name, rejected_by: &["loom", "shuttle"] }
}

/// A mutant that loom alone rejects: an ordering is missing, and shuttle knows none.
pub const fn ordering(name: &'static str) -> Mutant {
    Mutant { name, rejected_by: &["loom"] }
}

/// One run may take so long; a mutant that hangs is rejected, a model that does fails.
const TIME_LIMIT: Duration = Duration::from_secs(120);

struct Verdict {
    passed: bool,
    detail: String,
    took: Duration,
}

/// Entry of the test program.
pub fn main(models: &[Model]) -> ExitCode {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--nocapture").collect();
    if let [flag, name] = &arguments[..]
        && flag == "--model"
    {
        return child(models, name);
    }
    let (flags, names): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| argument.starts_with("--"));
    let with_mutants = flags.iter().any(|flag| *flag == "--mutants");
    let filter = names.first().map_or("", |name| name.as_str());
    let (mut expected, mut unexpected) = (0_u32, 0_u32);
    let mut line = |name: &str, mutant: &str, verdict: &Verdict, wanted: bool| {
        let word = match (mutant.is_empty(), verdict.passed) {
            (true, true) => "passed",
            (true, false) => "FAILED",
            (false, true) => "not noticed",
            (false, false) => "rejected",
        };
        let mark = if verdict.passed == wanted { "  " } else { "! " };
        if verdict.passed == wanted {
            expected += 1
        } else {
            unexpected += 1
        }
        let seconds = verdict.took.as_secs_f32();
        println!("{mark}{name:<28} {mutant:<24} {word:<12} {seconds:>6.1} s  {}", verdict.detail);
    };
    println!("{}: model, mutant, verdict, time, executions or objection", tool::NAME);
    for model in models {
        if model.name.contains(filter) {
            line(model.name, "", &run(model.name, ""), true);
        }
        let mutants = if with_mutants { model.mutants } else { &[] };
        for mutant in mutants {
            if model.name.contains(filter) || mutant.name.contains(filter) {
                let blind = !mutant.rejected_by.contains(&tool::NAME);
                line(model.name, mutant.name, &run(model.name, mutant.name), blind);
            }
        }
    }
    println!("{expected} passed, {unexpected} failed");
    if unexpected == 0 && expected > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Explores one model in this process.
fn child(models: &[Model], name: &str) -> ExitCode {
    let Some(model) = models.iter().find(|model| model.name == name) else {
        eprintln!("no model {name}");
        return ExitCode::from(2);
    };
    // `MAGPIE_PREEMPTIONS` replaces the table's bound, also where that is every schedule.
    let asked = std::env::var("MAGPIE_PREEMPTIONS").ok();
    let bound = asked.map(|text| text.parse().expect("MAGPIE_PREEMPTIONS is a number"));
    let preemptions = bound.or(model.preemptions);
    println!("{} executions", tool::explore(preemptions, model.body));
    ExitCode::SUCCESS
}

fn run(model: &str, mutant: &str) -> Verdict {
    let program = std::env::current_exe().expect("the test program knows its own path");
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(["--model", model])
        .env("MAGPIE_MUTANT", mutant)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the test program can start itself");
    // Drained meanwhile, for a full pipe would stop the child.
    let mut errors = child.stderr.take().expect("the standard error is a pipe");
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut errors, &mut text)
            .map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break Some(status);
        }
        if start.elapsed() > TIME_LIMIT {
            // It is this program's own child, and ends nowhere else.
            child.kill().expect("a child can be ended");
            child.wait().expect("a child can be waited for");
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = start.elapsed();
    let errors = reader.join().expect("the reader does not panic").unwrap_or_default();
    let detail = match status {
        None => format!("ran longer than {} s", TIME_LIMIT.as_secs()),
        Some(status) if status.success() => {
            let mut output = String::new();
            let pipe = child.stdout.as_mut().expect("the standard output is a pipe");
            std::io::Read::read_to_string(pipe, &mut output).expect("a model prints text");
            output.lines().last().unwrap_or_default().to_owned()
        }
        Some(status) => objection(&errors).unwrap_or_else(|| status.to_string()),
    };
    Verdict { passed: status.is_some_and(|status| status.success()), detail, took }
}

/// The first line of the first panic's message.
fn objection(errors: &str) -> Option<String> {
    let mut lines = errors.lines();
    lines.find(|line| line.contains("panicked at"))?;
    Some(lines.next()?.trim().chars().take(90).collect())
}
