//! In-kernel tests: a registry and a runner, on stable Rust.
//!
//! A suite is an image: it declares its tests with [`kernel_test!`] and ends with [`suite!`]. The runner
//! runs them one after another, by name, each as a process of its own, so that one that panics or hangs
//! does not hide the others. It reports over the serial line; `cargo xtask test` reads the report.
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod amount;
pub mod changed;
pub mod everywhere;
pub mod failure;
#[cfg(target_os = "none")]
pub mod gated_buffer;
pub mod heap_exhauster;
pub mod limit;
pub mod registry;
pub mod runner;

pub use amount::amount;
pub use changed::Changed;
pub use failure::{Failure, Outcome};
#[cfg(target_os = "none")]
pub use gated_buffer::GatedBuffer;
pub use heap_exhauster::HeapExhauster;
pub use limit::HANGS_AFTER;
pub use linkme;
pub use magpie_boot;
pub use registry::{TESTS, Test};
pub use runner::expect_panic;
