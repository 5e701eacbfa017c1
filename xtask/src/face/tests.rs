//! The check on small made-up crates, and on the kernel.

use super::judge;
use super::reach::Facade;
use crate::rooms::sources::Sources;

/// The facade of all these crates.
const FACADE: &str =
    "pub use kernel::{room, say}; use kernel::inside; pub use other::Thing; pub mod prelude;";

/// What is missing in a crate of these files, with a root that has a public room.
fn missing(files: &[(&str, &str)]) -> Vec<String> {
    let root = ("lib.rs", "pub mod room; pub mod inside; #[macro_use] mod deep;");
    let empty = [
        ("deep.rs", "#[macro_export] /** ``` \n say!() \n``` */ macro_rules! say { () => {} }"),
        ("inside.rs", ""),
    ];
    let texts = empty.iter().chain([&root]).chain(files);
    let sources =
        Sources::parse(texts.map(|(path, text)| ((*path).into(), (*text).into())).collect()).unwrap();
    let complaints = judge::complaints(&Facade::parse(FACADE).unwrap().paths("kernel"), &sources, "src");
    complaints
        .into_iter()
        .map(|line| line.rsplit("no example shows ").next().unwrap_or_default().to_owned())
        .collect()
}

/// What is missing in a room.
fn missing_in(room: &str) -> Vec<String> {
    missing(&[("room.rs", room)])
}

/// An example, as docs of an item.
fn example(code: &str) -> String {
    format!("/** ```\n{code}\n``` */ ")
}

#[test]
fn a_function_needs_an_example_and_it_is_said_where() {
    let files = [("lib.rs", "pub mod room;"), ("room.rs", "\n/// Text.\npub fn f() {}")];
    let sources =
        Sources::parse(files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect()).unwrap();
    let paths = [vec!["room".to_owned()]];
    assert_eq!(judge::complaints(&paths, &sources, "src"), ["src/room.rs:3: no example shows room::f"]);
    assert_eq!(missing_in(&format!("{}pub fn f() {{}}", example("anything"))), [""; 0]);
}

#[test]
fn a_function_is_shown_by_its_module() {
    assert_eq!(missing_in("//! ```\n//! f(1);\n//! ```\npub fn f() {}"), [""; 0]);
    assert_eq!(missing_in("//! ```\n//! let it = room::f;\n//! ```\npub fn f() {}"), [""; 0]);
    assert_eq!(missing_in("//! ```\n//! let f = 1; x.f(); y::f();\n//! ```\npub fn f() {}"), ["room::f"]);
}

#[test]
fn blocks_that_are_not_compiled_or_must_fail_are_no_examples() {
    for words in ["text", "ignore", "compile_fail", "compile_fail,E0277", "sh"] {
        let room = format!("/** ```{words}\nf()\n``` */ pub fn f() {{}}");
        assert_eq!(missing_in(&room), ["room::f"], "{words}");
    }
    for words in ["", "rust", "no_run", "should_panic", "rust,no_run"] {
        let room = format!("/** ```{words}\nf()\n``` */ pub fn f() {{}}");
        assert_eq!(missing_in(&room), [""; 0], "{words}");
    }
}

#[test]
fn what_is_not_shown_to_the_reader_shows_nothing() {
    assert_eq!(missing_in("//! ```\n//! # f();\n//! ```\npub fn f() {}"), ["room::f"]);
}

#[test]
fn a_method_is_shown_anywhere_on_its_page() {
    let of =
        |code: &str| missing_in(&format!("{}pub struct A; impl A {{ pub fn f(&self) {{}} }}", example(code)));
    assert_eq!(of("a.f()"), [""; 0]);
    assert_eq!(of("all.iter().map(A::f)"), [""; 0]);
    assert_eq!(of("a.f::<u32>()"), [""; 0]);
    for code in ["a.f = 1", "f()", "B::f(a)", "let f = a;"] {
        assert_eq!(of(code), ["room::A::f"], "{code}");
    }
    let beside = format!(
        "pub struct A; impl A {{ pub fn f(&self) {{}} {}pub fn g(&self) {{}} }}",
        example("a.g(); if x { m!(a.f()) }")
    );
    assert_eq!(missing_in(&beside), [""; 0]);
}

