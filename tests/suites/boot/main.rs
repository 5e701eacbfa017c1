//! What boot has set up, seen from inside: permissions of memory, the cores, the clock, the heap.
#![no_std]
#![no_main]

extern crate alloc;

mod machine;
mod memory;
mod permissions;
mod serial;

magpie_tests::suite!();
