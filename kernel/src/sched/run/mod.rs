//! What each core runs: its loop, slices and preemption, idleness and theft, balancing, and how all of it starts and ends.

mod aside;
mod attention;
mod balance;
mod beneath;
#[cfg(target_os = "none")]
mod collect;
mod core_loop;
pub(crate) mod crash;
#[cfg(feature = "checks")]
pub(crate) mod damage;
mod due;
pub(crate) mod ending;
mod fresh;
pub(crate) mod give_back;
#[cfg(target_os = "none")]
mod halt;
#[cfg(not(target_os = "none"))]
mod host;
mod idle;
#[cfg(target_os = "none")]
pub(crate) mod kernel_panic;
pub(crate) mod kill;
mod link;
#[cfg(target_os = "none")]
pub(crate) mod look_round;
mod migrate;
mod offline;
mod out_of_work;
mod post_mortem;
mod preempt;
pub(crate) mod quiescence;
pub(crate) mod remains;
pub(crate) mod reserve;
mod resume;
pub(crate) mod shield;
pub(crate) mod slice;
pub(crate) mod start;
mod steal;
pub(crate) mod stop;
mod victim;
#[cfg(target_os = "none")]
pub(crate) mod watchdog;
#[cfg(target_os = "none")]
mod whereabouts;
pub(crate) mod written;

#[cfg(not(target_os = "none"))]
pub use host::{HostError, run_on_threads};
pub use offline::{OfflineError, is_online, offline, online};
pub use out_of_work::{ExternalSource, OutOfWork, out_of_work};
