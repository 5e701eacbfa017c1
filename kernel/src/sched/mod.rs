//! The schedulers: one for each core, in the style of the BEAM.
//!
//! From the ground: what is run ([`process`]); what is decided by ([`policy`]); each core's queues ([`cores`]); where
//! what is runnable goes, and whom that wakes ([`place`]); how something is started ([`spawn`](self::spawn)); and what each
//! core does all the time ([`run`]). A room uses only those named before it.

pub(crate) mod cores;
mod place;
mod policy;
pub(crate) mod process;
pub(crate) mod run;
mod spawn;

pub(crate) use cores::here::{at_work_here, core_here, has_more_here, is_in_resident};
pub use cores::here::{current_core, current_process};
pub use cores::population::live_processes;
pub use cores::{CoreLoad, Load, LoadMonitor};
pub(crate) use place::wake::{some_core_is_idle, wake_thief};
pub(crate) use place::waker::{process_of, timers_of};
pub use policy::dispatch::Dispatch;
pub use policy::migration::Rule;
pub(crate) use policy::settings::ticks as setting_ticks;
pub use policy::settings::{
    Setting, SettingError, all as settings, get as setting, set as set_setting, set_by_name,
};
pub(crate) use policy::sharing::Worth;
pub use policy::tuning;
pub use policy::victim::VictimRule;
pub use process::reductions::{charge, is_exhausted};
pub(crate) use process::{AtWork, Detached, Resident, Step};
pub use process::{Header, Priority, ProcessRef, YieldNow, yield_now};
pub use run::stop::request as stop;
pub use run::{ExternalSource, OfflineError, OutOfWork, is_online, offline, online, out_of_work};
#[cfg(not(target_os = "none"))]
pub use run::{HostError, run_on_threads};
pub(crate) use spawn::later::{Later, Waiting};
pub(crate) use spawn::resident::spawn as spawn_resident;
#[cfg(feature = "checks")]
pub(crate) use spawn::residents::wake_all as wake_all_residents;
pub use spawn::{JoinError, JoinHandle, Spawn, SpawnError, procedure, spawn};
