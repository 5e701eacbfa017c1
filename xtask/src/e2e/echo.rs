//! The example `echo` over a forwarded port: what is said comes back byte for byte, from many at once, and although the card's driver is killed.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    ("echo::ten_megabytes_come_back", ten_megabytes),
    ("echo::ten_megabytes_come_back_over_a_bad_network", over_a_bad_network),
    ("echo::many_come_and_go", many),
    ("echo::a_killed_driver_costs_no_byte", killed),
    ("echo::a_megabyte_comes_back_over_a_serial_line", over_a_line),
    ("echo::a_killed_driver_of_a_serial_line_costs_no_byte", killed_on_a_line),
    ("echo::ports_that_are_none_are_refused", refused),
    ("echo::a_page_is_seen", page),
];

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(240);

/// A guest that echoes.
struct Echo {
    child: Child,
    commands: ChildStdin,
    lines: Receiver<String>,
    port: u16,
}

impl Echo {
    /// Starts it, and waits until it listens.
    fn start(cores: &str, connections: usize, more: &[&str]) -> Result<Self> {
        let argument = format!("connections={connections}");
        Self::start_app(("echo", 7), cores, &argument, "listening at 10.0.2.15:7", more)
    }

    /// The same of an application that listens at that port, with this boot argument, and says so when it does.
    fn start_app(
        (app, to): (&str, u16),
        cores: &str,
        argument: &str,
        says: &str,
        more: &[&str],
    ) -> Result<Self> {
        // A port that is free now; somebody else may take it before QEMU does, which then says so.
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).context("no port")?.port();
        let mut command = tool()?;
        command.args(["qemu", app, "--no-install", "--smp", cores, "--append", argument]);
        let way = if more.contains(&"--line") { None } else { Some("--net") };
        command.args(way).args(["--forward", &format!("{port}:{to}")]).args(more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("the tool cannot be started")?;
        let (Some(commands), Some(said)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("there are no pipes")
        };
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let said = BufReader::new(said);
            said.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let echo = Self { child, commands, lines, port };
        echo.hear(says)?;
        Ok(echo)
    }

    /// Waits for a line that has this in it.
    fn hear(&self, part: &str) -> Result<String> {
        let begin = Instant::now();
        let mut heard = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE.saturating_sub(begin.elapsed())) {
            if line.contains(part) {
                return Ok(line);
            }
            heard.push(line);
        }
        bail!("no '{part}' in\n{}", heard.join("\n"))
    }

    /// Its number of connections has come and gone.
    fn end(mut self, connections: usize, bytes: usize) -> Result<()> {
        self.hear(&format!("{connections} connections, {bytes} bytes"))?;
        let status = self.child.wait().context("the tool is lost")?;
        ensure!(status.success(), "it ends with {status}");
        Ok(())
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes that are another sequence for each seed (xorshift64*).
pub fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Says all of it, while it hears what comes back.
pub fn exchange(port: u16, said: &[u8]) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).context("cannot connect")?;
    stream.set_read_timeout(Some(PATIENCE)).context("no time limit")?;
    let mut heard = Vec::with_capacity(said.len());
    thread::scope(|scope| {
        let mut speaker = stream.try_clone().context("no second handle")?;
        let speaks = scope.spawn(move || {
            speaker.write_all(said)?;
            speaker.shutdown(Shutdown::Write)
        });
        stream.read_to_end(&mut heard).context("cannot read")?;
        speaks.join().map_err(|_| anyhow::anyhow!("the thread panicked"))?.context("cannot write")
    })?;
    let same = said.iter().zip(&heard).take_while(|(said, heard)| said == heard).count();
    ensure!(said == heard, "{} of {} bytes came back, of which {same} are right", heard.len(), said.len());
    Ok(())
}

fn ten_megabytes(_: &Bench<'_>) -> Result<Outcome> {
    for cores in ["1", "4"] {
        let echo = Echo::start(cores, 1, &[])?;
        exchange(echo.port, &bytes(1, 10_000_000)).with_context(|| format!("on {cores} cores"))?;
        echo.end(1, 10_000_000)?;
    }
    Ok(Outcome::Passed)
}

