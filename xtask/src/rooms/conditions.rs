//! Which code is compiled for tests alone, as its `cfg` attributes say.
//!
//! Nothing else is decided: of a board, a target or a feature any answer is possible.

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, Meta, MetaNameValue, Token};

/// The feature that adds the kernel's own tests.
const TESTS_FEATURE: &str = "checks";

/// Whether what has these attributes is there in no build but those for tests.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Meta>().is_ok_and(|condition| outside_tests(&condition) == Some(false))
    })
}

/// What a condition is in a build that is not for tests; `None`: it depends.
fn outside_tests(condition: &Meta) -> Option<bool> {
    match condition {
        Meta::Path(path) if path.is_ident("test") || path.is_ident("doctest") => Some(false),
        Meta::NameValue(pair) if pair.path.is_ident("feature") && is_text(pair, TESTS_FEATURE) => Some(false),
        Meta::List(list) => {
            let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
            let mut parts = parts.iter().map(outside_tests);
            if list.path.is_ident("not") {
                Some(!parts.next()??)
            } else if list.path.is_ident("all") {
                all(parts)
            } else {
                all(parts.map(|part| Some(!part?))).map(|none| !none)
            }
        }
        _ => None,
    }
}

fn all(mut parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    parts
        .try_fold(Some(true), |sum, part| match part {
            Some(false) => Err(()),
            Some(true) => Ok(sum),
            None => Ok(None),
        })
        .unwrap_or(Some(false))
}

fn is_text(pair: &MetaNameValue, expected: &str) -> bool {
    matches!(&pair.value, Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if text.value() == expected)
}
