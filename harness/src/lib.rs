//! In-kernel tests: a registry and a runner, on stable Rust.
//!
//! A suite is an image: it declares its tests with [`kernel_test!`] and ends with [`suite!`]. The runner
//! runs them one after another, by name, each as a process of its own, so that one that panics or hangs
//! does not hide the others. It reports over the serial line; the host tool (`cargo xtask test`) reads the report.
//!
//! ```ignore
//! #![cfg_attr(target_os = "none", no_std, no_main)]
//! use magpie_test::{Outcome, ensure_eq, kernel_test};
//!
//! kernel_test! {
//!     /// Skipped on one core.
//!     #[cores(2)]
//!     async fn two_and_two_are_four() -> Outcome {
//!         ensure_eq!(2 + 2, 4, "the sum");
//!         Ok(())
//!     }
//! }
//!
//! magpie_test::suite!();
//! ```
//!
//! A suite is a `[[test]]` with `harness = false`. Tests on the developer's own machine are no business of this crate:
//! `magpie::testing` has these.
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

mod amount;
#[doc(hidden)]
pub mod failure;
mod limit;
mod measured;
#[doc(hidden)]
pub mod registry;
#[doc(hidden)]
pub mod runner;

pub use amount::amount;
pub use failure::{Failure, Outcome};
pub use limit::HANGS_AFTER;
#[doc(hidden)]
pub use linkme;
#[doc(hidden)]
pub use magpie_boot;
pub use measured::measured;
pub use registry::{TESTS, Test};
pub use runner::expect_panic;
