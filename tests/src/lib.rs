//! What the in-kernel suites share beside the registry and the runner, which are the crate `magpie-test`'s: its names are
//! here as well, so that a suite names one crate.
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod changed;
pub mod comes;
pub mod everywhere;
pub mod first;
#[cfg(target_os = "none")]
pub mod gated_buffer;
pub mod heap_exhauster;
#[cfg(target_os = "none")]
pub mod locked_queue;

pub use changed::Changed;
pub use comes::comes;
pub use first::first;
#[cfg(target_os = "none")]
pub use gated_buffer::GatedBuffer;
pub use heap_exhauster::HeapExhauster;
#[cfg(target_os = "none")]
pub use locked_queue::LockedQueue;
pub use magpie_test::{
    Failure, HANGS_AFTER, Outcome, TESTS, Test, amount, ensure, ensure_eq, expect_panic, kernel_test, suite,
};
