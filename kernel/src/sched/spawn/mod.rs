//! Starting what a core runs: futures, procedures, residents, and the kernel's own errands.

mod builder;
pub(crate) mod detached;
mod early;
pub(crate) mod errand;
pub(crate) mod foreign;
pub(crate) mod later;
pub(crate) mod prepared;
pub(crate) mod repeat;
pub(crate) mod resident;
mod resident_process;
pub(crate) mod residents;
pub(crate) mod share;
mod task;
pub(crate) mod telling;

pub use builder::{Spawn, SpawnError, procedure, spawn};
pub use task::{JoinError, JoinHandle};
