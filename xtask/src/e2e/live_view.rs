//! The live view as a user has it: in a terminal, of 80 columns and 24 rows first and of more later, with keys pressed. See `tmux`.

use super::pty::{self, Damage};
use super::push::on_socket;
use super::tmux::{PATIENCE, Tmux};
use super::{Bench, Case, Outcome};
use crate::build::{Features, build_application, write_flat};
use crate::machine::{Guest, Machine, Size};
use crate::setup::Qemu;
use anyhow::{Context, Result, ensure};
use std::thread;
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    ("live_view::pages_are_seen_and_a_setting_is_changed", pages),
    ("live_view::a_board_is_seen_at_a_serial_port", at_a_port),
    ("live_view::it_ends_with_its_terminal", lost_terminal),
];

/// A terminal with the live view of `idle`, which is told so many seconds; `None` without tmux.
fn view(bench: &Bench<'_>, name: &str, seconds: u32) -> Result<Option<Tmux>> {
    let words = format!(
        "top idle --no-install --smp 4 --append seconds={seconds} --timeout {}",
        bench.limit.as_secs()
    );
    Tmux::start(bench.folder.join(name), &words)
}

/// QEMU stands for the board, and a pseudo-terminal for the line to it. Its image was started long ago, and takes commands.
fn at_a_port(bench: &Bench<'_>) -> Result<Outcome> {
    let qemu = Qemu::find().context("QEMU is missing")?;
    let features = Features { traced: true, ..Features::default() };
    let image = write_flat(&build_application("idle", features)?)?;
    let elf = image.elf.clone();
    let machine = Machine::new(2, Size::from_mebibytes(512), None)?;
    let arguments = "seconds=100000 commands".into();
    let guest = Guest { arguments, ..Guest::new(machine, image, bench.limit) };
    let socket = bench.folder.join("top.sock");
    let _board = on_socket(&qemu, &guest, &socket, "off")?;
    // What it is asked first is lost, as where it still boots.
    let lost = Damage { one_of: 1, changes: false, until: 25 };
    let port = pty::to(&socket, Some(lost))?;
    let words = format!("top --port '{}' --elf '{}'", port.display(), elf.display());
    let Some(tmux) = Tmux::start(bench.folder.join("tmux-port"), &words)? else { return Ok(Tmux::missing()) };
    tmux.expect(&["Magpie: 2 cores", "busiest, by time"])?;
    tmux.press(&["2"])?;
    tmux.expect(&["Magpie: Processes, ", "listen::listen", "trace::send"])?;
    tmux.press(&["q"])?;
    Ok(Outcome::Passed)
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
    let Some(tmux) = view(bench, "tmux-lost", SECONDS)? else { return Ok(Tmux::missing()) };
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

fn pages(bench: &Bench<'_>) -> Result<Outcome> {
    let Some(tmux) = view(bench, "tmux", 100_000)? else { return Ok(Tmux::missing()) };
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
    tmux.press(&["s", "s"])?;
    tmux.expect(&[", by waiting"])?;
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
