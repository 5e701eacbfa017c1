//! Which mutant is active, asked at run time by the copy of the kernel that holds every one of them.
//!
//! No part of the kernel. `cargo xtask verify` copies the kernel, weaves the entries of the files beside this one into the
//! copy, and puts this file there as a module. The variable `MAGPIE_MUTANT` then names the one step that is broken, and a
//! checker must object; without it the copy does what the kernel does. `docs/verification.md` lists which tool rejects
//! which mutant, the tables in `kernel/tests/models` which model.
//!
//! Each file beside this one has the mutants of one source file, `file`. A mutant has:
//!
//! - `name`: as in `MAGPIE_MUTANT`;
//! - `breaks`: what is wrong with it;
//! - `in`: the function that it breaks; may be left out;
//! - `find`: the code that it breaks, which stands there exactly once. White space and comments count for nothing;
//! - `put`: what stands there instead. Without a comment.
//!
//! If `find` ends with `;` or `}` it is statements, otherwise an expression or the end of a block. It may lie within
//! another's `find`, but not overlap it in part. What an outer one puts is not changed by the inner ones.

use std::sync::OnceLock;

/// Whether the step `name` is to be broken.
pub(crate) fn is(name: &str) -> bool {
    static CHOSEN: OnceLock<String> = OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("MAGPIE_MUTANT").unwrap_or_default()) == name
}
