//! A Magpie node (the examples `peer` and `cluster`) in a cluster with real Erlang nodes: `cluster/scenario.erl` drives it.
//!
//! Each case has a port mapper, a port and a cookie of its own, and an address of this machine's loopback for the guest, so that they run beside each other and beside whatever Erlang
//! there is.

use super::tool::tool;
use super::{Bench, Case, Outcome};
use crate::build::root;
use crate::progress::say;
use crate::setup::{Install, ready_erlang};
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    ("cluster::erlang_calls_magpie", erlang_calls),
    ("cluster::erlang_calls_magpie_on_one_core", erlang_calls_one_core),
    ("cluster::erlang_calls_a_raspberry_pi_over_a_serial_line", erlang_calls_over_a_line),
    ("cluster::magpie_calls_erlang", magpie_calls),
    ("cluster::a_raspberry_pi_calls_erlang_over_a_serial_line", magpie_calls_over_a_line),
    ("cluster::a_killed_machine_is_noticed", killed),
    ("cluster::another_machine_takes_over", failover),
    ("cluster::idle_nodes_stay_connected", idle),
    ("cluster::a_node_that_does_not_read_loses_nothing", stopped),
    ("cluster::an_erlang_application_hands_out_work", application),
    ("cluster::an_erlang_application_hands_out_work_over_a_serial_line", application_over_a_line),
];

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(240);

/// A program whose lines are heard.
struct Heard {
    child: Child,
    /// What it is told, where it is told something.
    told: Option<ChildStdin>,
    lines: Receiver<String>,
    heard: Vec<String>,
}

impl Heard {
    fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null());
        Self::start_told(command)
    }

    /// The same of one that reads as the command says.
    fn start_told(mut command: Command) -> Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child =
            command.spawn().with_context(|| format!("{:?} cannot be started", command.get_program()))?;
        let said = child.stdout.take().context("there is no pipe")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(said).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let told = child.stdin.take();
        Ok(Self { child, told, lines, heard: Vec::new() })
    }

    /// Waits for a line that has this in it.
    fn hear(&mut self, part: &str) -> Result<String> {
        let begin = Instant::now();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE.saturating_sub(begin.elapsed())) {
            self.heard.push(line.clone());
            if line.contains(part) {
                return Ok(line);
            }
        }
        bail!("no '{part}' in\n{}", self.heard.join("\n"))
    }

    /// It ends well.
    fn end(mut self) -> Result<Vec<String>> {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.heard.push(line);
        }
        let status = self.child.wait().context("it cannot be waited for")?;
        ensure!(status.success(), "it ends with {status}:\n{}", self.heard.join("\n"));
        Ok(std::mem::take(&mut self.heard))
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port mapper for Erlang nodes, and where a guest is to be.
struct Cluster {
    mapper: u16,
    address: String,
    port: u16,
    /// It is there as long as this is.
    _epmd: Option<Heard>,
}

/// Why there is no Erlang here.
fn erlang_is_missing() -> Option<Outcome> {
    ready_erlang(Install::Allowed)
        .err()
        .map(|reason| Outcome::Skipped(format!("Erlang is missing: {reason}")))
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).context("no port")?.port())
}

