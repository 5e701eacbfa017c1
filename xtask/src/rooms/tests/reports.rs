//! What is shown of rooms and circles.

use super::{DEEP, FACADE, FLOORS, Imports, ROOT, Table, sources};
use crate::rooms::graph::Graph;
use crate::rooms::judge::House;

#[test]
fn circles_are_shown_with_their_edges_the_biggest_first() {
    let sources = sources(&[
        ("lib.rs", "mod a; mod b; mod c; mod d; mod e;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::a::A; pub struct B;"),
        ("c.rs", "use crate::{a::A, d::D}; pub struct C;"),
        ("d.rs", "use crate::e::E;\nfn f(_: crate::e::E) {} pub struct D;"),
        ("e.rs", "use crate::c::C; pub struct E;"),
    ]);
    let imports = Imports::new(&sources);
    let mut text = String::new();
    Graph::new(&sources, &imports.imports).write_circles(&mut text).unwrap();
    assert_eq!(
        text,
        "circle 1: 3 files\n  c.rs -> d.rs (1): D\n  d.rs -> e.rs (2): E x2\n  e.rs -> c.rs (1): C\n\
         circle 2: 2 files\n  a.rs -> b.rs (1): B\n  b.rs -> a.rs (1): A\n"
    );
}

#[test]
fn the_report_counts_rooms() {
    let (sources, table) =
        (sources(&[ROOT, FACADE, DEEP, ("high.rs", "use crate::low::{Thing, create};\n\n")]), FLOORS);
    let (imports, table) = (Imports::new(&sources), Table::parse(table).unwrap());
    let (sources, imports, table) = (&sources, &imports, &table);
    let house = House { sources, imports, table, folder: "src", table_name: "rooms.txt" };
    let mut text = String::new();
    house.report(&mut text, false).unwrap();
    let rooms = "floor  files  lines  room\n    1      2      2  low imports nothing\n    \
                 2      1      2  high.rs imports low x2\n\ncircles of rooms:\n\n";
    assert!(text.starts_with(rooms), "{text}");
}
