//! Libraries that know no kernel, and the critical section that they rely on. The code of `docs/libraries.md` is here.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod channels;
mod futures;
mod queues;
mod section;

magpie_tests::suite!();
