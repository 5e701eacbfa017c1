//! What is typed reaches the kernel, on either interrupt controller and on the Raspberry Pi's, among anything else that
//! arrives there.

use super::terminal::Terminal;
use super::tool::{self, Said, tool};
use super::{Bench, Case, Outcome};
use crate::setup::{Install, OLDEST_FOR_RASPI4B, Qemu};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    ("commands::are_carried_out", |bench| on(bench, &["--smp", "2"])),
    ("commands::are_carried_out_with_gicv3_from_el2", |bench| on(bench, &["--gic", "3", "--el2"])),
    ("commands::are_carried_out_on_the_raspberry_pi", on_raspberry_pi),
    ("commands::crashes_are_listed", crashes),
    ("commands::supervisors_are_listed", supervisors),
    ("commands::mailboxes_are_listed", mailboxes),
    ("commands::a_script_is_played", script),
    ("commands::lines_are_edited_in_a_terminal", terminal),
    ("commands::names_are_completed", names),
    ("commands::noise_does_no_harm", noise),
    ("commands::nobody_listens_unasked", unasked),
    ("commands::a_flood_of_lines_does_not_stop_the_clock", flood),
];

/// It sleeps for as long as the boot argument `seconds` says, time enough for a few commands.
const EXAMPLE: &str = "idle";
const SECONDS: &str = "seconds=2";

/// Runs the example with options and gives it this to read.
fn tell(bench: &Bench<'_>, options: &[&str], typed: &[u8]) -> Result<Said> {
    tool::tell(bench, EXAMPLE, &[&["--append", SECONDS], options].concat(), typed)
}

/// Lines without end, for a guest that goes on for longer than it is given.
fn flood(_: &Bench<'_>) -> Result<Outcome> {
    let mut yes =
        Command::new("yes").arg("help").stdout(Stdio::piped()).spawn().context("cannot start yes")?;
    let mut command = tool()?;
    command.args(["qemu", EXAMPLE, "--no-install", "--commands", "--append", "seconds=60", "--timeout", "4"]);
    command.stdin(yes.stdout.take().context("yes says nothing")?);
    let said = Said::of(command);
    // It may have noticed already that nobody reads.
    let _ = yes.kill();
    yes.wait().context("cannot wait")?;
    // Without the limit it would end well.
    said?.expect_status(1)?.expect_error("time limit of 4 s")?;
    Ok(Outcome::Passed)
}

fn on(bench: &Bench<'_>, options: &[&str]) -> Result<Outcome> {
    let typed =
        b"help\nset sched.slice_us 500\r\ncrashes\nactors\nmailboxes\nps\ntop\ntree\nvictim load\nvictim nearest\nkill nobody\nkill\nset sched.slice_us 5\nset nonsense 1\nlaod\noffline 1\noffline 0\n\
                  online 1\nsettings\nload\nstats\nps\n";
    let said = tell(bench, &[options, &["--commands"]].concat(), typed)?;
    for line in [
        "> set sched.slice_us 500",
        "sched.slice_us is 500 now",
        "sched.slice_us goes from 50 to 1000000; it stays as it is",
        "nothing has crashed",
        "none",
        "    number state     core waiting reductions moved    age ms type, name",
        "nobody is not killed",
        "victims are chosen by load now",
        "there is no rule nearest, and it stays as it is; the rules:",
        "longest-victim",
        "sched.victim_rule 1",
        "it takes other words: kill NAME",
        "there is no setting nonsense: settings lists them",
        "there is no command laod here: help lists them",
        "core 1 is out of service now",
        "core 0 stays as it is: the boot core cannot go offline",
        "core 1 is in service now",
        // As the list of all settings has it.
        "sched.slice_us 500",
    ] {
        said.expect_line(line)?;
    }
    // The listener itself, while it carries the command out, and the main process, which sleeps: when the second list is made at the latest,
    // because a host that is busy may not have come to its core before the first.
    for (state, what) in [("running", "listen::listen"), ("waiting", "idle::")] {
        let is_it = |line: &str| {
            let words: Vec<_> = line.split_whitespace().collect();
            words.len() >= 8 && words[1] == state && words[7].contains(what)
        };
        anyhow::ensure!(said.text().lines().any(is_it), "{what} is not listed as {state}\n{}", said.text());
    }
    anyhow::ensure!(said.text().matches("> tree\nnone\n").count() == 1, "there is a tree\n{}", said.text());
    let count = |start: &str| said.text().lines().filter(|line| line.starts_with(start)).count();
    // By itself, and in the summary.
    anyhow::ensure!(count("load during ") == 2, "the load was not printed\n{}", said.text());
    anyhow::ensure!(count("longest, ns") == 1, "what took longest was not printed\n{}", said.text());
    // Once asked for, once at the end.
    anyhow::ensure!(count("core   messages") == 2, "the table was not printed\n{}", said.text());
    Ok(Outcome::Passed)
}

