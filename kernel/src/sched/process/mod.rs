//! What a core's scheduler runs: its header, whether it waits or runs, its priority, and what a turn comes to.
//!
//! Nothing here knows a core or a queue.

pub(crate) mod budget;
pub(crate) mod deadline;
mod header;
pub(crate) mod kill_count;
mod priority;
pub(crate) mod reductions;
mod resident;
pub(crate) mod run_state;
mod runnable;
mod share;
mod step;

pub(crate) use deadline::{Deadline, NEVER};
pub use header::{Header, ProcessRef, ProcessState};
pub(crate) use header::{PieceNow, VTable};
pub use priority::Priority;
pub(crate) use resident::{AtWork, Detached, EndOfPiece, Resident};
pub(crate) use runnable::Runnable;
pub(crate) use share::{Admission, Share, ShareRef};
pub use step::Step;
