//! The schedulers: one for each core, in the style of the BEAM.
//!
//! What a core runs is a [`process`]; the [`core_loop`] picks it from the core's [`run_queue`], and the
//! timer may suspend it ([`preempt`]). A core with nothing to run searches the others ([`steal`],
//! [`victim`], [`migration`]), then waits ([`idle`]); the last to wait finds out that the system has run
//! [`out_of_work`].

mod balance;
mod core_loop;
mod cores;
mod crash;
#[cfg(feature = "checks")]
pub mod damage;
mod detached;
mod dispatch;
mod enqueue;
mod global;
mod here;
#[cfg(not(target_os = "none"))]
mod host;
mod idle;
mod load;
mod migration;
mod offline;
mod out_of_work;
mod preempt;
mod priority;
mod process;
mod reductions;
mod resident;
mod residents;
mod run_queue;
mod settings;
mod spawn;
mod start;
mod steal;
mod step;
mod stop;
mod task;
mod victim;
mod waker;
mod yield_now;

pub use crash::{Cause, can_end_current, end_current};
pub use dispatch::{Dispatch, current as dispatch, set as set_dispatch};
pub use here::{current_core, current_process};
#[cfg(not(target_os = "none"))]
pub use host::{HostError, run_on_threads};
pub(crate) use idle::{some_core_is_idle, wake_thief};
pub use load::{CoreLoad, Load, LoadMonitor};
pub use migration::Rule;
pub use offline::{OfflineError, is_online, offline, online};
pub use out_of_work::{ExternalSource, OutOfWork, out_of_work};
pub use priority::Priority;
pub use process::{Header, ProcessRef};
pub use reductions::{charge, is_exhausted};
pub use resident::{Detached, Resident, Wake, spawn as spawn_resident};
#[cfg(feature = "checks")]
pub(crate) use residents::rouse_all;
pub use settings::{Setting, SettingError, all as settings, get as setting, set as set_setting, set_by_name};
pub use spawn::{Spawn, SpawnError, live_processes, procedure, spawn};
pub use start::{enter, prepare};
pub use step::Step;
pub use stop::{on_deadlock, request as stop};
pub use task::{JoinError, JoinHandle};
pub use victim::VictimRule;
pub use yield_now::{YieldNow, yield_now};
