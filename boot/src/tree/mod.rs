//! Reading the device tree: what boot needs of it, and a clear error where it says nothing.
//!
//! The tree comes from outside, so nothing in it is trusted: every access may fail, and counts are bounded.
//!
//! A property is found by going through those before it, a child by going through all that is in its elder siblings. So the
//! root's children are gone through once (`nodes.rs`), and the properties of each once (`properties.rs`).

mod cores;
mod description;
mod devices;
mod find;
mod nodes;
mod properties;
mod read;

#[cfg(test)]
mod find_tests;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use description::{Description, FirmwareCall, InterruptController, StartMethod, TreeError};
#[cfg(target_os = "none")]
pub(crate) use find::note;
pub use find::{Device, NoLine, all, find, random_seed};
pub use read::read;