#[test]
fn the_page_of_another_type_does_not_count() {
    let room = format!("{}pub struct B; pub struct A; impl A {{ pub fn f(&self) {{}} }}", example("a.f()"));
    assert_eq!(missing_in(&room), ["room::A::f"]);
}

#[test]
fn what_has_no_self_is_called_by_its_types_name() {
    let of =
        |code: &str| missing_in(&format!("{}pub struct A; impl A {{ pub fn new() {{}} }}", example(code)));
    for code in ["A::new()", "room::A::new()", "A::<u32>::new()", "make(A::<Vec<u8>>::new)"] {
        assert_eq!(of(code), [""; 0], "{code}");
    }
    for code in ["B::new()", "a.new()", "new()"] {
        assert_eq!(of(code), ["room::A::new"], "{code}");
    }
}

#[test]
fn methods_are_found_in_whatever_file_adds_them() {
    let files = [
        ("room.rs", "mod a; mod more; pub use a::A as B;"),
        ("room/a.rs", "pub struct A; impl A { pub fn f(&self) {} }"),
        ("room/more.rs", "use super::a::A; impl A { pub fn g(&self) {} fn h() {} pub(crate) fn i() {} }"),
    ];
    assert_eq!(missing(&files), ["room::B::f", "room::B::g"]);
}

#[test]
fn functions_of_traits_count_and_are_shown_by_writing_them() {
    let room = |code| format!("{}pub trait T {{ fn f(&self); fn g() {{}} }}", example(code));
    assert_eq!(missing_in(&room("impl T for X { fn f(&self) {} }")), ["room::T::g"]);
    assert_eq!(missing_in(&room("x.f(); T::g()")), [""; 0]);
    assert_eq!(missing_in("pub struct A; impl Clone for A { fn clone(&self) -> Self { A } }"), [""; 0]);
}

#[test]
fn only_what_can_be_named_counts() {
    let private =
        "fn f() {} pub(crate) fn g() {} mod m { pub fn h() {} } use m::h; pub(crate) use m::h as i;";
    assert_eq!(missing_in(private), [""; 0]);
    assert_eq!(
        missing_in("#[doc(hidden)] pub fn f() {} #[doc(hidden)] pub use m::g; mod m { pub fn g() {} }"),
        [""; 0]
    );
    assert_eq!(
        missing_in("#[cfg(test)] pub fn f() {} #[cfg(feature = \"checks\")] pub mod m { pub fn g() {} }"),
        [""; 0]
    );
    assert_eq!(missing(&[("room.rs", ""), ("inside.rs", "pub fn f() {}")]), [""; 0]);
}

#[test]
fn what_has_the_name_of_a_private_module_is_not_that_module() {
    let room = format!("mod f {{ {}pub fn f() {{}} pub fn g() {{}} }} pub use f::f;", example("f()"));
    assert_eq!(missing_in(&room), [""; 0]);
}

#[test]
fn names_are_followed_through_modules_globs_and_other_names() {
    let room = "pub mod a { pub fn f() {} } mod b { pub fn g() {} pub fn h() {} } pub use b::{g as other, h}; \
                mod c { pub fn i() {} } pub use c::*;";
    assert_eq!(missing_in(room), ["room::a::f", "room::h", "room::i", "room::other"]);
    assert_eq!(
        missing_in("//! ```\n//! other()\n//! ```\nmod b { pub fn g() {} } pub use b::g as other;"),
        [""; 0]
    );
}

#[test]
fn macros_need_one_too() {
    let files = [("room.rs", ""), ("deep.rs", "#[macro_export] macro_rules! say { () => {} }")];
    assert_eq!(missing(&files), ["say"]);
}

#[test]
fn what_cannot_be_followed_is_said() {
    let complaints = missing_in("pub use crate::nowhere::f;");
    assert_eq!(complaints, ["src/room.rs: cannot tell what crate::nowhere::f is"]);
}

#[test]
fn the_facade_reaches_the_rooms() {
    let facade = std::fs::read_to_string(crate::build::root().join(super::FACADE)).unwrap();
    let facade = Facade::parse(&facade).unwrap();
    for (name, _) in super::CRATES {
        assert!(!facade.paths(name).is_empty(), "{name}");
    }
    let kernel = facade.paths("kernel");
    assert!(
        ["actor", "sched", "text"].iter().all(|room| kernel.iter().any(|path| path == &[*room])),
        "{kernel:?}"
    );
}
