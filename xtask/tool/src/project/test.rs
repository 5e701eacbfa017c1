//! A project's `cargo xtask test`: its suites in the kernel, on one core and on several. `cargo test` boots each once, and runs
//! the tests on the host besides.

use crate::build::{Board, Features, Workspace};
use crate::failure::{FAILURE, INTERRUPTED, SUCCESS, usage};
use crate::machine::{Attached, Disk, Machine, Net, Size, catch_interrupts, interrupted};
use crate::setup::{Install, OLDEST_FOR_RASPI4B, OLDEST_FOR_VIRT, Qemu, ready_target};
use crate::testing::{KernelTests, Tally, kernel_tasks, processors, run_tasks};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// What it accepts.
#[derive(Args)]
pub struct Options {
    /// The suite [default: all]
    suite: Option<String>,
    /// Numbers of cores [default: 1,4]
    #[arg(long, value_name = "N,...", value_delimiter = ',', conflicts_with = "board")]
    smp: Vec<u32>,
    /// Boot on this board [default: virt]
    #[arg(long)]
    board: Option<Board>,
    /// Run the tests whose name contains this
    #[arg(long, value_name = "SUBSTRING")]
    filter: Option<String>,
    /// The guest's memory, like 512M or 2G
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    memory: Size,
    /// The file that is the guest's disk: a virtio one. What a test writes is forgotten
    #[arg(long, value_name = "FILE", conflicts_with = "board")]
    disk: Option<PathBuf>,
    /// Give the guest a virtio network card, on a network of QEMU's own
    #[arg(long, conflicts_with = "board")]
    net: bool,
    /// Give the guest a virtio source of random numbers
    #[arg(long, conflicts_with = "board")]
    random: bool,
    /// More boot arguments, words of the form key=value
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// After how many seconds to end a guest
    #[arg(long, value_name = "SECONDS", default_value_t = 1200, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Show what the guests print although nothing failed
    #[arg(long, short)]
    verbose: bool,
    /// Never install anything: stop with status 2 when something is missing
    #[arg(long)]
    no_install: bool,
}

const CORES: [u32; 2] = [1, 4];

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    let machines = machines(options)?;
    if options.filter.as_ref().is_some_and(|filter| filter.contains(char::is_whitespace)) {
        return Err(usage("--filter cannot contain blanks; give one word of the test's name"));
    }
    let workspace = Workspace::load()?;
    let suites = match &options.suite {
        Some(name) if workspace.suites().contains(&name.as_str()) => vec![name.as_str()],
        Some(name) => return Err(usage(format!("there is no suite '{name}'; {}", known(&workspace)))),
        None if workspace.suites().is_empty() => return Err(usage(known(&workspace))),
        None => workspace.suites(),
    };
    let install = Install::unless(options.no_install);
    ready_target(install)?;
    let on_board = options.board == Some(Board::Rpi4);
    let qemu = Qemu::ready(if on_board { OLDEST_FOR_RASPI4B } else { OLDEST_FOR_VIRT }, install)?;
    catch_interrupts()?;
    let mut total = Tally::default();
    for suite in suites {
        let (tally, tasks) = kernel_tasks(KernelTests {
            qemu: &qemu,
            package: workspace.package_of_suite(suite).unwrap_or_default(),
            boots: machines.iter().map(|machine| (suite, machine.clone())).collect(),
            arguments: arguments(options),
            limit: Duration::from_secs(options.timeout),
            features: Features { board: options.board.unwrap_or_default(), ..Features::default() },
            verbose: options.verbose,
            inspect: |_, _| Ok(Tally::default()),
        })?;
        total.add(tally);
        total.add(run_tasks(tasks, if options.verbose { 1 } else { processors() })?);
    }
    for failure in &total.failures {
        println!("  {failure}");
    }
    if !interrupted() && total == Tally::default() {
        match &options.filter {
            Some(filter) => println!("no test's name contains '{filter}'"),
            None => println!("no test was run: kernel_test! declares one"),
        }
    }
    println!("{total}");
    Ok(match (interrupted(), total.is_success()) {
        (true, _) => INTERRUPTED,
        (false, true) => SUCCESS,
        (false, false) => FAILURE,
    })
}

fn machines(options: &Options) -> Result<Vec<Machine>> {
    if options.board == Some(Board::Rpi4) {
        return Ok(vec![Machine::raspi4b()]);
    }
    let cores = if options.smp.is_empty() { &CORES[..] } else { &options.smp };
    let disk = options.disk.as_deref().map(Disk::checked).transpose()?;
    // Each guest finds it as it was.
    let disk = disk.map(|disk| Disk { is_kept: false, ..disk });
    let net = options.net.then(Net::default);
    let attached = Attached { disk, has_random: options.random, net, ..Attached::default() };
    let machine = |cores: &u32| {
        Ok(Machine { attached: attached.clone(), ..Machine::new(*cores, options.memory, None)? })
    };
    cores.iter().map(machine).collect()
}

fn arguments(options: &Options) -> String {
    let filter = options.filter.as_ref().map(|filter| format!("filter={filter}"));
    let words: Vec<_> = filter.into_iter().chain([options.append.clone()]).collect();
    words.join(" ").trim().to_owned()
}

fn known(workspace: &Workspace) -> String {
    match workspace.suites().as_slice() {
        [] => "there are no suites: a [[test]] with harness = false that ends with magpie_test::suite!();"
            .into(),
        suites => format!("known suites: {}", suites.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, machines};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn attached(words: &[&str]) -> Vec<String> {
        let line = Line::try_parse_from([&["test"], words].concat()).unwrap();
        machines(&line.options)
            .unwrap()
            .iter()
            .map(|machine| machine.attached.arguments().join(" "))
            .collect()
    }

    #[test]
    fn devices_hang_on_every_machine_of_a_test() {
        assert_eq!(attached(&[]), ["", ""]);
        let all = attached(&["--smp", "1,2,4", "--net", "--random"]);
        assert_eq!(all.len(), 3);
        assert!(
            all.iter()
                .all(|words| words.contains("virtio-net-device") && words.contains("virtio-rng-device"))
        );
        let file = std::env::temp_dir().join(format!("magpie-test-disk-{}", std::process::id()));
        std::fs::write(&file, [0; 512]).unwrap();
        let with_disk = attached(&["--disk", file.to_str().unwrap()]);
        std::fs::remove_file(&file).unwrap();
        assert!(with_disk.iter().all(|words| words.contains("snapshot=on")), "{with_disk:?}");
        assert!(Line::try_parse_from(["test", "--board", "rpi4", "--random"]).is_err());
    }
}
