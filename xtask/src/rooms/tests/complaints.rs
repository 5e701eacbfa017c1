//! What is complained of, and what is let pass.

use super::{DEEP, FACADE, FLOORS, ROOT, complaints};

#[test]
fn what_cannot_be_told_is_said() {
    let files =
        [ROOT, FACADE, DEEP, ("high.rs", "\nuse crate::low::deep::missing;\nmod gone;"), ("lost.rs", "")];
    assert_eq!(
        complaints("floor .", &files),
        [
            "src/high.rs: there is no file for its module gone",
            "src/high.rs:2: cannot tell what crate::low::deep::missing is",
            "src/lost.rs: no module is in this file",
        ]
    );
}

#[test]
fn imports_go_down() {
    let high = ("high.rs", "use crate::low::Thing; pub fn f() {}");
    let root = ("lib.rs", "mod low; mod high; pub use high::f; fn g() {}");
    assert_eq!(complaints(FLOORS, &[root, FACADE, DEEP, high]), [""; 0]);
    let deep = ("low/deep.rs", "use crate::high::f;\nuse crate::g; pub struct Thing; pub fn make() {}");
    assert_eq!(
        complaints(FLOORS, &[root, FACADE, deep, high]),
        [
            "src/low/deep.rs:1: room low (floor 1) imports high::f from room high.rs (floor 2)",
            "src/low/deep.rs:2: room low (floor 1) imports g from the facade lib.rs",
        ]
    );
    assert_eq!(
        complaints("facade lib.rs\nfloor low high", &[root, FACADE, DEEP, high]),
        ["src/high.rs:1: room high (floor 1) imports low::deep::Thing from room low (floor 1)"]
    );
}

#[test]
fn methods_are_added_at_home() {
    let high = ("high.rs", "use crate::low::Thing; impl Thing { fn f() {} } impl Clone for Thing {}");
    assert_eq!(
        complaints(FLOORS, &[ROOT, FACADE, DEEP, high]),
        ["src/high.rs:1: room high.rs (floor 2) adds methods to low::deep::Thing from room low (floor 1)"]
    );
}

#[test]
fn every_file_has_a_room_and_every_room_a_file() {
    let files = [("lib.rs", "mod low; #[cfg(test)] mod high;"), FACADE, DEEP, ("high.rs", "")];
    assert_eq!(
        complaints("floor low/deep", &files),
        ["src/lib.rs: is in no room of rooms.txt", "src/low/mod.rs: is in no room of rooms.txt"]
    );
    assert_eq!(
        complaints("floor . roof\nfacade porch.rs", &files),
        ["rooms.txt: there is no src/roof", "rooms.txt: there is no src/porch.rs"]
    );
}

#[test]
fn an_exception_lets_pass_and_is_needed() {
    let high = ("high.rs", "pub fn f() {}");
    let deep = ("low/deep.rs", "use crate::high::f; pub struct Thing; pub fn make() {}");
    let files = [ROOT, FACADE, deep, high];
    let with = |exceptions| complaints(&format!("{FLOORS}{exceptions}"), &files);
    assert_eq!(with("except low/deep.rs -> high: they are old friends"), [""; 0]);
    assert_eq!(
        with("except low -> high: why\nexcept high -> low: why not"),
        ["rooms.txt:5: high -> low needs no exception"]
    );
}
