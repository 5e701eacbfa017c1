//! The network: sockets over a cable with faults, misuse by either side, and crashes of whoever holds a part of it; and the random numbers that it begins with.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod by_hand;
mod closing;
mod common;
mod crashes;
mod frames;
mod fuzz;
mod limits;
mod memory;
mod misuse;
mod names;
mod random;
mod sockets;

magpie_tests::suite!();
