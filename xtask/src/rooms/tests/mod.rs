//! The check on small made-up crates, and on the kernel.

mod complaints;
mod finding;
mod reports;

use super::imports::{Import, Imports};
use super::judge::House;
use super::sources::Sources;
use super::table::Table;

/// A crate of these files.
fn sources(files: &[(&str, &str)]) -> Sources {
    Sources::parse(files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect()).unwrap()
}

/// What the files import: `from:line to item`, sorted. All of it can be made out.
fn imports(files: &[(&str, &str)]) -> Vec<String> {
    let found = imports_and_troubles(files);
    assert!(!found.iter().any(|line| line.contains("cannot")), "{found:?}");
    found
}

/// What the files import, and then what is not known.
fn imports_and_troubles(files: &[(&str, &str)]) -> Vec<String> {
    let sources = sources(files);
    let imports = Imports::new(&sources);
    let path = |file: usize| sources.files[file].path.trim_end_matches(".rs");
    let show = |it: &Import| format!("{}:{} {} {}", path(it.from), it.line, path(it.to), it.item);
    imports.imports.iter().map(show).chain(imports.troubles.iter().cloned()).collect()
}

/// What is wrong with the files by a table.
fn complaints(table: &str, files: &[(&str, &str)]) -> Vec<String> {
    let (sources, table) = (sources(files), Table::parse(table).unwrap());
    let imports = Imports::new(&sources);
    let (sources, imports, table) = (&sources, &imports, &table);
    House { sources, imports, table, folder: "src", table_name: "rooms.txt" }.complaints()
}

/// The root of most of these crates: a room `low` with a facade, and one file.
const ROOT: (&str, &str) = ("lib.rs", "mod low; mod high;");
const FACADE: (&str, &str) =
    ("low/mod.rs", "mod deep; pub use deep::{Thing, make as create}; pub(crate) use deep::*;");
const DEEP: (&str, &str) =
    ("low/deep.rs", "pub struct Thing; pub fn make() {} pub fn other() {} pub enum Kind { Good, Bad }");

const FLOORS: &str = "facade lib.rs\nfloor low\nfloor high.rs\n";

/// What one file of such a crate imports.
fn of_high(text: &str) -> Vec<String> {
    imports(&[ROOT, FACADE, DEEP, ("high.rs", text)])
}

#[test]
fn the_kernel_can_be_made_out() {
    let sources = Sources::read(&crate::build::root().join(super::FOLDER)).unwrap();
    assert_eq!(Imports::new(&sources).troubles, [""; 0]);
}
