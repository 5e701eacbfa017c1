//! The command line, fed with random words and with changed valid commands. It may refuse; it may not panic, take much
//! memory, or let one word become several of QEMU's.
//!
//! Seeded, so a failure can be repeated: it names its seed (`MAGPIE_FUZZ` rounds from `MAGPIE_SEED` on).

use super::{CommandLine, Verb};
use crate::build::Image;
use crate::failure::{USAGE, status_of};
use crate::figures::{Grid, Spec};
use crate::machine::{Guest, Machine, Size, guest_command};
use crate::memory_count::most_during;
use crate::random::{Random, setting};
use crate::verbs;
use clap::Parser;
use magpie_xtask::verbs::{Verb as Shared, qemu};
use std::path::Path;
use std::time::Duration;

/// Commands as people give them.
const VALID: [&str; 15] = [
    "qemu wordcount --input book.txt --smp 16 --gic 3",
    "qemu --typed --smp 3",
    "qemu --el2 --memory 2G --timeout 5 --append seed=7 --commands",
    "qemu --board rpi4 --icount --cpu max --portable --no-install",
    "runner target/elf filter seed=1 --nocapture",
    "test --kernel sched --smp 1,2,4 --filter steal --timeout 9 --seed 3 --append a=b --verbose",
    "test --soak --board virt --memory 512M --gic 2 --el2",
    "bench bank thread-ring:100:20000 --cores 1,16 --smp 0 --activity",
    "bench thread-ring --wall --smp 1,2,4 --repeat 5 --json",
    "bench big --sweep sched.doze_us=0,20,100 --sweep sched.thieves=1,2 --append x",
    "verify --seeds 5 --seed 2 --miri-seeds 3",
    "image hello --board rpi4 --output card.img",
    "flash --board rpi4 --device /dev/sdX loader",
    "push hello --port /dev/ttyUSB0 --baud 9600 --wait 3 --once",
    "decode --elf x.elf stream.bin",
];
/// What words are replaced by.
const WORDS: [&str; 24] = [
    "",
    "-",
    "--",
    "-1",
    "0",
    "1",
    "65",
    "4294967296",
    "18446744073709551616",
    "1.5",
    "nan",
    "64M",
    "99999999999G",
    "M",
    "GiB",
    "1,2,,3",
    "a.b=1,2",
    "a.b=",
    "=",
    "bank:1:x",
    "é\u{301}",
    "\u{feff}",
    "--append",
    "-append -serial null",
];

fn word(random: &mut Random) -> String {
    match random.below(4) {
        // No program is given a zero byte.
        0 => {
            let length = if random.below(50) == 0 { 20_000 } else { random.below(12) };
            (0..length).map(|_| char::from_u32(1 + random.below(0x250) as u32).unwrap_or('x')).collect()
        }
        _ => WORDS[random.below(WORDS.len())].to_owned(),
    }
}

/// A valid command with some words changed, lost, doubled or added; or nothing but random words.
fn command(random: &mut Random) -> Vec<String> {
    let mut words: Vec<String> = match random.below(8) {
        0 => Vec::new(),
        _ => VALID[random.below(VALID.len())].split(' ').map(str::to_owned).collect(),
    };
    for _ in 0..random.below(5) {
        let at = random.below(words.len() + 1);
        match random.below(5) {
            0 => words.insert(at, word(random)),
            1 if at < words.len() => drop(words.remove(at)),
            2 if at < words.len() => words.insert(at, words[at].clone()),
            3 if at < words.len() => words[at] = word(random),
            4 if at < words.len() => {
                let other = word(random);
                words[at].push_str(&other);
            }
            _ => {}
        }
    }
    words
}

/// What is refused is refused with the status for that, and a line.
fn refused<T>(seed: u64, result: anyhow::Result<T>) -> Option<T> {
    result
        .inspect_err(|error| {
            assert_eq!(status_of(error), USAGE, "seed {seed}: {error}");
            assert!(!error.to_string().is_empty(), "seed {seed}");
        })
        .ok()
}

/// A machine is within its limits, and boot arguments are one word of QEMU's command.
fn check_guest(seed: u64, machine: Machine, arguments: &str) {
    assert!((1..=64).contains(&machine.cores), "seed {seed}: {machine:?}");
    assert!(machine.memory >= Size::from_mebibytes(64), "seed {seed}: {machine:?}");
    let guest = Guest {
        arguments: arguments.to_owned(),
        ..Guest::new(machine, Image { elf: "k".into(), flat: "k.img".into() }, Duration::from_secs(1))
    };
    let bare = guest_command(Path::new("qemu"), &Guest { arguments: "x".into(), ..guest.clone() });
    let full = guest_command(Path::new("qemu"), &guest);
    if !arguments.trim().is_empty() {
        assert_eq!(bare.get_args().count(), full.get_args().count(), "seed {seed}");
        let last = full.get_args().last().and_then(|word| word.to_str()).unwrap_or_default();
        assert!(last.ends_with(arguments.trim()), "seed {seed}");
    }
}

fn check(seed: u64, words: &[String]) {
    let given = ["xtask"].into_iter().chain(words.iter().map(String::as_str));
    match CommandLine::try_parse_from(given).map(|line| line.verb) {
        Ok(Verb::Shared(shared)) => {
            if let Shared::Qemu(shows) = &*shared
                && let Some((machine, arguments)) = refused(seed, qemu::checked(&shows.options))
            {
                check_guest(seed, machine, arguments);
            }
        }
        Ok(Verb::Bench(options)) => drop(refused(seed, verbs::bench::checked(&options))),
        Ok(Verb::Test(options)) => drop(refused(seed, verbs::test::check_machines(&options))),
        Ok(_) => {}
        // The message, too, is made without a panic.
        Err(error) => drop(error.to_string()),
    }
}

#[test]
fn no_command_breaks_it() {
    let first = setting("MAGPIE_SEED", 1);
    for seed in first..first + setting("MAGPIE_FUZZ", 5_000) {
        let words = command(&mut Random::new(seed));
        let bytes: usize = words.iter().map(String::len).sum();
        let most = most_during(|| check(seed, &words));
        assert!(most < (4 << 20) + 64 * bytes, "seed {seed}: {most} bytes");
    }
}

#[test]
fn every_valid_command_is_accepted() {
    for line in VALID {
        let given = ["xtask"].into_iter().chain(line.split(' '));
        assert!(CommandLine::try_parse_from(given).is_ok(), "{line}");
    }
}

#[test]
fn no_size_spec_or_sweep_breaks_its_reader() {
    let first = setting("MAGPIE_SEED", 1);
    for seed in first..first + setting("MAGPIE_FUZZ", 20_000) {
        let mut random = Random::new(seed);
        let words: Vec<String> =
            (0..1 + random.below(6)).map(|_| word(&mut random) + &word(&mut random)).collect();
        if let Ok(size) = words[0].parse::<Size>() {
            assert_eq!(size.to_string().parse(), Ok(size), "seed {seed}");
            refused(seed, Machine::new(random.below(100) as u32, size, None));
        }
        refused(seed, Spec::parse(&words[0]));
        if let Some(grid) = refused(seed, Grid::parse(&words)) {
            assert!(grid.combinations().len() <= crate::figures::MAX_COMBINATIONS, "seed {seed}");
        }
    }
}
