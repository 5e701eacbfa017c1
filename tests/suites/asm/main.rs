//! The hand-written exclusives (or, in a build with `portable`, their twins) on real cores, and the
//! hand-written copies; and what is appended behind gates, or to locked queues.
#![no_std]
#![no_main]

extern crate alloc;

mod appends;
mod bodies;
mod copies;
mod cores;
mod locked_appends;
mod probes;
mod stress;

magpie_tests::suite!();
