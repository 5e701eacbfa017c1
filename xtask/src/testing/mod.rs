//! Runs the tests of every kind and counts them: `host` (unit tests, by cargo), `kernel` (the in-kernel
//! suites, on QEMU), `host_suites` (the portable ones of these, as programs), `proof` (models and simulation), and the
//! end-to-end tests of `crate::e2e`. `plan` says what a plain run takes of them. Each makes a list of tasks; `task` runs
//! them, `side_by_side` several at once, `load` makes the host busy meanwhile. `report` reads what a suite says about
//! itself, `tally` adds everything up.

mod host;
mod host_suites;
mod instructions;
mod kernel;
mod load;
mod plan;
mod proof;
mod report;
mod side_by_side;
mod tally;
mod task;

pub use host::{host_tasks, unit_build_job};
pub use host_suites::{BUILD_JOB as HOST_BUILD_JOB, host_suite_tasks, title as host_title};
pub use kernel::{KernelTests, kernel_tasks, suited};
pub use load::Load;
#[cfg(test)]
pub use plan::SLOW_CASES;
pub use plan::{ALL_CORES, Plan, SEEDS, VARIANTS};
pub use proof::{
    Checker, Depth, run_litmus, run_liveness, run_miri, run_models, run_simulation, run_thread_sanitizer,
};
pub use side_by_side::processors;
pub use tally::Tally;
pub use task::{ALONE, Task, run_tasks, run_tasks_beside};
