//! The parent: starts the test's program anew for one test alone, hands on what it prints, and judges its end.

use std::boxed::Box;
use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::string::{String, ToString};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;
use std::{env, io, panic, print, thread};

use super::Options;
use super::protocol::{FAILED, Line, VARIABLE};

/// Runs the test of that name in a child, as its run of that number.
#[track_caller]
pub(super) fn run(options: &Options, name: &str, number: usize) {
    match attempt(options, name, number) {
        Ok(None) => {}
        // The child has said who panicked, and where; the harness takes the message from what is thrown.
        Ok(Some(why)) => panic::resume_unwind(Box::new(why)),
        Err(why) => panic!("the process of the test {name}: {why}"),
    }
}

/// What comes of it: why the test has failed, if it has; or what is wrong with the child.
fn attempt(options: &Options, name: &str, number: usize) -> Result<Option<String>, String> {
    let (mut child, output) =
        start(name, number).map_err(|error| std::format!("cannot be started: {error}"))?;
    let lines = read(output);
    let began = Instant::now();
    let (mut has_begun, mut has_passed, mut failure) = (false, false, None);
    loop {
        let left = options.hangs_after.saturating_sub(began.elapsed());
        let line = match lines.recv_timeout(left) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                // It may have ended meanwhile, which is just as well.
                let _ = child.kill();
                let _ = child.wait();
                return Err(std::format!("no end within {} s", options.hangs_after.as_secs()));
            }
        };
        // What the harness prints before the test begins is not the test's.
        match Line::read(line.trim_end_matches('\n')) {
            Some((before, said)) => {
                if has_begun {
                    print!("{before}");
                }
                match said {
                    Line::Begins => has_begun = true,
                    Line::Passed => has_passed = true,
                    Line::Failure(why) => failure = Some(why),
                }
            }
            None if has_begun => print!("{line}"),
            None => {}
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    judge(status, has_begun, has_passed, failure)
}

fn judge(
    status: ExitStatus,
    has_begun: bool,
    has_passed: bool,
    failure: Option<String>,
) -> Result<Option<String>, String> {
    match failure {
        _ if status.success() && has_passed => Ok(None),
        Some(why) if status.code() == Some(FAILED) => Ok(Some(why)),
        Some(why) => Err(std::format!("ended with {status} after this: {why}")),
        None if !has_begun => {
            Err("it did not come to the run: is that the name of the test? Options::name says another".into())
        }
        None => Err(std::format!("ended with {status}")),
    }
}

/// The child, and its output: the standard one and that for errors in one, in the order in which they are written.
fn start(name: &str, number: usize) -> io::Result<(Child, PipeReader)> {
    let (reader, writer) = pipe()?;
    let mut command = Command::new(env::current_exe()?);
    command.args(["--exact", name, "--nocapture", "--include-ignored", "--test-threads=1"]);
    command.env(VARIABLE, number.to_string());
    // Its end is how the child learns of this process's end.
    command.stdin(Stdio::piped()).stdout(writer.try_clone()?).stderr(writer);
    // With the command the writing ends here are closed, so the output ends with the child.
    Ok((command.spawn()?, reader))
}

/// Each line with its end, as it comes.
fn read(output: PipeReader) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = std::vec::Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    receiver
}
