//! The cores: each one's block with its queues and its idle flag, how many there are, and what runs on them.
//!
//! Nothing here decides where a process goes, or wakes anybody.

pub(crate) mod beneath;
mod block;
pub(crate) mod calls;
pub(crate) mod chosen;
pub(crate) mod deadlines;
pub(crate) mod handover;
pub(crate) mod held;
pub(crate) mod here;
pub(crate) mod idle_flag;
pub(crate) mod in_turn;
pub(crate) mod load;
pub(crate) mod longest;
pub(crate) mod population;
pub(crate) mod preemption;
pub(crate) mod raised;
pub(crate) mod raised_flag;
pub(crate) mod ready_mask;
pub(crate) mod remains;
pub(crate) mod roll_call;
mod run_queue;
pub(crate) mod standstill;
mod this_core;

pub(crate) use block::{
    Core, Robbed, all, count, existing, get, install, of_mask, online, set_online, set_seed, start, started,
};
pub use load::{CoreLoad, Load, LoadMonitor};
pub(crate) use this_core::ThisCore;
