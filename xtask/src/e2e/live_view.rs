//! The live view as a user has it: in a terminal, of 80 columns and 24 rows first and of more later, with keys pressed. The terminal is
//! tmux's, because it says what is on its screen.

use super::tool::tool;
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    ("live_view::pages_are_seen_and_a_setting_is_changed", pages),
    ("live_view::it_ends_with_its_terminal", lost_terminal),
];

/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(240);

/// A terminal with a program in it. Both end with this.
struct Tmux(PathBuf);

impl Tmux {
    fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.0).args(["-f", "/dev/null"]).args(arguments);
        let output = command.output().context("tmux cannot be started")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn press(&self, keys: &[&str]) -> Result<()> {
        self.run(&[&["send-keys", "-t", "view"], keys].concat()).map(drop)
    }

    fn screen(&self) -> Result<String> {
        self.run(&["capture-pane", "-p", "-t", "view"])
    }

    /// Waits until the screen has all of these.
    fn expect(&self, parts: &[&str]) -> Result<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen()?;
            if parts.iter().all(|part| screen.contains(part)) {
                return Ok(screen);
            }
            ensure!(Instant::now() < end, "{parts:?} do not appear:\n{screen}");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It has ended where all went well.
        let _ = self.run(&["kill-server"]);
    }
}

/// A terminal with the live view of `idle`, which is told so many seconds; `None` without tmux.
fn view(bench: &Bench<'_>, name: &str, seconds: u32) -> Result<Option<Tmux>> {
    if !Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success()) {
        return Ok(None);
    }
    let program = tool()?.get_program().to_string_lossy().into_owned();
    let folder = std::env::current_dir().context("there is no folder")?;
    let line = format!(
        "cd '{}' && '{program}' top idle --no-install --smp 4 --append seconds={seconds} --timeout {}",
        folder.display(),
        bench.limit.as_secs()
    );
    let tmux = Tmux(bench.folder.join(name));
    tmux.run(&["new-session", "-d", "-s", "view", "-x", "80", "-y", "24", &line])?;
    Ok(Some(tmux))
}

/// How many programs run that were told this.
fn told(word: &str) -> Result<usize> {
    let programs = std::fs::read_dir("/proc").context("cannot list programs")?;
    let lines = programs.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    Ok(lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count())
}

/// The window is closed, and nothing goes on: neither the tool nor QEMU.
fn lost_terminal(bench: &Bench<'_>) -> Result<Outcome> {
    // No other case's.
    const SECONDS: u32 = 100_001;
    let word = format!("seconds={SECONDS}");
    let Some(tmux) = view(bench, "tmux-lost", SECONDS)? else { return Ok(without_tmux()) };
    tmux.expect(&["Magpie: 4 cores", "busiest, by time"])?;
    ensure!(told(&word)? >= 2, "the tool and QEMU are not seen");
    tmux.run(&["kill-server"])?;
    let end = Instant::now() + PATIENCE;
    while told(&word)? > 0 {
        ensure!(Instant::now() < end, "{} programs go on without a terminal", told(&word)?);
        thread::sleep(Duration::from_millis(100));
    }
    Ok(Outcome::Passed)
}

fn without_tmux() -> Outcome {
    Outcome::Skipped("there is no tmux (apt-get install tmux)".into())
}

fn pages(bench: &Bench<'_>) -> Result<Outcome> {
    let Some(tmux) = view(bench, "tmux", 100_000)? else { return Ok(without_tmux()) };
    let cores = tmux.expect(&["Magpie: 4 cores", "busiest, by time", "stolen by   0   1   2   3"])?;
    ensure!(cores.lines().all(|line| line.chars().count() <= 80), "a line is too long:\n{cores}");
    ensure!(cores.lines().any(|line| line.starts_with("   3 ")), "core 3 is not there:\n{cores}");

    tmux.press(&["5"])?;
    tmux.expect(&["Magpie: Settings, ", "sched.slice_us 1000", "sched.thieves 1"])?;
    tmux.press(&["Down", "Down", "Down", "Down", "Enter", "2"])?;
    tmux.expect(&["sched.thieves is to be: 2_"])?;
    tmux.press(&["Enter"])?;
    tmux.expect(&["sched.thieves is 2 now", "sched.thieves 2"])?;

    tmux.press(&["2"])?;
    tmux.expect(&["Magpie: Processes", "listen::listen", "trace::send"])?;
    tmux.press(&["Enter"])?;
    tmux.expect(&["Magpie: one of Processes", "  reductions  ", "  type, name  "])?;
    tmux.press(&["4"])?;
    tmux.expect(&["Magpie: Tree, none yet"])?;

    tmux.press(&["1"])?;
    tmux.run(&["resize-window", "-t", "view", "-x", "120", "-y", "40"])?;
    // A screen may be seen while it is drawn.
    let end = Instant::now() + PATIENCE;
    loop {
        let wide = tmux.expect(&["Magpie: 4 cores", "turns/s  load"])?;
        let last = wide.lines().position(|line| line.starts_with("q quits"));
        if last == Some(39) {
            break;
        }
        ensure!(Instant::now() < end, "the last row is {last:?}:\n{wide}");
        thread::sleep(Duration::from_millis(100));
    }
    tmux.press(&["q"])?;
    let end = Instant::now() + PATIENCE;
    // The session ends with the program in it.
    while tmux.run(&["list-sessions"])?.contains("view") {
        ensure!(Instant::now() < end, "q does not end it");
        thread::sleep(Duration::from_millis(100));
    }
    Ok(Outcome::Passed)
}
