//! The schedulers: one for each core, in the style of the BEAM.
//!
//! What a core runs is a [`process`]; the [`core_loop`] picks it from the core's [`run_queue`], and the
//! timer may suspend it ([`preempt`]). A core with nothing to run searches the others ([`steal`],
//! [`victim`], [`migration`]), then waits ([`idle`]); the last to wait finds out that the system has run
//! [`out_of_work`].

mod balance;
mod calls;
#[cfg(target_os = "none")]
mod collect;
mod core_loop;
mod cores;
pub(crate) mod crash;
#[cfg(feature = "checks")]
pub(crate) mod damage;
mod detached;
mod dispatch;
mod enqueue;
mod errand;
mod foreign;
mod global;
#[cfg(target_os = "none")]
mod halt;
pub(crate) mod here;
#[cfg(not(target_os = "none"))]
mod host;
mod idle;
mod later;
mod load;
mod migration;
mod offline;
mod out_of_work;
pub(crate) mod preempt;
mod priority;
mod process;
mod reductions;
mod resident;
mod residents;
mod run_queue;
mod settings;
mod sharing;
mod spawn;
pub(crate) mod start;
mod steal;
mod step;
pub(crate) mod stop;
mod task;
mod victim;
mod waker;
mod yield_now;

pub use dispatch::{Dispatch, current as dispatch, set as set_dispatch};
pub(crate) use here::{at_work_here, core_here, has_more_here, is_in_resident};
pub use here::{current_core, current_process};
#[cfg(not(target_os = "none"))]
pub use host::{HostError, run_on_threads};
pub(crate) use idle::{some_core_is_idle, wake_thief};
pub(crate) use later::Later;
pub use load::{CoreLoad, Load, LoadMonitor};
pub use migration::Rule;
pub use offline::{OfflineError, is_online, offline, online};
pub use out_of_work::{ExternalSource, OutOfWork, out_of_work};
pub use priority::Priority;
pub use process::{Header, ProcessRef};
pub use reductions::{charge, is_exhausted};
pub(crate) use resident::{AtWork, Detached, Resident, spawn as spawn_resident};
#[cfg(feature = "checks")]
pub(crate) use residents::rouse_all;
pub(crate) use settings::ticks as setting_ticks;
pub use settings::{Setting, SettingError, all as settings, get as setting, set as set_setting, set_by_name};
pub(crate) use sharing::Worth;
pub use spawn::{Spawn, SpawnError, live_processes, procedure, spawn};
pub(crate) use step::Step;
pub use stop::request as stop;
pub use task::{JoinError, JoinHandle};
pub use victim::VictimRule;
pub(crate) use waker::{process_of, timers_of};
pub use yield_now::{YieldNow, yield_now};
