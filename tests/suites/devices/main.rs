//! Devices, seen by whoever drives one.
#![no_std]
#![no_main]

extern crate alloc;

mod beneath;
mod interrupts;
mod registers;
mod sections;
mod urgent;

magpie_tests::suite!();
