//! Boots suites of tests in the kernel, and counts: `kernel` makes a task of each boot, `task` runs tasks,
//! `side_by_side` several at once, `report` reads what a suite says about itself, `tally` adds everything up.

mod kernel;
mod report;
mod side_by_side;
mod tally;
mod task;

pub use kernel::{KernelTests, kernel_tasks};
pub use report::Report;
pub use side_by_side::processors;
pub use tally::Tally;
pub use task::{ALONE, Task, run_tasks, run_tasks_beside};
