//! Whether every function, method and macro that an application can name through the facade is shown in an example.
//!
//! The way: [`reach`] → [`docs`] → [`judge`]: what the facade's imports lead to; which examples stand in docs; which of
//! what was reached no example shows.
//!
//! It is shown by
//! - an example in its own docs, whatever is in it;
//! - a call of it in an example that a reader has before him or one click up: on the same page (the docs of its type or
//!   trait, and of everything else there) or in the docs of a module that it is reached through.
//!
//! One example that shows methods together is better than one for each, so that is enough. There is no list of
//! exceptions: a function that cannot be put into an example is one that nobody can use.
//!
//! What it cannot see: what a macro makes, what is reached only as a value of a type without a name, and whether the
//! called `get` is that of this type. A function without `self` must be called by its type's name.

mod docs;
mod judge;
mod reach;
#[cfg(test)]
mod tests;

use crate::build::root;
use crate::rooms::sources::Sources;
use anyhow::{Context, Result};
use reach::Facade;
use std::fs;

/// What an application names.
const FACADE: &str = "magpie/src/lib.rs";

/// The crates that the facade hands names on of: what they are called there, and their sources.
const CRATES: [(&str, &str); 2] = [("kernel", "kernel/src"), ("magpie_boot", "boot/src")];

/// Looks at the examples and says which are missing; whether none is.
pub fn check() -> Result<bool> {
    let text = fs::read_to_string(root().join(FACADE)).with_context(|| format!("{FACADE} cannot be read"))?;
    let facade = Facade::parse(&text).context(FACADE)?;
    let mut complaints = Vec::new();
    for (name, folder) in CRATES {
        let sources = Sources::read(&root().join(folder))?;
        complaints.extend(judge::complaints(&facade.paths(name), &sources, folder));
    }
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    match complaints.len() {
        0 => {}
        1 => eprintln!("xtask: check: 1 complaint about examples"),
        count => eprintln!("xtask: check: {count} complaints about examples"),
    }
    Ok(complaints.is_empty())
}
