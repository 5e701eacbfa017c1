//! Two nodes of a cluster in one kernel, with a cable between them: calls, monitors, ends, and misuse by either side. With real Erlang nodes the end-to-end cases `cluster` do that.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod calls;
mod common;
mod deaf;
mod ends;
mod memory;
mod misuse;

magpie_tests::suite!();
