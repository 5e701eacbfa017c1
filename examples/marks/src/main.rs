//! Every core says what it does as fast as it can: marks in its trace, and now and then a line of its log. What nobody has read in time is
//! lost, and counted: `cargo xtask trace marks --smp 8`.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::vec::Vec;

use magpie::ExitCode;
use magpie::arch::CoreId;
use magpie::log::text;
use magpie::{machine, sched, trace};

magpie::entry!(marks);

/// Of each core.
const MARKS: u64 = 20_000;
/// A line of the log for so many marks.
const MARKS_PER_LINE: u64 = 1_000;

async fn marks() -> ExitCode {
    let mut started = Vec::new();
    for core in (0..machine::cores()).filter_map(CoreId::new) {
        match sched::Spawn::new().pinned(core).start(mark(core.index() as u32)) {
            Ok(process) => started.push(process),
            Err(_) => return ExitCode::Failure,
        }
    }
    let cores = started.len() as u64;
    for process in started {
        if process.await.is_err() {
            return ExitCode::Failure;
        }
    }
    text!(
        "{cores} cores have set {} marks and written {} lines",
        cores * MARKS,
        cores * MARKS / MARKS_PER_LINE
    );
    ExitCode::Success
}

/// What a core does: the marks' numbers follow each other, and so do the lines'.
async fn mark(core: u32) {
    for number in 0..MARKS {
        trace::mark(number, core);
        if number % MARKS_PER_LINE == 0 {
            defmt::info!("core {=u32} is at mark {=u64}", core, number);
        }
    }
}