/// Of a hundred frames between the card and the forwarded port, each way, one is lost, one doubled, and one overtaken.
fn over_a_bad_network(_: &Bench<'_>) -> Result<Outcome> {
    for (cores, count) in [("1", 1_000_000), ("4", 10_000_000)] {
        let echo = Echo::start(cores, 1, &["--loss", "1"])?;
        exchange(echo.port, &bytes(7, count)).with_context(|| format!("on {cores} cores"))?;
        echo.end(1, count)?;
    }
    Ok(Outcome::Passed)
}

/// On `virt` a PL011, on `raspi4b` the mini UART.
fn over_a_line(_: &Bench<'_>) -> Result<Outcome> {
    const SOME: usize = 20;
    for (cores, more) in [("1", &["--line"][..]), ("4", &["--line"]), ("4", &["--line", "--board", "rpi4"])] {
        let place = || format!("on {cores} cores, {}", more.join(" "));
        let echo = Echo::start(cores, 1 + SOME, more).with_context(place)?;
        exchange(echo.port, &bytes(1, 1_000_000)).with_context(place)?;
        // Others at one moment.
        thread::scope(|scope| {
            let port = echo.port;
            let all: Vec<_> =
                (0..SOME).map(|who| scope.spawn(move || exchange(port, &bytes(who as u64, 2000)))).collect();
            all.into_iter()
                .try_for_each(|one| one.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
        })
        .with_context(place)?;
        echo.end(1 + SOME, 1_000_000 + SOME * 2000).with_context(place)?;
    }
    Ok(Outcome::Passed)
}

/// One after another, and as many open at once; no two begin at the same moment, because QEMU lets one at a time wait at a forwarded port.
fn many(_: &Bench<'_>) -> Result<Outcome> {
    const AFTER: usize = 300;
    const AT_ONCE: usize = 200;
    let echo = Echo::start("4", AFTER + AT_ONCE, &[])?;
    let mut sum = 0;
    for round in 0..AFTER {
        let said = bytes(round as u64, 1 + 7 * round);
        exchange(echo.port, &said).with_context(|| format!("connection {round}"))?;
        sum += said.len();
    }
    let mut open = Vec::new();
    for who in 0..AT_ONCE {
        let mut stream = TcpStream::connect(("127.0.0.1", echo.port)).context("cannot connect")?;
        stream.set_read_timeout(Some(PATIENCE)).context("no time limit")?;
        let mut heard = [0];
        stream
            .write_all(&[who as u8])
            .and_then(|()| stream.read_exact(&mut heard))
            .with_context(|| format!("connection {who}"))?;
        ensure!(heard == [who as u8], "connection {who} heard {heard:?}");
        open.push(stream);
    }
    for (who, mut stream) in open.into_iter().enumerate() {
        let (said, mut heard) = (bytes(who as u64, 1000), Vec::new());
        stream.write_all(&said).and_then(|()| stream.shutdown(Shutdown::Write)).context("cannot write")?;
        stream.read_to_end(&mut heard).context("cannot read")?;
        ensure!(said == heard, "connection {who} of those that were open at once");
        sum += 1 + said.len();
    }
    echo.end(AFTER + AT_ONCE, sum)?;
    Ok(Outcome::Passed)
}

fn killed(_: &Bench<'_>) -> Result<Outcome> {
    kill(40_000_000, &["--commands"])
}

/// On a line it takes longer.
fn killed_on_a_line(_: &Bench<'_>) -> Result<Outcome> {
    for more in [&["--commands", "--line"][..], &["--commands", "--line", "--board", "rpi4"]] {
        kill(1_000_000, more).with_context(|| more.join(" "))?;
    }
    Ok(Outcome::Passed)
}

fn kill(count: usize, more: &[&str]) -> Result<Outcome> {
    const KILLS: usize = 3;
    let mut echo = Echo::start("4", 1, more)?;
    let port = echo.port;
    let exchanges = thread::spawn(move || exchange(port, &bytes(2, count)));
    for kill in 0..KILLS {
        // It may be on its way to its name.
        loop {
            thread::sleep(Duration::from_millis(100));
            writeln!(echo.commands, "kill card").context("it takes no commands")?;
            if echo.hear("card is ").with_context(|| format!("kill {kill}"))?.contains("is killed") {
                break;
            }
        }
    }
    exchanges.join().map_err(|_| anyhow::anyhow!("the thread panicked"))??;
    echo.end(1, count)?;
    Ok(Outcome::Passed)
}

/// The example `http`: a page, and what is said to requests for others, and to what is none.
fn page(_: &Bench<'_>) -> Result<Outcome> {
    let asks = [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n"),
        ("GET /none HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "),
        ("POST / HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "),
        ("what?\r\n\r\n", "HTTP/1.1 400 "),
        ("", "HTTP/1.1 400 "),
    ];
    let argument = format!("pages={}", asks.len() + 1);
    let mut http = Echo::start_app(("http", 80), "4", &argument, "http://10.0.2.15:80/", &["--random"])?;
    let ask = |said: &[&str]| -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", http.port)).context("cannot connect")?;
        stream.set_read_timeout(Some(PATIENCE)).context("no time limit")?;
        for part in said {
            stream.write_all(part.as_bytes()).context("cannot write")?;
            thread::sleep(Duration::from_millis(20));
        }
        stream.shutdown(Shutdown::Write).context("cannot write")?;
        let mut heard = String::new();
        stream.read_to_string(&mut heard).context("cannot read")?;
        Ok(heard)
    };
    for (said, begins) in asks {
        let heard = ask(&[said])?;
        ensure!(heard.starts_with(begins), "{said:?} is answered by\n{heard}");
        let (head, body) = heard.split_once("\r\n\r\n").context("no head")?;
        ensure!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "another length:\n{heard}");
    }
    // In pieces, and it counts.
    let heard = ask(&["GET / HT", "TP/1.1\r\nHost: x\r\n", "\r\n"])?;
    ensure!(heard.contains("<p>5 pages before this one.</p>") && heard.contains("<tr><td>3<td>"), "{heard}");
    let status = http.child.wait().context("the tool is lost")?;
    ensure!(status.success(), "it ends with {status}");
    Ok(Outcome::Passed)
}

