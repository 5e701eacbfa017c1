//! Commands from a file, in place of what is typed: each is sent when the kernel has repeated the one before it.
//!
//! ```text
//!   # a remark
//!   ps                  goes to the kernel, as anything that is not one of the three below
//!   expect TEXT         waits until it says a line with this text, after what the last `expect` has met
//!   wait SECONDS        does nothing for so long
//!   end                 ends the run, well
//! ```
//!
//! A word that is no command is found before anything is started.
//!
//! A thread plays the script: it is told what the kernel says, line by line, and hands on what is to be sent. A command that is not
//! repeated, and a text that is not said, within a minute is a failure, and so is a kernel that ends before the script does.

use super::words::COMMANDS;
use crate::failure::usage;
use crate::stream::Output;
use anyhow::{Context, Result, anyhow};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a step may take that waits for the kernel.
const STEP_LIMIT: Duration = Duration::from_secs(60);
/// What the kernel says when it takes commands.
const IS_LISTENING: &str = "commands are taken on this line";
/// The kernel ignores a longer line: `boot/src/commands/line.rs`.
const MOST_BYTES: usize = 128;

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Say(String),
    Expect(String),
    Wait(Duration),
    End,
}

/// What is to be sent, and waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    name: String,
    /// With the number of its line each.
    steps: Vec<(usize, Step)>,
}

impl Script {
    /// What is in a file.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| usage(format!("cannot read the script {name} ({error})")))?;
        Self::parse(name, &text)
    }

    fn parse(name: String, text: &str) -> Result<Self> {
        let mut steps = Vec::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let rest = rest.trim();
            let wrong = |what: &str| usage(format!("{name}:{number}: {what}"));
            let step = match word {
                "expect" if rest.is_empty() => return Err(wrong("expect takes a text")),
                "expect" => Step::Expect(rest.into()),
                "wait" => {
                    let seconds =
                        rest.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                    Step::Wait(seconds.ok_or_else(|| wrong("wait takes seconds"))?)
                }
                "end" if rest.is_empty() => Step::End,
                "end" => return Err(wrong("end takes nothing")),
                _ if line.len() > MOST_BYTES => {
                    return Err(wrong(&format!("the kernel takes no line of more than {MOST_BYTES} bytes")));
                }
                _ if line.contains(char::is_control) => return Err(wrong("that is no text")),
                _ if !COMMANDS.iter().any(|(command, _)| *command == word) => {
                    return Err(wrong(&format!(
                        "the kernel has no command {word}: its command help lists them, and the script's own are expect, wait and end"
                    )));
                }
                _ => Step::Say(line.into()),
            };
            steps.push((number, step));
        }
        Ok(Self { name, steps })
    }

    /// Begins to play it; `from_boot`: once the kernel says that it takes commands. What is to be sent comes out of the receiver.
    pub fn play(self, from_boot: bool) -> (Player, Receiver<Vec<u8>>) {
        // One line at a time, since its echo is waited for.
        let (sender, lines) = mpsc::sync_channel(1);
        let (said, heard) = mpsc::channel();
        let thread = thread::spawn(move || self.run(from_boot, &sender, &Heard::new(heard)));
        (Player { said, thread }, lines)
    }

    fn run(&self, from_boot: bool, sender: &SyncSender<Vec<u8>>, heard: &Heard) -> Result<Outcome> {
        if from_boot {
            heard
                .await_line(|line| line.starts_with(IS_LISTENING))
                .map_err(|why| anyhow!("{}: the kernel does not take commands: {why}", self.name))?;
        }
        for (number, step) in &self.steps {
            let at = || format!("{}:{number}", self.name);
            match step {
                Step::Say(line) => {
                    sender.send(format!("{line}\n").into_bytes()).with_context(at)?;
                    let echo = format!("> {line}");
                    heard
                        .await_line(|said| said == echo)
                        .map_err(|why| anyhow!("{}: the kernel has not taken '{line}': {why}", at()))?;
                }
                Step::Expect(text) => heard
                    .await_line(|said| said.contains(text.as_str()))
                    .map_err(|why| anyhow!("{}: no line has '{text}': {why}", at()))?,
                // What is said meanwhile waits.
                Step::Wait(time) => thread::sleep(*time),
                Step::End => return Ok(Outcome::Ends),
            }
        }
        Ok(Outcome::GoesOn)
    }
}

/// What is to become of the run when its script is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Ends,
    GoesOn,
}

/// Lines that the kernel has said, the next first.
struct Heard(Receiver<String>);

impl Heard {
    fn new(lines: Receiver<String>) -> Self {
        Self(lines)
    }

