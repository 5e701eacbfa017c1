//! Magpie's host tool, as a library: what a project of one's own needs of it, and this tree as well. An `xtask` is a few lines
//! above it.
//!
//! [`project::main`] is the whole tool of a project; this tree's own has more verbs, and puts [`verbs::Verb`] among them. Either
//! says first where its workspace is ([`build::set_root_of`]).

pub mod build;
pub mod card;
mod editor;
pub mod failure;
pub mod machine;
#[cfg(test)]
mod memory_count;
pub mod progress;
pub mod project;
// The one that boot's fuzzers draw from.
#[cfg(test)]
#[path = "../../../boot/src/random.rs"]
mod random;
pub mod report;
pub mod serial;
pub mod serial_line;
pub mod setup;
pub mod stream;
pub mod testing;
pub mod trace;
pub mod verbs;
