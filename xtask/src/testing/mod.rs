//! Runs the tests of every kind and counts them: `host` (unit tests, by cargo), `kernel` (the in-kernel
//! suites, on QEMU), `host_suites` (the portable ones of these, as programs), and the end-to-end tests of `crate::e2e`. `report` reads what a suite says about
//! itself, `tally` adds everything up, `side_by_side` does several things at once.

mod host;
mod host_suites;
mod instructions;
mod kernel;
mod proof;
mod report;
mod side_by_side;
mod tally;

pub use host::run_host_tests;
pub use host_suites::run_host_suites;
pub use kernel::{KernelTests, run_kernel_tests};
pub use proof::{
    Checker, Depth, run_litmus, run_liveness, run_miri, run_models, run_simulation, run_thread_sanitizer,
};
pub use tally::Tally;
