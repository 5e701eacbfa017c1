//! What single suites of this tree need: a machine of their own, and a look at what was built.

use super::instructions::check_instructions;
use crate::build::{Board, Executable, Features, root};
use crate::machine::{Attached, Console, Disk, Machine, Net, Size};
use crate::testing::Tally;
use anyhow::{Context, Result};
use std::fs::File;
use std::path::PathBuf;

/// The suite of the hand-written exclusives.
const ASM_SUITE: &str = "asm";

/// The suite of the bounds in slices: only on machines whose time is counted in instructions.
const COUNTED_SUITE: &str = "bounds";

/// The suite that uses memory up, so one of its machines is small.
const MEMORY_SUITE: &str = "containment";
const SMALL_CORES: u32 = 3;
const SMALL_MEMORY: Size = Size::from_mebibytes(64);

/// The suite of devices: it uses memory up, too, several times, and less of it takes less time.
const DEVICES_SUITE: &str = "devices";
const DEVICES_MEMORY: Size = Size::from_mebibytes(128);

/// The suite of drivers: there are devices to drive. On one core they are of the legacy kind.
const DRIVERS_SUITE: &str = "drivers";
const DISK_BYTES: u64 = 4 << 20;

/// The suite of the network: on sixteen cores they have an instruction for random numbers, which is tried there.
const NET_SUITE: &str = "net";
const RANDOM_CORES: u32 = 16;
const RANDOM_CPU: &str = "max";

/// The suite of what the Raspberry Pi 4 has.
const PI_SUITE: &str = "pi";

/// The disk of the one, and the card of the other: all zeros, and what is written is forgotten.
fn disk() -> PathBuf {
    root().join("target/tests.disk")
}

fn attached(machine: &Machine, suite: &str) -> Attached {
    if suite == PI_SUITE {
        let card = Some(Disk { file: disk(), is_kept: false });
        // A thermometer, and a memory.
        let i2c = vec![("tmp105", 0x48), ("at24c-eeprom,rom-size=256", 0x50)];
        return Attached { card, i2c, line: Some(Net::default()), ..Attached::default() };
    }
    if suite != DRIVERS_SUITE || machine.board != Board::Virt {
        return Attached::default();
    }
    let disk = Some(Disk { file: disk(), is_kept: false });
    let net = Some(Net::default());
    let is_legacy = machine.cores == 1;
    let (console, line) = (Some(Console::Nobody), Some(Net::default()));
    Attached { disk, has_random: true, net, line, console, is_legacy, ..Attached::default() }
}

/// Looks at a suite that is built, and makes what it needs.
pub fn inspect(suite: &Executable, features: Features) -> Result<Tally> {
    if [DRIVERS_SUITE, PI_SUITE].contains(&suite.name.as_str()) {
        let made = File::create(disk()).and_then(|file| file.set_len(DISK_BYTES));
        made.context("cannot make the disk of a suite of drivers")?;
    }
    if suite.name == ASM_SUITE && features == Features::default() {
        return check_instructions(&suite.path);
    }
    Ok(Tally::default())
}

/// The machine as a suite needs it; `None` if there is none. A clock decides in one suite alone, where a nanosecond
/// is an instruction, and that is for `virt`.
pub fn suited(machine: &Machine, suite: &str) -> Option<Machine> {
    let icount = suite == COUNTED_SUITE;
    let is_small = suite == MEMORY_SUITE && machine.board == Board::Virt && machine.cores == SMALL_CORES;
    let memory = match suite {
        _ if is_small => machine.memory.min(SMALL_MEMORY),
        DEVICES_SUITE | DRIVERS_SUITE | NET_SUITE if machine.board == Board::Virt => {
            machine.memory.min(DEVICES_MEMORY)
        }
        _ => machine.memory,
    };
    // Neither has the other's devices.
    let has_it = match suite {
        COUNTED_SUITE | DRIVERS_SUITE => machine.board == Board::Virt,
        PI_SUITE => machine.board == Board::Rpi4,
        _ => true,
    };
    has_it.then(|| {
        let attached = attached(machine, suite);
        let draws = suite == NET_SUITE && machine.board == Board::Virt && machine.cores == RANDOM_CORES;
        let cpu = if draws { RANDOM_CPU.to_owned() } else { machine.cpu.clone() };
        Machine { icount, memory, attached, cpu, ..machine.clone() }
    })
}
