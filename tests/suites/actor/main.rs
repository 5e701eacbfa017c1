//! The actor system's promises, checked in the booted kernel.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod allocation;
mod aside;
mod bounded;
mod crash;
mod dormant;
mod everywhere;
mod groups;
mod guests;
mod in_hand;
mod inspection;
mod limited;
mod memory;
mod restart;
// It claims a device's interrupt, and the host has none.
#[cfg(target_os = "none")]
mod signals;
mod sizes;
mod suspension;
mod waiting_senders;

magpie_tests::suite!();
