//! A terminal of 80 columns and 24 rows that says what is on its screen, which is tmux's. What a program writes to a terminal says less: only what has
//! changed since before. For programs that write lines there is `terminal`.

use super::Outcome;
use super::tool::tool;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// How long something may take to appear.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// A terminal with a program in it. Both end with this.
pub struct Tmux(PathBuf);

impl Tmux {
    /// Starts this tool with these words; `None` without tmux. `socket` is a path that nobody else uses.
    pub fn start(socket: PathBuf, words: &str) -> Result<Option<Self>> {
        if !Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success()) {
            return Ok(None);
        }
        let program = tool()?.get_program().to_string_lossy().into_owned();
        let folder = std::env::current_dir().context("there is no folder")?;
        let line = format!("cd '{}' && '{program}' {words}", folder.display());
        let tmux = Self(socket);
        tmux.run(&["new-session", "-d", "-s", "view", "-x", "80", "-y", "24", &line])?;
        Ok(Some(tmux))
    }

    /// How a case ends without it.
    pub fn missing() -> Outcome {
        Outcome::Skipped("there is no tmux (apt-get install tmux)".into())
    }

    /// Has tmux do something, and says what it prints.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.0).args(["-f", "/dev/null"]).args(arguments);
        let output = command.output().context("tmux cannot be started")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Presses keys.
    pub fn press(&self, keys: &[&str]) -> Result<()> {
        self.run(&[&["send-keys", "-t", "view"], keys].concat()).map(drop)
    }

    /// What is on the screen.
    pub fn screen(&self) -> Result<String> {
        self.run(&["capture-pane", "-p", "-t", "view"])
    }

    /// Waits until the screen has all of these.
    pub fn expect(&self, parts: &[&str]) -> Result<String> {
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
