//! Drivers of virtio devices, which hang on this suite's machines: a source of random numbers, a disk that is all zeros, a network card, and a console; and a serial line with a network.
#![no_std]
#![no_main]

extern crate alloc;

mod card;
mod console;
mod disk;
mod entropy;
mod journal;
mod lying;
mod misled;
mod serial;

magpie_tests::suite!();