impl Cluster {
    /// With an address for the guest that no other case has.
    fn start(last: u8) -> Result<Self> {
        let (mapper, port) = (free_port()?, free_port()?);
        let mut epmd = Command::new("epmd");
        epmd.args(["-port", &mapper.to_string(), "-address", "127.0.0.1"]);
        let epmd = Heard::start(epmd)?;
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", mapper)).is_err() {
            ensure!(begin.elapsed() < PATIENCE, "the port mapper does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { mapper, address: format!("127.0.1.{last}"), port, _epmd: Some(epmd) })
    }

    /// The same cluster, for another guest.
    fn beside(&self) -> Self {
        Self { mapper: self.mapper, address: self.address.clone(), port: self.port, _epmd: None }
    }

    /// Boots an example as a node of it.
    fn guest(&self, example: &str, cores: &str, more: &str) -> Result<Heard> {
        self.guest_by(CARD, example, cores, more)
    }

    /// The same, with its network there.
    fn guest_by(&self, way: &[&str], example: &str, cores: &str, more: &str) -> Result<Heard> {
        let Self { mapper, address, port, .. } = self;
        let mut command = tool()?;
        command.args(["qemu", example, "--no-install", "--smp", cores]).args(way);
        command.args(["--forward", &format!("{address}:{mapper}:{mapper}")]);
        command.args(["--forward", &format!("{address}:{port}:{port}")]);
        command.args(["--append", &format!("node=magpie@{address} epmd={mapper} nodeport={port} {more}")]);
        if way.contains(&"--commands") {
            command.stdin(Stdio::piped());
            return Heard::start_told(command);
        }
        Heard::start(command)
    }

    /// An Erlang node that runs a function of a module that lies there. The guest reaches it by that name, too.
    fn erlang(&self, bench: &Bench<'_>, name: &str, source: &str, arguments: &[&str]) -> Result<Heard> {
        let stem = source.rsplit('/').next().and_then(|file| file.strip_suffix(".erl"));
        let mut command = self.erlang_command(bench, name, source)?;
        command.args(["-run", stem.context("no module")?, "main"]).args(arguments);
        Heard::start(command)
    }

    /// The same, with what it runs still to be said.
    fn erlang_command(&self, bench: &Bench<'_>, name: &str, source: &str) -> Result<Command> {
        let module = bench.folder.join("ebin");
        std::fs::create_dir_all(&module).context("no folder for modules")?;
        let compiled = Command::new("erlc").arg("-o").arg(&module).arg(root().join(source)).output();
        let compiled = compiled.context("erlc cannot be started")?;
        ensure!(compiled.status.success(), "{source}: {}", String::from_utf8_lossy(&compiled.stdout));
        let mut command = Command::new("erl");
        command.env("ERL_EPMD_PORT", self.mapper.to_string()).env("ERL_EPMD_ADDRESS", "127.0.0.1");
        command.env("HOME", &bench.folder);
        command.args(["-noshell", "-start_epmd", "false", "-name", name, "-setcookie", "magpie", "-pa"]);
        command.arg(module);
        Ok(command)
    }

    fn node(&self) -> String {
        format!("magpie@{}", self.address)
    }
}

const SCENARIO: &str = "xtask/src/e2e/cluster/scenario.erl";

/// What Erlang does with it.
const STEPS: [&str; 14] = [
    "ping",
    "calls",
    "by_pid",
    "casts",
    "crash",
    "links",
    "functions",
    "shapes",
    "nobody",
    "many",
    "long",
    "full",
    "reconnect",
    "cookie",
];

fn drive(bench: &Bench<'_>, way: &[&str], cores: &str, last: u8) -> Result<Outcome> {
    if let Some(skipped) = erlang_is_missing() {
        return Ok(skipped);
    }
    let cluster = Cluster::start(last)?;
    // Megabytes take long on a line.
    let is_slow = way.contains(&"--line");
    let mut guest = cluster.guest_by(way, "peer", cores, if is_slow { "frame=200000" } else { "" })?;
    guest.hear("is up")?;
    let node = cluster.node();
    let steps = STEPS.map(|step| if is_slow && step == "long" { "rather_long" } else { step });
    let mut arguments = vec![node.as_str()];
    arguments.extend(steps);
    let mut erlang = cluster.erlang(bench, "driver@127.0.0.1", SCENARIO, &arguments)?;
    if way.contains(&"--commands") {
        // In the middle of it the network's driver is killed: nothing of it is seen there.
        erlang.hear("ok ping")?;
        kill_driver(&mut guest)?;
        erlang.hear("ok functions")?;
        kill_driver(&mut guest)?;
    }
    let said = erlang.end()?;
    for step in steps {
        ensure!(
            said.iter().any(|line| line == &format!("ok {step}")),
            "no step {step} in\n{}",
            said.join("\n")
        );
    }
    Ok(Outcome::Passed)
}

fn kill_driver(guest: &mut Heard) -> Result<()> {
    loop {
        let told = guest.told.as_mut().context("it takes no commands")?;
        writeln!(told, "kill card").context("it takes no commands")?;
        // It may be on its way to its name.
        if !guest.hear("card is ")?.contains("not killed") {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn erlang_calls(bench: &Bench<'_>) -> Result<Outcome> {
    drive(bench, CARD, "4", 2)
}

fn erlang_calls_one_core(bench: &Bench<'_>) -> Result<Outcome> {
    drive(bench, CARD, "1", 3)
}

fn erlang_calls_over_a_line(bench: &Bench<'_>) -> Result<Outcome> {
    drive(bench, &[LINE, &["--commands"]].concat(), "4", 11)
}

/// Where a guest has its network: on a card, or on a line.
const CARD: &[&str] = &["--net"];
const LINE: &[&str] = &["--board", "rpi4", "--line"];

/// What this machine is called in the guest's network.
const HOST: &str = "10.0.2.2";

fn magpie_calls(bench: &Bench<'_>) -> Result<Outcome> {
    talk(bench, CARD, 4)
}

fn magpie_calls_over_a_line(bench: &Bench<'_>) -> Result<Outcome> {
    talk(bench, LINE, 12)
}

fn talk(bench: &Bench<'_>, way: &[&str], last: u8) -> Result<Outcome> {
    if let Some(skipped) = erlang_is_missing() {
        return Ok(skipped);
    }
    let cluster = Cluster::start(last)?;
    let name = format!("server@{HOST}");
    let mut erlang = cluster.erlang(bench, &name, SCENARIO, &[&cluster.node(), "serve"])?;
    erlang.hear("serving")?;
    let mut guest = cluster.guest_by(way, "peer", "4", &format!("to={name}"))?;
    for expected in [
        "connected to",
        "echo [1, -2, 9223372036854775807] 0.25 [0, 255]",
        "kept [3, 4, 5]",
        "silence Err(TimedOut)",
        "end Err(Ended(tired",
        "down true tired",
        "nobody true noproc",
        "left Some(noconnection",
        "talked: Ok(())",
    ] {
        guest.hear(expected)?;
    }
    Ok(Outcome::Passed)
}

/// The machine is gone from one moment to the next; Erlang hears of it within two seconds.
fn killed(bench: &Bench<'_>) -> Result<Outcome> {
    if let Some(skipped) = erlang_is_missing() {
        return Ok(skipped);
    }
    let cluster = Cluster::start(5)?;
    let mut guest = cluster.guest("peer", "2", "")?;
    guest.hear("is up")?;
    let mut erlang = cluster.erlang(bench, "driver@127.0.0.1", SCENARIO, &[&cluster.node(), "down"])?;
    erlang.hear("ready")?;
    drop(guest);
    erlang.end()?;
    Ok(Outcome::Passed)
}

/// Two machines, of which one is lost in the middle of the work: the application goes on with the other.
fn failover(bench: &Bench<'_>) -> Result<Outcome> {
    if let Some(skipped) = erlang_is_missing() {
        return Ok(skipped);
    }
    let cluster = Cluster::start(7)?;
    let second = Cluster { address: "127.0.1.8".to_owned(), port: free_port()?, ..cluster.beside() };
    let (mut one, mut other) = (cluster.guest("peer", "2", "")?, second.guest("peer", "2", "")?);
    one.hear("is up")?;
    other.hear("is up")?;
    let nodes = [cluster.node(), second.node()];
    let mut erlang =
        cluster.erlang(bench, "driver@127.0.0.1", SCENARIO, &["failover", &nodes[0], &nodes[1]])?;
    erlang.hear("working")?;
    thread::sleep(Duration::from_millis(300));
    drop(one);
    let killed = Instant::now();
    erlang.hear("took over after")?;
    say!("e2e cluster: the other machine takes over after {} ms", killed.elapsed().as_millis());
    erlang.end()?;
    Ok(Outcome::Passed)
}

/// Connections that are silent for a while are given up by both sides, and none is, because both say that they are there. For so many seconds:
/// `MAGPIE_IDLE_SECONDS=3600` is an hour. The while is two seconds, in a long run fifteen: this machine itself stands still for longer than two now and then.
fn idle(bench: &Bench<'_>) -> Result<Outcome> {
    if let Some(skipped) = erlang_is_missing() {
        return Ok(skipped);
    }
    let seconds = std::env::var("MAGPIE_IDLE_SECONDS").unwrap_or_else(|_| "15".to_owned());
    let cluster = Cluster::start(9)?;
    let whole: u64 = seconds.parse().context("MAGPIE_IDLE_SECONDS")?;
    let limit = (PATIENCE + Duration::from_secs(whole)).as_secs().to_string();
    let tick = if whole > 60 { 15 } else { 2 };
    let mut guest =
        cluster.guest_by(&["--net", "--timeout", &limit], "peer", "2", &format!("tick={tick}000"))?;
    guest.hear("is up")?;
    let mut command = cluster.erlang_command(bench, "driver@127.0.0.1", SCENARIO)?;
    command.args(["-kernel", "net_ticktime", &tick.to_string(), "-idle", &seconds]);
    command.args(["-run", "scenario", "main", &cluster.node(), "idle"]);
    Heard::start(command)?.end()?;
    Ok(Outcome::Passed)
}

/// Erlang is stopped in the middle of a flood: what was sent waits here, and comes when it goes on.
fn stopped(bench: &Bench<'_>) -> Result<Outcome> {
    const MESSAGES: u32 = 20_000;
    if let Some(skipped) = erlang_is_missing() {
        return Ok(skipped);
    }
    let cluster = Cluster::start(10)?;
    let name = format!("server@{HOST}");
    let mut erlang = cluster.erlang(bench, &name, SCENARIO, &[&cluster.node(), "serve"])?;
    erlang.hear("serving")?;
    let mut guest = cluster.guest("peer", "2", &format!("to={name} flood={MESSAGES}"))?;
    guest.hear("flooded 1000")?;
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &erlang.child.id().to_string()]).status();
        ensure!(status.is_ok_and(|status| status.success()), "kill {name} fails");
        Ok(())
    };
    signal("-STOP")?;
    thread::sleep(Duration::from_secs(3));
    // Not all of it is under way: it waits in the guest.
    let said: Vec<_> = guest.lines.try_iter().collect();
    signal("-CONT")?;
    let is_done = said.iter().any(|line| line.contains(&format!("flooded {MESSAGES}")));
    ensure!(!is_done, "nobody waited: {said:?}");
    guest.hear(&format!("counted {MESSAGES}"))?;
    guest.hear("flood: Ok(())")?;
    Ok(Outcome::Passed)
}

/// The example and its application, as the guide shows them.
fn application(bench: &Bench<'_>) -> Result<Outcome> {
    hand_out_work(bench, CARD, 6)
}

fn application_over_a_line(bench: &Bench<'_>) -> Result<Outcome> {
    hand_out_work(bench, LINE, 13)
}

fn hand_out_work(bench: &Bench<'_>, way: &[&str], last: u8) -> Result<Outcome> {
    if let Some(skipped) = erlang_is_missing() {
        return Ok(skipped);
    }
    let cluster = Cluster::start(last)?;
    let mut guest = cluster.guest_by(way, "cluster", "4", "")?;
    guest.hear("with 4 workers")?;
    let said = cluster
        .erlang(bench, "boss@127.0.0.1", "examples/cluster/cluster.erl", &[&cluster.node(), "4", "200000"])?
        .end()?;
    ensure!(said.iter().any(|line| line == "17984 primes below 200000"), "{}", said.join("\n"));
    ensure!(said.iter().any(|line| line.contains("its cores: 4")), "{}", said.join("\n"));
    Ok(Outcome::Passed)
}
