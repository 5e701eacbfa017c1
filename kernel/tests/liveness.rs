//! Liveness: that what waits is reached, and that all come to rest, as models in Promela.
//!
//!     cargo test -p magpie --test liveness
//!
//! runs `spin` and `cc` on the models of `kernel/liveness`. Each has claims, which must hold in the configurations of
//! the table below, under weak fairness: whatever could always go on does so at some time. Each mutant breaks one step,
//! and the claim that stands beside it must then be violated. An argument keeps the rows whose text contains it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// How a claim is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// A state that must not be reached.
    Safety,
    /// A cycle that must not be run through for ever, if every process is treated fairly.
    Liveness,
}
use Search::{Liveness, Safety};

/// A claim of a model, and the configuration in which it is looked at.
struct Run {
    model: &'static str,
    claim: &'static str,
    search: Search,
    configuration: &'static str,
}

const fn run(model: &'static str, claim: &'static str, search: Search, configuration: &'static str) -> Run {
    Run { model, claim, search, configuration }
}

/// What must hold.
const SOUND: &[Run] = &[
    run("mail", "handled", Liveness, "MESSAGES=1 FAILURES=1"),
    run("mail", "handled", Liveness, THREE_CORES),
    run("mail", "seen_to", Safety, TWO_MESSAGES),
    run("mail", "seen_to", Safety, THREE_CORES),
    run("mail", "rest", Liveness, "MESSAGES=1 FAILURES=0 TRACK=0 COARSE"),
    run("mail", "others_rest", Liveness, ENDLESS),
    run("hand", "handled", Liveness, FROM_BOTH),
    run("hand", "handled", Liveness, OWN),
    run("hand", "handled", Liveness, THERE_AND_BACK),
    run("hand", "handled", Liveness, AT_REST),
    run("hand", "handled", Liveness, TIRED),
    run("hand", "handled", Liveness, SPLIT),
    run("hand", "handled", Liveness, ASIDE),
    run("hand", "handled", Liveness, NO_WORKER),
    run("hand", "empty_handed", Safety, FROM_BOTH),
    run("hand", "rest", Liveness, LONE),
    run("hand", "arrives", Liveness, NO_WORKER),
    run("processes", "gets_its_turn", Liveness, BEHIND),
    run("processes", "gets_its_turn", Liveness, WOKEN),
    run("processes", "gets_its_turn", Liveness, INTERRUPTED),
    run("processes", "gets_its_turn", Liveness, LEAVES),
    run("processes", "gets_its_turn", Liveness, PINNED),
    run("processes", "gets_its_turn", Liveness, MASKED),
    run("processes", "none_is_stranded", Liveness, PINNED),
    run("processes", "watch_is_held", Safety, BEHIND),
    run("processes", "rest", Liveness, WOKEN),
];

/// Two messages may cross; no turn is endless.
const TWO_MESSAGES: &str = "MESSAGES=2 FAILURES=0 HOGS=0 TRACK=0 COARSE";
/// The same in finer steps.
const CROSSING: &str = "MESSAGES=2 FAILURES=0 HOGS=0 TRACK=1";
/// An endless behaviour, and a message.
const ENDLESS: &str = "MESSAGES=1 FAILURES=0 TRACK=1";
/// A host, an owner that takes its guest, and a sender, each on a core of its own.
const THREE_CORES: &str = "CORES=3 HOSTED MESSAGES=1 FAILURES=0 HOGS=0 TRACK=1 COARSE";
/// The same with an endless behaviour, whose core's guest the owner empties.
const EMPTIED: &str = "CORES=3 HOSTED MESSAGES=1 FAILURES=0 HOGS=1 TRACK=1 COARSE";
/// Behaviours and a client on the other core send two messages; the mailbox that is followed is another worker's.
const FROM_BOTH: &str = "MESSAGES=2";
/// The same with one message.
const LONE: &str = "MESSAGES=1";
/// Two messages, and the mailbox is the holder's own.
const OWN: &str = "MESSAGES=2 OWNER=0";
/// Behaviours of two mailboxes send to each other.
const THERE_AND_BACK: &str = "MESSAGES=3 THERE_AND_BACK NO_CLIENT";
/// Begins with a mailbox that rests in hand, for which there may be no room.
const AT_REST: &str = "MESSAGES=1 RESTS FAILURES=1";
/// The same with two messages.
const AT_REST_TWICE: &str = "MESSAGES=2 RESTS HOGS=0";
/// A turn's reductions are used up, and a client that may become endless is on the same core.
const TIRED: &str = "MESSAGES=1 TIRED=1 CLIENT_ON=0";
/// A behaviour is suspended there.
const SPLIT: &str = "MESSAGES=1 SPLITS=1 CLIENT_ON=0";
/// A behaviour is suspended, and its actor gets mail.
const ASIDE: &str = "MESSAGES=3 THERE_AND_BACK NO_CLIENT SPLITS=1 HOGS=0";
/// The client sends from a core without a worker, which may go out of service.
const NO_WORKER: &str = "CORES=3 MESSAGES=1 OFFLINE HOGS=0";
/// Two processes on one core, of which one may become endless.
const BEHIND: &str = "CORES=2 BOTH WAKE_UPS=0 INTERRUPTS=0 TRACK=1";
/// A process is woken by a turn that may then be endless.
const WOKEN: &str = "CORES=2 WAKE_UPS=1 INTERRUPTS=0 TRACK=1";
/// A process is woken by an interrupt.
const INTERRUPTED: &str = "CORES=2 WAKE_UPS=0 INTERRUPTS=1 HOGS=0 TRACK=1";
/// A core goes out of service with two processes in its queue.
const LEAVES: &str = "CORES=2 BOTH WAKE_UPS=0 INTERRUPTS=0 HOGS=0 OFFLINE=1 LOOKS=0 TRACK=1";
/// A core goes out of service while a process is started that is pinned to it.
const PINNED: &str = "CORES=2 WAKE_UPS=0 INTERRUPTS=0 HOGS=0 OFFLINE=1 LOOKS=0 PINNED TRACK=2 COARSE";
/// A process that may run on the first and the last core only, behind one on the first that may be endless.
const MASKED: &str = "CORES=3 BOTH AFFINITY WAKE_UPS=0 INTERRUPTS=0 TRACK=1 COARSE LOOKS=0";

