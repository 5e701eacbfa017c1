//! The mutants of the kernel: what is broken on purpose, so that a checker shows that it would notice.
//!
//! The files in `kernel/mutants` name source texts and what stands there instead; `entry` reads them. `code` finds a text
//! in a source file, `weave` puts every mutant of the file into it as a choice that is made at run time, and `copy` makes
//! the copy of the kernel that has them all. The kernel itself knows nothing of mutants.

mod code;
mod copy;
mod entry;
mod weave;

pub use copy::write_copy;
