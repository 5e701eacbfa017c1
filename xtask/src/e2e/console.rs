//! The example `teletype` at a virtio console: what is said to it comes back in capitals, byte for byte.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

pub const CASES: &[Case] =
    &[("console::what_is_said_comes_back", comes_back), ("console::what_is_none_is_refused", refused)];

const PATIENCE: Duration = Duration::from_secs(240);
const BYTES: usize = 1_000_000;

fn comes_back(_: &Bench<'_>) -> Result<Outcome> {
    for cores in ["1", "4"] {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).context("no port")?.port();
        let mut command = tool()?;
        command.args(["qemu", "teletype", "--no-install", "--smp", cores, "--console", &port.to_string()]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("the tool cannot be started")?;
        let mut lines = BufReader::new(child.stdout.take().context("there is no pipe")?).lines();
        let listens = lines.by_ref().map_while(Result::ok).any(|line| line.contains("listening"));
        ensure!(listens, "it does not listen");
        let mut stream = TcpStream::connect(("127.0.0.1", port)).context("cannot connect")?;
        stream.set_read_timeout(Some(PATIENCE)).context("no time limit")?;
        let said: Vec<u8> = (0..BYTES).map(|at| b"abcdefgh.\n"[at * 7 % 10]).collect();
        let mut speaker = stream.try_clone().context("no second handle")?;
        let to_say = said.clone();
        let speaks = thread::spawn(move || speaker.write_all(&to_say));
        let mut heard = vec![0; BYTES];
        stream.read_exact(&mut heard).context("cannot read")?;
        speaks.join().map_err(|_| anyhow::anyhow!("the thread panicked"))?.context("cannot write")?;
        ensure!(heard == said.to_ascii_uppercase(), "other bytes come back on {cores} cores");
        stream.write_all(b"end\n").context("cannot write")?;
        // All of them: who stops reading ends the tool.
        let said: Vec<String> = lines.map_while(Result::ok).collect();
        let counts = said.iter().any(|line| line.contains(&format!("{} bytes", BYTES + 4)));
        ensure!(counts, "it does not count");
        let status = child.wait().context("the tool is lost")?;
        ensure!(status.success(), "it ends with {status}");
    }
    Ok(Outcome::Passed)
}

fn refused(_: &Bench<'_>) -> Result<Outcome> {
    let run = |more: &[&str]| -> Result<Said> {
        let mut command = tool()?;
        command.args(["qemu", "teletype", "--no-install"]).args(more);
        Ok(Said::from(command.output().context("the tool cannot be started")?))
    };
    run(&[])?.expect_line("error: there is no virtio console: cargo xtask qemu teletype --console 7000")?;
    run(&["--console", "0"])?
        .expect_error("xtask: --console 0: give a port of this machine, like --console 7000")?;
    Ok(Outcome::Passed)
}
