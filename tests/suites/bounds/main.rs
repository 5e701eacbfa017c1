//! Bounds in numbers: the promises of `docs/scheduling.md` that speak of slices and of shares.
//!
//! Booted under QEMU's `-icount` alone, where a nanosecond of the guest is an instruction, whatever the host does
//! meanwhile: only there may a clock decide a test.
#![no_std]
#![no_main]

extern crate alloc;

mod actors;
mod appends;
mod awaited;
mod crashes;
mod crowds;
mod deadlines;
mod dense;
mod hand;
mod hogs;
mod killed;
mod locked_appends;
mod longest;
mod missed;
mod quiet;
mod room;
mod spinning;
mod timers;
mod urgency;
mod waiting;

use core::time::Duration;

use magpie::machine;
use magpie::sched::{self, Setting};
use magpie_tests::{Failure, Outcome};

magpie_tests::suite!();

/// What is left of a bound beside its slices: the interrupt, the switch, sections without preemption (all far less than
/// this), and the turns of the other virtual cores, during which the clock of all goes on: at most to the next timer,
/// shared among them, which is half a slice.
const SLACK: Duration = Duration::from_micros(500);

fn slice() -> Duration {
    Duration::from_micros(sched::setting(Setting::SliceMicroseconds))
}

/// Fails on a machine whose time passes by itself.
fn needs_counted_time() -> Outcome {
    match machine::argument("counted") {
        Some(_) => Ok(()),
        None => Err(Failure(
            "time is not counted in instructions here; run `cargo xtask test --kernel bounds`, or set \
             MAGPIE_ICOUNT=1 MAGPIE_APPEND=counted"
                .into(),
        )),
    }
}

/// The longest of what was measured, which must not be above the bound.
fn within(longest: Duration, bound: Duration, what: &str) -> Outcome {
    if longest <= bound {
        return Ok(());
    }
    Err(Failure(alloc::format!("{what}: {} us, bound {} us", longest.as_micros(), bound.as_micros())))
}