fn refused(_: &Bench<'_>) -> Result<Outcome> {
    let taken = TcpListener::bind("127.0.0.1:0").and_then(|taken| taken.local_addr().map(|at| (taken, at)));
    let (_taken, at) = taken.context("no port")?;
    let port = format!("{}:7", at.port());
    for (words, says) in [
        (&["--net", "--forward", "7"][..], "give two ports"),
        (&["--net", "--forward", &port], "cannot be taken"),
        (&["--forward", "1:2"], "add --net, or --line"),
        (
            &["--board", "rpi4", "--net"],
            "--net is for virt: QEMU's raspi4b has no devices of virtio; it has a network over its serial line: --line",
        ),
        (&["--line", "--net"], "cannot be used with"),
        (&["--line", "--forward", "7"], "give two ports"),
        (&["--line", "--forward", &port], "cannot be taken"),
    ] {
        let mut command = tool()?;
        command.args(["qemu", "echo", "--no-install"]).args(words);
        let said = Said::of(command)?;
        said.expect_status(2)?;
        ensure!(said.err.contains(says), "{words:?}: {}", said.err);
    }
    let mut without = tool()?;
    without.args(["qemu", "echo", "--no-install", "--smp", "2"]);
    Said::of(without)?
        .expect_status(1)?
        .expect_line("error: there is no network card: give QEMU one by --net --forward HOST:GUEST, or a serial line by --line in place of --net")?;
    // What the line is for, and no port for it; and a port for it at the end of `line` that is none.
    let mut line = tool()?;
    line.args(["line", "--port", "/dev/no-such-port"]);
    Said::of(line)?.expect_status(2)?.expect_error("there is no /dev/no-such-port: plug the adapter in")?;
    let mut line = tool()?;
    line.args(["line", "--port", "/dev/no-such-port", "--forward", &port]);
    Said::of(line)?.expect_status(2)?.expect_error("cannot be taken")?;
    Ok(Outcome::Passed)
}
