//! The scheduler's promises, checked in the booted kernel.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod affinity;
mod crash;
mod damage;
mod deadlines;
mod dispatch;
mod endurance;
mod fairness;
mod left_in_vain;
mod load;
mod long_waits;
mod offline;
mod policy;
mod preemption;
mod put_off;
mod shares;
mod stealing;
#[cfg(target_os = "none")]
mod stopping;
mod tracing;
mod urgency;
mod wake_up;
#[cfg(target_os = "none")]
mod watchdog;
#[cfg(target_os = "none")]
mod whereabouts;

magpie_tests::suite!();