    fn await_line(&self, is_it: impl Fn(&str) -> bool) -> Result<(), String> {
        let end = Instant::now() + STEP_LIMIT;
        loop {
            match self.0.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if is_it(&line) => return Ok(()),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("not within {} s", STEP_LIMIT.as_secs()));
                }
                Err(RecvTimeoutError::Disconnected) => return Err("it has ended".into()),
            }
        }
    }
}

/// A script that is being played.
pub struct Player {
    said: Sender<String>,
    thread: JoinHandle<Result<Outcome>>,
}

impl Player {
    /// Takes what the kernel says.
    pub fn hear(&self, output: &Output) {
        let line = match output {
            Output::Text(line) => String::from_utf8_lossy(line).into_owned(),
            Output::Log(line) => line.clone(),
            Output::Part(_) | Output::Notice(_) | Output::Record(..) | Output::Warning(_) => return,
        };
        // Nobody may wait for it any more.
        let _ = self.said.send(line);
    }

    /// Whether the run is to end, or this knows already that it has failed.
    pub fn is_over(self) -> Verdict {
        if !self.thread.is_finished() {
            return Verdict::GoesOn(self);
        }
        match self.end() {
            Ok(Outcome::GoesOn) => Verdict::Unneeded,
            Ok(Outcome::Ends) => Verdict::Over(Ok(())),
            Err(error) => Verdict::Over(Err(error)),
        }
    }

    /// The kernel has ended, or the line. Whether the script was played to its end.
    pub fn finish(self) -> Result<()> {
        self.end().map(drop)
    }

    fn end(self) -> Result<Outcome> {
        drop(self.said);
        self.thread.join().unwrap_or_else(|_| Err(anyhow!("the thread that plays the script is gone")))
    }
}

/// What [`Player::is_over`] says.
pub enum Verdict {
    /// It is not.
    GoesOn(Player),
    /// All was sent and met, and the kernel goes on by itself.
    Unneeded,
    /// The run ends, well or not.
    Over(Result<()>),
}

#[cfg(test)]
mod tests {
    use super::{Script, Step, Verdict};
    use crate::stream::Output;
    use std::time::Duration;

    fn script(text: &str) -> Script {
        Script::parse("file".into(), text).unwrap()
    }

    fn say(line: &str) -> Output {
        Output::Text(line.into())
    }

    #[test]
    fn lines_are_what_they_look_like() {
        let steps = script("# no\n\n  ps \nexpect it is\twell\nwait 0.5\nend\nset a 1").steps;
        let expected = [
            (3, Step::Say("ps".into())),
            (4, Step::Expect("it is\twell".into())),
            (5, Step::Wait(Duration::from_millis(500))),
            (6, Step::End),
            (7, Step::Say("set a 1".into())),
        ];
        assert_eq!(steps, expected);
        let long = "x".repeat(129);
        for wrong in
            ["expect", "wait", "wait a", "wait -1", "wait inf", "end now", &long, "ps\x07", "endless", "hlep"]
        {
            let error = Script::parse("file".into(), &format!("ps\n{wrong}")).unwrap_err().to_string();
            assert!(error.starts_with("file:2: "), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_command_is_sent_when_the_one_before_was_repeated() {
        let (player, lines) = script("ps\nexpect all\nexpect all\ntree\nend").play(true);
        assert!(lines.try_recv().is_err());
        player.hear(&say("commands are taken on this line: help lists them"));
        assert_eq!(lines.recv().unwrap(), b"ps\n");
        // The one before its echo does not count.
        for line in ["3 in all", "> ps", "4 in all", "something else"] {
            player.hear(&say(line));
        }
        assert!(lines.try_recv().is_err(), "one line was taken for two");
        player.hear(&Output::Log("5 in all".into()));
        assert_eq!(lines.recv().unwrap(), b"tree\n");
        let Verdict::GoesOn(mut player) = player.is_over() else { panic!("it was not repeated") };
        player.hear(&say("> tree"));
        loop {
            match player.is_over() {
                Verdict::GoesOn(again) => player = again,
                Verdict::Over(ended) => return ended.unwrap(),
                Verdict::Unneeded => panic!("it says end"),
            }
        }
    }

    #[test]
    fn a_kernel_that_ends_too_early_fails_it() {
        let (player, lines) = script("ps\nexpect nothing").play(false);
        assert_eq!(lines.recv().unwrap(), b"ps\n");
        player.hear(&say("> ps"));
        let error = player.finish().unwrap_err().to_string();
        assert_eq!(error, "file:2: no line has 'nothing': it has ended");
        let (player, lines) = script("ps").play(false);
        assert_eq!(lines.recv().unwrap(), b"ps\n");
        player.hear(&say("> ps"));
        player.finish().unwrap();
    }
}
