//! Where paths lead.

use super::{DEEP, ROOT, imports, imports_and_troubles, of_high};

#[test]
fn a_facade_is_seen_through() {
    assert_eq!(of_high("use crate::low::Thing;"), ["high:1 low/deep Thing"]);
    assert_eq!(of_high("use crate::low::create;"), ["high:1 low/deep make"]);
    assert_eq!(of_high("\nfn f() { crate::low::other() }"), ["high:2 low/deep other"]);
}

#[test]
fn a_facade_that_uses_what_it_hands_on_imports_it() {
    let facade = ("low/mod.rs", "mod deep; pub use deep::Thing; fn f(_: Thing) {}");
    assert_eq!(imports(&[ROOT, facade, DEEP, ("high.rs", "")]), ["low/mod:1 low/deep Thing"]);
}

#[test]
fn handing_on_what_is_elsewhere_is_an_import() {
    assert_eq!(of_high("pub use crate::low::Thing as Other;"), ["high:1 low/deep Thing"]);
}

#[test]
fn other_names_are_followed() {
    assert_eq!(of_high("use crate::low as l; fn f() { l::create() }"), ["high:1 low/deep make"]);
    let chain = "mod inner { pub use crate::low::Thing as A; } use inner::A as B; pub use self::B as C;";
    assert_eq!(of_high(chain), ["high:1 low/deep Thing"]);
}

#[test]
fn groups_are_taken_apart() {
    let text = "use crate::{\n low::{self,\n Thing as _, Kind::{self, Good}},\n};\nfn f() { low::other() }";
    assert_eq!(of_high(text), ["high:3 low/deep Kind", "high:3 low/deep Thing", "high:5 low/deep other"]);
}

#[test]
fn globs_stand_for_what_is_used() {
    assert_eq!(
        of_high("use crate::low::*;\nfn f(_: Thing) { other() }"),
        ["high:1 low/deep Thing", "high:1 low/deep other"]
    );
    assert_eq!(of_high("use crate::low::Kind::*; fn f() { Good; }"), ["high:1 low/deep Kind"]);
    assert_eq!(of_high("use crate::low::*;"), ["high:1 low/mod low"]);
}

#[test]
fn what_leads_back_to_itself_comes_to_an_end() {
    let low = ("low/mod.rs", "pub use crate::high::*; pub use crate::high::round;");
    let high = ("high.rs", "pub use crate::low::*; pub use crate::low::round; pub struct Thing; mod user;");
    let user = ("high/user.rs", "use crate::low::Thing;");
    assert_eq!(
        imports_and_troubles(&[ROOT, low, high, user]),
        [
            "high:1 low/mod low",
            "high/user:1 high Thing",
            "low/mod:1 high high",
            "high.rs:1: cannot tell what crate::low::round is",
            "low/mod.rs:1: cannot tell what crate::high::round is",
        ]
    );
}

#[test]
fn parents_are_counted() {
    let inside =
        "mod one { mod two { use super::super::super::low::Thing; fn f() { super::g() } } fn g() {} }";
    assert_eq!(of_high(inside), ["high:1 low/deep Thing"]);
    let files = [ROOT, ("low/mod.rs", "mod a; mod b; fn f() {}"), ("low/a.rs", "use super::{b::B, f};")];
    let all = [&files[..], &[("low/b.rs", "pub struct B;"), ("high.rs", "")]].concat();
    assert_eq!(imports(&all), ["low/a:1 low/b B", "low/a:1 low/mod f"]);
}

#[test]
fn macros_are_looked_into() {
    let text = "fn f() { assert!(x == [crate::low::create()],\n \"{}\", super::low::Kind::Good); }";
    assert_eq!(of_high(text), ["high:1 low/deep make", "high:2 low/deep Kind"]);
    let rules = "macro_rules! m { ($x:ident) => { $crate::low::other($x); $x::create() } }";
    assert_eq!(of_high(rules), ["high:1 low/deep other"]);
    let group = "m! { use crate::low::{create as c, Kind::{Good}}; }";
    assert_eq!(of_high(group), ["high:1 low/deep Kind", "high:1 low/deep make"]);
}

#[test]
fn macros_are_imported_from_where_they_are_made() {
    let deep = (
        "low/deep.rs",
        "#[macro_export] macro_rules! say { () => {} } macro_rules! own { () => {} } \
                                pub(crate) use own;",
    );
    let low = ("low/mod.rs", "#[macro_use] mod deep; pub(crate) use deep::own as mine;");
    let root = ("lib.rs", "#[macro_use] mod low; mod high;");
    let of_high = |text| imports(&[root, low, deep, ("high.rs", text)]);
    assert_eq!(of_high("fn f() { crate::say!() }"), ["high:1 low/deep say"]);
    assert_eq!(of_high("use crate::low::mine; fn f() { mine!() }"), ["high:1 low/deep own"]);
    assert_eq!(of_high("fn f() { own!() }"), ["high:1 low/deep own"]);
    assert_eq!(of_high("fn f() { println!(\"{}\", own!()) }"), ["high:1 low/deep own"]);
}

#[test]
fn files_of_other_paths_and_targets_are_found() {
    let root = (
        "lib.rs",
        "#[cfg(a)] mod one; #[cfg(a)] use one::it; #[cfg(not(a))] #[path = \"x/two.rs\"] mod it; \
                           mod user;",
    );
    let files =
        [root, ("one/mod.rs", "pub mod it;"), ("one/it.rs", "pub fn f() {}"), ("x/two.rs", "pub fn f() {}")];
    let all = [&files[..], &[("user.rs", "use crate::it; fn g() { it::f() }")]].concat();
    assert_eq!(imports(&all), ["lib:1 one/it it", "user:1 one/it f", "user:1 x/two f"]);
}

#[test]
fn other_crates_are_nobodys_business() {
    assert_eq!(
        of_high(
            "use core::fmt; use alloc::alloc::alloc; use ::low::Thing; fn core() {} fn f() { core::g() }"
        ),
        [""; 0]
    );
    let facade = ("low/mod.rs", "mod deep; pub use core::sync::Word; pub use core::fmt as f;");
    let high = ("high.rs", "use crate::low::{Word, f}; fn g(_: f::Error) {}");
    assert_eq!(imports(&[ROOT, facade, DEEP, high]), ["high:1 low/mod Word", "high:1 low/mod f"]);
}

#[test]
fn what_tests_import_is_left_out() {
    let text = "#[cfg(test)] mod tests { use crate::low::Thing; } #[cfg(all(test, x))] use crate::low::other; \
                #[cfg(feature = \"checks\")] fn f() { crate::low::other() } #[cfg(any(test, x))] use crate::low::Kind; \
                mod checks { use crate::low::*; } #[cfg(not(test))] use crate::low::create;";
    assert_eq!(of_high(text), ["high:1 low/deep Kind", "high:1 low/deep make"]);
}