/// What each mutant violates.
const MUTANTS: &[(&str, Run)] = &[
    ("host_not_woken", run("mail", "handled", Liveness, ENDLESS)),
    ("guest_cleared_late", run("mail", "seen_to", Safety, THREE_CORES)),
    ("guest_unclaimed", run("mail", "seen_to", Safety, THREE_CORES)),
    ("guest_never_ripe", run("mail", "handled", Liveness, ENDLESS)),
    ("not_gulped_forgets", run("mail", "handled", Liveness, "MESSAGES=1 FAILURES=1 HOGS=0 TRACK=1")),
    ("gulp_unasked", run("mail", "seen_to", Safety, TWO_MESSAGES)),
    ("put_down_without_look", run("mail", "seen_to", Safety, TWO_MESSAGES)),
    ("given_not_looked_at", run("mail", "seen_to", Safety, TWO_MESSAGES)),
    ("given_not_published", run("mail", "seen_to", Safety, TWO_MESSAGES)),
    ("worker_no_last_look", run("mail", "seen_to", Safety, TWO_MESSAGES)),
    ("turn_end_unasked", run("mail", "handled", Liveness, CROSSING)),
    ("core_no_look", run("mail", "handled", Liveness, CROSSING)),
    ("slice_calls_nobody", run("mail", "handled", Liveness, ENDLESS)),
    ("slice_looks_once", run("mail", "handled", Liveness, ENDLESS)),
    ("slice_ignores_queue", run("mail", "handled", Liveness, ENDLESS)),
    ("called_does_not_look", run("mail", "handled", Liveness, ENDLESS)),
    ("wakes_no_worker", run("mail", "handled", Liveness, ENDLESS)),
    ("watch_kept", run("mail", "seen_to", Safety, ENDLESS)),
    ("empty_guest_counts", run("mail", "others_rest", Liveness, EMPTIED)),
    ("watch_without_end", run("mail", "rest", Liveness, ENDLESS)),
    ("does_not_let_go", run("hand", "handled", Liveness, FROM_BOTH)),
    ("let_go_tells_nobody", run("hand", "handled", Liveness, FROM_BOTH)),
    ("let_go_calls_only", run("hand", "handled", Liveness, FROM_BOTH)),
    ("slice_ignores_listed", run("hand", "handled", Liveness, FROM_BOTH)),
    ("let_go_keeps_resting", run("hand", "handled", Liveness, AT_REST)),
    ("slice_ignores_resting", run("hand", "handled", Liveness, AT_REST)),
    ("rest_not_told", run("hand", "handled", Liveness, AT_REST)),
    ("rest_unlooked", run("hand", "handled", Liveness, AT_REST)),
    ("sleeps_with_rest", run("hand", "handled", Liveness, AT_REST)),
    ("sleeps_with_rest", run("hand", "empty_handed", Safety, FROM_BOTH)),
    ("put_back_not_told", run("hand", "handled", Liveness, TIRED)),
    ("turn_end_keeps", run("hand", "handled", Liveness, TIRED)),
    ("split_keeps", run("hand", "handled", Liveness, SPLIT)),
    ("put_down_unlooked", run("hand", "handled", Liveness, FROM_BOTH)),
    ("noted_is_put_down", run("hand", "handled", Liveness, AT_REST_TWICE)),
    ("gulp_unasked", run("hand", "empty_handed", Safety, FROM_BOTH)),
    ("reattached_unasked", run("hand", "handled", Liveness, ASIDE)),
    ("offline_keeps", run("hand", "arrives", Liveness, NO_WORKER)),
    ("slice_calls_nobody", run("processes", "gets_its_turn", Liveness, WOKEN)),
    ("slice_looks_once", run("processes", "gets_its_turn", Liveness, WOKEN)),
    ("delivered_not_woken", run("processes", "gets_its_turn", Liveness, INTERRUPTED)),
    ("core_no_look", run("processes", "gets_its_turn", Liveness, INTERRUPTED)),
    ("refused_goes_back", run("processes", "gets_its_turn", Liveness, MASKED)),
    ("watch_kept", run("processes", "watch_is_held", Safety, BEHIND)),
    ("watch_without_end", run("processes", "rest", Liveness, BEHIND)),
    ("offline_keeps", run("processes", "gets_its_turn", Liveness, LEAVES)),
    ("offline_unasked", run("processes", "none_is_stranded", Liveness, PINNED)),
    ("pinned_counted_late", run("processes", "none_is_stranded", Liveness, PINNED)),
];

