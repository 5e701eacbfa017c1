//! The benchmark image: runs the benchmarks that the boot arguments name and prints one line for each.
//!
//! Boot arguments: `bench=NAME:P1:P2,NAME,...` (default: all, with the parameters that the peers were measured
//! with), `workers=N`, `steal=0|1`, `repeat=N`. A line is
//!
//! ```text
//! @bench NAME ops=N ns=N workers=N steal=0|1 [bytes=N]
//! ```
//!
//! Time runs from just before the first message or spawn to the last message handled. Under QEMU's `-icount
//! shift=0` a nanosecond is an instruction. What one operation is, and every parameter, is defined by the
//! peers' benchmarks; see `docs/performance.md`.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod driver;
mod figures;
mod run;
mod stopwatch;

use magpie_boot::ExitCode;

magpie_boot::entry!(bench);

async fn bench() -> ExitCode {
    run::all().await
}
