//! Drivers of what the Raspberry Pi 4 has, as QEMU's `raspi4b` has it.
#![no_std]
#![no_main]

extern crate alloc;

mod firmware;
mod gpio;
mod i2c;
mod sd;
#[path = "../drivers/serial.rs"]
mod serial;

magpie_tests::suite!();
