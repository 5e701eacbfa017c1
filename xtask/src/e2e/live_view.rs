//! The live view as a user has it: in a terminal, of 80 columns and 24 rows first and of more later, with keys pressed. The terminal is
//! tmux's, because it says what is on its screen.

use super::tool::tool;
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[("live_view::pages_are_seen_and_a_setting_is_changed", pages)];

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

fn pages(bench: &Bench<'_>) -> Result<Outcome> {
    if !Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success()) {
        return Ok(Outcome::Skipped("there is no tmux (apt-get install tmux)".into()));
    }
    let program = tool()?.get_program().to_string_lossy().into_owned();
    let folder = std::env::current_dir().context("there is no folder")?;
    let line = format!(
        "cd '{}' && '{program}' top idle --no-install --smp 4 --append seconds=100000 --timeout {}",
        folder.display(),
        bench.limit.as_secs()
    );
    let tmux = Tmux(bench.folder.join("tmux"));
    tmux.run(&["new-session", "-d", "-s", "view", "-x", "80", "-y", "24", &line])?;
    let cores = tmux.expect(&["Magpie: 4 cores", "busiest, by time", "stolen by   0   1   2   3"])?;
    ensure!(cores.lines().all(|line| line.chars().count() <= 80), "a line is too long:\n{cores}");
    ensure!(cores.lines().any(|line| line.starts_with("   3 ")), "core 3 is not there:\n{cores}");

    tmux.press(&["5"])?;
    tmux.expect(&["Magpie: Settings, 31 lines", "sched.slice_us 1000", "sched.thieves 1"])?;
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
    let wide = tmux.expect(&["Magpie: 4 cores", "turns/s  load"])?;
    let last = wide.lines().position(|line| line.starts_with("q quits"));
    ensure!(last == Some(39), "the last row is {last:?}:\n{wide}");
    tmux.press(&["q"])?;
    let end = Instant::now() + PATIENCE;
    // The session ends with the program in it.
    while tmux.run(&["list-sessions"])?.contains("view") {
        ensure!(Instant::now() < end, "q does not end it");
        thread::sleep(Duration::from_millis(100));
    }
    Ok(Outcome::Passed)
}