/// Three have crashed when the list is asked for; the main process does later.
fn crashes(bench: &Bench<'_>) -> Result<Outcome> {
    let one = "expect its end, as others see it: Err(Crashed)\n";
    let said = play(bench, &["panic", "--append", "seconds=3"], &format!("{}crashes\n", one.repeat(3)))?;
    let listed = said.text();
    ensure!(!said.err.contains("script:"), "the script was not met:\n{}\n{listed}", said.err);
    for part in [
        "> crashes\n3 crashes so far\ncrash 1 after ",
        ": data abort in magpie::sched::spawn::builder::procedure<(), panic::crashes::",
        ", address 0x8\n  backtrace 0",
        ": stack overflow in ",
        ": panic in ",
        ": one process has a bug\n  backtrace 0",
    ] {
        ensure!(listed.contains(part), "nothing says '{part}':\n{listed}");
    }
    Ok(Outcome::Passed)
}

/// Runs an example with a script.
fn play(bench: &Bench<'_>, options: &[&str], script: &str) -> Result<Said> {
    let file = bench.folder.join("script");
    std::fs::write(&file, script).context("cannot write the script")?;
    let mut command = tool()?;
    command.arg("qemu").args(options).arg("--no-install").arg("--script").arg(file);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    Said::of(command)
}

/// It ends a run that would go on for long; what it does not meet is said, with its line.
fn script(bench: &Bench<'_>) -> Result<Outcome> {
    let kept = play(
        bench,
        &[EXAMPLE, "--append", "seconds=100000"],
        "# as on any day\nvictim load\nexpect chosen by load now\nwait 0.1\nset sched.thieves 2\n\nexpect 2 now\nend\n",
    )?;
    kept.expect_status(0)?.expect_line("sched.thieves is 2 now")?;
    let broken = play(bench, &[EXAMPLE, "--append", "seconds=1"], "ps\nexpect four elephants\n")?;
    broken.expect_status(1)?.expect_error("script:2: no line has 'four elephants': it has ended")?;
    play(bench, &[EXAMPLE], "wait a moment\n")?
        .expect_status(2)?
        .expect_error("script:1: wait takes seconds")?;
    play(bench, &[EXAMPLE], "ps\nlaod\n")?
        .expect_status(2)?
        .expect_error("script:2: the kernel has no command laod")?;
    Ok(Outcome::Passed)
}

/// Who was listed can be killed without typing the whole name.
fn names(bench: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.args(["qemu", "cluster", "--no-install", "--commands", "--net", "--smp", "1"]);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    command.env("XDG_STATE_HOME", &bench.folder).env("TERM", "xterm");
    let mut terminal = Terminal::start(command)?;
    terminal.expect(" with 1 workers")?;
    let begin = Instant::now();
    // It takes its name in its first turn.
    while !terminal.shows("Worker worker0") {
        terminal.press("actors\r")?;
        thread::sleep(Duration::from_millis(200));
        ensure!(begin.elapsed() < bench.limit, "the worker has no name: {}", terminal.text());
    }
    terminal.press("kill wor\t\r")?;
    terminal.expect("worker0 is killed")?;
    // Between two lines nobody would see it: the tool's session has another terminal, or none.
    terminal.expect_line()?;
    terminal.press("\x03")?;
    ensure!(terminal.end()? == Some(130), "Ctrl-C does not end it: {}", terminal.text());
    Ok(Outcome::Passed)
}

/// Words are completed, the line before comes back, and what the kernel says does not get lost.
fn terminal(bench: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.args(["qemu", EXAMPLE, "--no-install", "--commands", "--append", "seconds=100000"]);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    command.env("XDG_STATE_HOME", &bench.folder).env("TERM", "xterm");
    let mut terminal = Terminal::start(command)?;
    terminal.expect("commands are taken on this line")?;
    // Up twice, and with another word at its end.
    let typed = [
        ("vic\tloc\t\r", "victims are chosen by locality now"),
        ("set sched.thie\t3\r", "sched.thieves is 3 now"),
        ("\x1b[A\x1b[A\x17random\r", "victims are chosen by random now"),
    ];
    for (before, (keys, answer)) in typed.into_iter().enumerate() {
        terminal.expect_lines(before + 1)?;
        terminal.press(keys)?;
        terminal.expect(answer)?;
    }
    terminal.expect_lines(typed.len() + 1)?;
    // Ctrl-C.
    terminal.press("\x03")?;
    ensure!(terminal.end()? == Some(130), "Ctrl-C does not end it: {}", terminal.text());
    ensure!(terminal.is_as_it_was()?, "the terminal's settings are others afterwards");
    let kept =
        std::fs::read_to_string(bench.folder.join("magpie/commands")).context("there is no history")?;
    ensure!(kept.contains("victim locality") && kept.contains("victim random"), "the history is {kept}");
    Ok(Outcome::Passed)
}

