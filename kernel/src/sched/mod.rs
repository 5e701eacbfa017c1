//! The schedulers: one for each core, in the style of the BEAM.
//!
//! A process is a future, or a procedure, that [`spawn`](fn@spawn) starts, or [`Spawn`] with a priority and some cores of its
//! own. What it takes of its turn it is charged for; what computes long without awaiting anything charges itself:
//!
//! ```
//! # use magpie::sched;
//! # sched::run_on_threads(2, 1, async {
//! let mut sum = 0;
//! for block in 0..100_u64 {
//!     sum += (block * 1000..(block + 1) * 1000).sum::<u64>();
//!     // As dear as a hundred messages.
//!     sched::charge(100);
//!     if sched::is_exhausted() {
//!         sched::yield_now().await;
//!     }
//! }
//! # assert_eq!(sum, (0..100_000).sum());
//! # }).unwrap();
//! ```
//!
//! The schedulers can be steered while they run, by settings ([`tuning`] has them with their types) and by taking cores
//! out of service:
//!
//! ```
//! use magpie::arch::CoreId;
//! use magpie::sched::{self, Setting, SettingError};
//!
//! # sched::run_on_threads(2, 1, async {
//! sched::set_setting(Setting::StealBatch, 16)?;
//! assert_eq!(sched::setting(Setting::StealBatch), 16);
//!
//! // By name, as somebody types it.
//! sched::set_by_name("sched.slice_us", 500)?;
//! assert!(sched::settings().any(|(name, value)| name == "sched.slice_us" && value == 500));
//! assert_eq!(sched::set_by_name("sched.slices", 500), Err(SettingError::Unknown));
//!
//! if let Some(last) = CoreId::new(1) {
//!     sched::offline(last)?;
//!     assert!(!sched::is_online(last));
//!     sched::online(last)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! Inside, from the ground: what is run (`process/`); what is decided by (`policy/`); each core's queues (`cores/`); where
//! what is runnable goes, and whom that wakes (`place/`); how something is started (`spawn/`); and what each core does all
//! the time (`run/`). A room uses only those named before it.

pub(crate) mod cores;
mod place;
mod policy;
pub(crate) mod process;
pub(crate) mod run;
mod spawn;

pub(crate) use cores::here::{
    at_work_here, core_here, has_more_here, identity_here, is_in_resident, is_wanted_urgently, loop_here,
};
pub use cores::here::{current_core, current_process};
pub use cores::population::live_processes;
pub(crate) use cores::raised::Raisable;
pub use cores::roll_call::processes;
pub use cores::{CoreLoad, Load, LoadMonitor};
pub(crate) use place::enqueue::{wake_from_loop, would_be_next};
pub(crate) use place::wake::{some_core_is_idle, wake_thief};
pub(crate) use place::waker::{priority_of, process_of, timers_of};
pub use place::{YieldNow, yield_now};
pub use policy::dispatch::Dispatch;
pub(crate) use policy::lead::lead;
pub use policy::migration::Rule;
pub(crate) use policy::settings::ticks_inline as setting_ticks;
pub use policy::settings::{
    Setting, SettingError, all as settings, get as setting, set as set_setting, set_by_name,
};
pub(crate) use policy::sharing::Worth;
pub use policy::tuning;
pub use policy::victim::VictimRule;
pub use policy::watchdog::WatchdogAction;
pub(crate) use process::reductions::charged;
pub use process::reductions::{charge, is_exhausted};
pub(crate) use process::{AtWork, Detached, EndOfPiece, Resident, Step};
pub use process::{Header, Priority, ProcessRef, ProcessState};
pub(crate) use run::ending::{begin_stop, end_stop, note as note_kill};
pub(crate) use run::give_back::{done as given_back, later as give_back_later};
pub(crate) use run::kill::{begin_pending as begin_pending_kill, end_pending as end_pending_kill};
pub(crate) use run::shield::Shield;
pub(crate) use run::slice::may_go_on;
pub use run::stop::request as stop;
pub use run::{ExternalSource, OfflineError, OutOfWork, is_online, offline, online, out_of_work};
#[cfg(not(target_os = "none"))]
pub use run::{HostError, run_on_threads};
pub(crate) use spawn::errand::Errand;
pub(crate) use spawn::later::{Later, Waiting};
pub(crate) use spawn::prepared::Prepared;
pub(crate) use spawn::repeat::{Outcome, Repeat, Repeating};
pub(crate) use spawn::resident::spawn as spawn_resident;
#[cfg(feature = "checks")]
pub(crate) use spawn::residents::wake_all as wake_all_residents;
pub use spawn::share::{CpuShare, CpuShareUsage};
pub(crate) use spawn::telling::tell as tell_of_end;
pub use spawn::{JoinError, JoinHandle, Spawn, SpawnError, procedure, spawn};
