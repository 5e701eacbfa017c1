//! The benchmark image: runs the benchmarks that the boot arguments name and prints one line for each.
//!
//! Boot arguments: `bench=NAME:P1:P2,NAME,...` (default: all, with the parameters that the peers were measured
//! with), `workers=N`, `mailboxes=N` (of all workers together), `steal=0|1`, `repeat=N`, `doubt` (every check of a
//! result fails). A line is
//!
//! ```text
//! @bench NAME ops=N ns=N workers=N steal=0|1 parameters=N:N turns=N wakes=N mailbox_steals=N
//!     process_steals=N mailbox_attempts=N process_attempts=N dozes=N sleeps=N
//!     [median=N p99999=N most=N histogram=FROM:N,...] [bytes=N]
//! ```
//!
//! on one line. From `turns` on they are what the kernel counted on all cores during the benchmark: turns of
//! processes (workers among them), idle cores woken by another, mailboxes and processes stolen, searches for a
//! mailbox and victims tried for a process, waits for an event (dozes) and for an interrupt (sleeps). A histogram's
//! buckets are those with samples: from how many nanoseconds on, up to an eighth more or the next bucket's, and how many.
//!
//! Time runs from just before the first message or spawn to the last message handled. Under QEMU's `-icount
//! shift=0` a nanosecond is an instruction. What one operation is, and every parameter, is defined by the
//! peers' benchmarks, see `docs/performance.md`; for the programs of the Savina suite, by the file of each in
//! `figures/savina/`. Those check their own result: a wrong one is said as text, and the image ends with failure.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod activity;
mod busy;
#[cfg(target_os = "none")]
mod device;
mod driver;
mod failed;
mod figures;
mod latency;
mod random;
mod run;
mod stopwatch;
mod verdict;

use magpie_boot::ExitCode;

magpie_boot::entry!(bench);

async fn bench() -> ExitCode {
    stopwatch::main_begins();
    run::all().await
}
