//! Whether each room of the kernel, a folder or a file below `kernel/src`, imports only from floors below.
//!
//! The way: [`sources`] → [`collect`] and [`tree`] (what is there, under which names) → [`resolve`] (where a path leads)
//! → [`imports`] (which file imports what of which) → [`judge`], by the [`table`]. `cfg`s decide nothing but what is for
//! tests: the code of all targets is looked at together.
//!
//! What it cannot see is what has no path: a call of a method, a function that is registered below and called from there.
//!
//! The tree and where its paths lead serve [`face`](crate::face), too.

pub mod attributes;
mod circles;
mod collect;
pub mod conditions;
mod graph;
mod imports;
mod judge;
mod report;
pub mod resolve;
pub mod sources;
mod table;
#[cfg(test)]
mod tests;
mod tokens;
pub mod tree;

use crate::build::root;
use anyhow::{Context, Result};
use imports::Imports;
use judge::House;
use sources::Sources;
use std::fs;
use table::Table;

/// The kernel's sources.
const FOLDER: &str = "kernel/src";

/// The kernel's table of rooms.
const TABLE: &str = "kernel/rooms.txt";

/// How much is said of rooms that are in order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Nothing.
    Complaints,
    /// What each room imports, and all circles.
    Rooms,
    /// What each file imports, too.
    Files,
}

/// Looks at the kernel's rooms and says what is wrong; whether nothing is.
pub fn check(detail: Detail) -> Result<bool> {
    let sources = Sources::read(&root().join(FOLDER))?;
    let text = fs::read_to_string(root().join(TABLE)).with_context(|| format!("{TABLE} cannot be read"))?;
    let table = Table::parse(&text).context(TABLE)?;
    let imports = Imports::new(&sources);
    let house =
        House { sources: &sources, imports: &imports, table: &table, folder: FOLDER, table_name: TABLE };
    if detail != Detail::Complaints {
        let mut report = String::new();
        house.report(&mut report, detail == Detail::Files)?;
        println!("{report}");
    }
    let complaints = house.complaints();
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    match complaints.len() {
        0 => {}
        1 => eprintln!("xtask: check: 1 complaint about rooms"),
        count => eprintln!("xtask: check: {count} complaints about rooms"),
    }
    Ok(complaints.is_empty())
}
