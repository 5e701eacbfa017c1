//! What single suites of this tree need: a machine of their own, and a look at what was built.

use super::instructions::check_instructions;
use crate::build::{Board, Executable, Features};
use crate::machine::{Machine, Size};
use crate::testing::Tally;
use anyhow::Result;

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

/// Looks at a suite that is built.
pub fn inspect(suite: &Executable, features: Features) -> Result<Tally> {
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
        DEVICES_SUITE if machine.board == Board::Virt => machine.memory.min(DEVICES_MEMORY),
        _ => machine.memory,
    };
    (!icount || machine.board == Board::Virt).then(|| Machine { icount, memory, ..machine.clone() })
}
