//! Runs the tests of every kind and counts them: `host` (unit tests, by cargo), the in-kernel suites on QEMU (by the library;
//! `suited` says what single ones need), `host_suites` (the portable ones of these, as programs), `proof` (models and
//! simulation), and the end-to-end tests of `crate::e2e`. `plan` says what a plain run takes of them. Each makes a list of
//! tasks, which the library runs; `load` makes the host busy meanwhile.

mod host;
mod host_suites;
mod instructions;
mod load;
mod plan;
mod proof;
mod suited;

pub use host::{host_tasks, unit_build_job};
pub use host_suites::{BUILD_JOB as HOST_BUILD_JOB, host_suite_tasks, title as host_title};
pub use load::Load;
pub use magpie_xtask::testing::{
    ALONE, KernelTests, Report, Tally, Task, kernel_tasks, processors, run_tasks, run_tasks_beside,
};
#[cfg(test)]
pub use plan::SLOW_CASES;
pub use plan::{ALL_CORES, Plan, SEEDS, VARIANTS};
pub use proof::{
    Checker, Depth, run_litmus, run_liveness, run_miri, run_models, run_simulation, run_thread_sanitizer,
};
pub use suited::{inspect, suited};