fn main() -> ExitCode {
    let filter = std::env::args().nth(1).filter(|argument| !argument.starts_with('-')).unwrap_or_default();
    let (mut expected, mut unexpected) = (0, 0);
    let sound = SOUND.iter().map(|run| ("", run));
    let mutants = MUTANTS.iter().map(|(mutant, run)| (*mutant, run));
    for (mutant, run) in sound.chain(mutants) {
        let name = format!("{}::{}", run.model, run.claim);
        if !format!("{name} {mutant}").contains(&filter) {
            continue;
        }
        let began = Instant::now();
        let verdict = match explore(run, mutant) {
            Ok(verdict) => verdict,
            Err(message) => {
                eprintln!("liveness: {name} {mutant}: {message}");
                return ExitCode::from(2);
            }
        };
        let wanted = verdict.violated != mutant.is_empty();
        let mark = if wanted { "  " } else { "! " };
        if wanted {
            expected += 1
        } else {
            unexpected += 1
        }
        let said = if verdict.violated { "violated" } else { "holds" };
        println!(
            "{mark}{name:<27} {mutant:<22} {said:<8} {:>9} states {:>5.1} s  {}",
            verdict.states,
            began.elapsed().as_secs_f64(),
            run.configuration
        );
    }
    println!("{expected} passed, {unexpected} failed");
    if unexpected == 0 && expected > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What came of a search.
struct Verdict {
    violated: bool,
    states: u64,
}

/// Memory that one search may use, in megabytes.
const MEMORY: &str = "-DMEMLIM=4000";

/// Lets spin make the search, cc build it, and runs it.
fn explore(run: &Run, mutant: &str) -> Result<Verdict, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("liveness");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("liveness").join(format!("{}.pml", run.model));
    let mut spin = Command::new("spin");
    spin.arg("-a").args(run.configuration.split_whitespace().map(|word| format!("-D{word}")));
    if !mutant.is_empty() {
        spin.arg(format!("-DMUTANT_{mutant}"));
    }
    // spin writes the search beside it.
    output_of(spin.arg(&model).current_dir(&folder))?;
    let search: PathBuf = folder.join("pan");
    let mut cc = Command::new("cc");
    // Not optimised: building would take longer than searching.
    cc.args(["-O0", "-w", MEMORY, "-DVECTORSZ=2048", "-o"]).arg(&search).arg("pan.c");
    cc.arg(if run.search == Safety { "-DSAFETY" } else { "-DNFAIR=3" });
    output_of(cc.current_dir(&folder))?;
    let mut pan = Command::new(&search);
    pan.args(["-m2000000", "-N", run.claim]);
    if run.search == Liveness {
        pan.args(["-a", "-f"]);
    }
    read(&output_of(pan.current_dir(&folder))?)
}

/// What a command prints, if it ends well.
fn output_of(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(format!("{program}: {}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Reads what a search prints. One that did not get through all states has shown nothing, unless it found an error.
fn read(text: &str) -> Result<Verdict, String> {
    let errors = text.lines().find_map(|line| line.split_once("errors: ")?.1.trim().parse::<u64>().ok());
    let states =
        text.lines().find_map(|line| line.split_once(" states, stored")?.0.trim().parse::<u64>().ok());
    let (Some(errors), Some(states)) = (errors, states) else { return Err(text.to_owned()) };
    let given_up = ["max search depth too small", "out of memory", "Search not completed"];
    if errors == 0 && given_up.iter().any(|sign| text.contains(sign)) {
        return Err(format!("the search did not get through\n{text}"));
    }
    Ok(Verdict { violated: errors > 0, states })
}