/// What is typed is in the port before the example begins, so the tree is that of its first moments, or of a later one.
fn supervisors(bench: &Bench<'_>) -> Result<Outcome> {
    let (mut child, mut lines) = listening(bench, "pipeline")?;
    let mut input = child.stdin.take().context("it has no input")?;
    loop {
        let line = lines.next().context("it ends before anything has crashed")??;
        // Several lives were begun by then.
        if line.contains("injected") {
            break;
        }
    }
    input.write_all(b"tree\nps\n").context("it does not read its input")?;
    let listed = lines.collect::<Result<Vec<_>, _>>()?;
    child.wait().context("it cannot be waited for")?;
    let text = listed.join("\n");
    let after = listed.iter().skip_while(|line| *line != "> tree").skip(1);
    let tree: Vec<_> = after.take_while(|line| *line != "> ps").collect();
    // A crash may be reported before it, and in the middle of it.
    let heading = "    number state     core reductions       age restarts name";
    ensure!(tree.iter().any(|line| *line == heading), "there is no tree:\n{text}");
    let rows: Vec<_> = tree.iter().filter(|line| line.ends_with(['r', 's', 'e'])).collect();
    let place = |name: &str| rows.iter().position(|line| line.ends_with(name));
    let places = [" a supervisor", "   stages", "     square", "     double"].map(place);
    ensure!(places.iter().all(Option::is_some) && places.is_sorted(), "the tree is another:\n{text}");
    ensure!(text.contains("that have not had a turn yet"), "there is no list:\n{text}");
    Ok(Outcome::Passed)
}

/// The example compares six rules for stealing, each with an executor of its own; between two there is none. So it is asked again and again.
fn mailboxes(bench: &Bench<'_>) -> Result<Outcome> {
    let (mut child, mut lines) = listening(bench, "victims")?;
    let mut input = child.stdin.take().context("it has no input")?;
    let mut listed = Vec::new();
    for _ in 0..3 {
        listed.push(lines.next().context("it ends before it was asked")??);
        // It may have ended meanwhile.
        let _ = input.write_all(&b"mailboxes\nactors\n".repeat(20));
    }
    listed.extend(lines.collect::<Result<Vec<_>, _>>()?);
    child.wait().context("it cannot be waited for")?;
    let heads = "    number core waiting    most      bound      taken moved     bytes, and what is special";
    let is_mailbox = |line: &String| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.len() >= 8 && words[4] == "none" && [0, 5, 7].iter().all(|at| words[*at].parse::<u64>().is_ok())
    };
    let text = listed.join("\n");
    ensure!(text.contains(heads) && listed.iter().any(is_mailbox), "no mailboxes:\n{text}");
    ensure!(text.contains("victims::Digger"), "no actors:\n{text}");
    Ok(Outcome::Passed)
}

/// An example that takes commands, on two cores, and the lines that it prints.
fn listening(bench: &Bench<'_>, example: &str) -> Result<(Child, Lines<BufReader<ChildStdout>>)> {
    let mut command = tool()?;
    command.args(["qemu", example, "--no-install", "--smp", "2", "--commands"]);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().context("this tool cannot start itself")?;
    let lines = BufReader::new(child.stdout.take().context("it says nothing")?).lines();
    Ok((child, lines))
}

fn on_raspberry_pi(bench: &Bench<'_>) -> Result<Outcome> {
    let qemu = Qemu::ready(OLDEST_FOR_RASPI4B, Install::Never);
    match qemu {
        Err(error) => Ok(Outcome::Skipped(format!("{error:#}"))),
        Ok(_) => on(bench, &["--board", "rpi4"]),
    }
}

fn noise(bench: &Bench<'_>) -> Result<Outcome> {
    let mut typed = Vec::new();
    let mut state = 1_u32;
    for _ in 0..4000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        typed.push((state >> 24) as u8);
    }
    typed.extend_from_slice(b"\n");
    typed.extend_from_slice(&[b'x'; 1000]);
    typed.extend_from_slice(b"\nset sched.thieves 2\n");
    let said = tell(bench, &["--commands"], &typed)?;
    said.expect_line("a line of more than 128 bytes was ignored")?;
    said.expect_line("a line that is no text was ignored")?;
    said.expect_line("sched.thieves is 2 now")?;
    Ok(Outcome::Passed)
}

fn unasked(bench: &Bench<'_>) -> Result<Outcome> {
    let said = tell(bench, &[], b"help\n")?;
    anyhow::ensure!(!said.text().contains("> help"), "somebody listened\n{}", said.text());
    Ok(Outcome::Passed)
}
