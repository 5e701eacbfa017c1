//! The attributes of whatever may have some: syntax knows many kinds, and no common name for this.

use syn::{Attribute, Expr, ImplItem, Item, Stmt, TraitItem};

/// The attributes of an enum's value, if it is of one of these kinds; others have none.
macro_rules! attributes {
    ($value:expr, $kind:ident: $($variant:ident)*) => {
        match $value {
            $($kind::$variant(it) => &it.attrs,)*
            _ => &[],
        }
    };
}

/// Those of an item.
pub fn of_item(item: &Item) -> &[Attribute] {
    attributes!(item, Item: Const Enum ExternCrate Fn ForeignMod Impl Macro Mod Static Struct Trait TraitAlias Type Union Use)
}

/// Those of an item in an `impl`.
pub fn of_impl_item(item: &ImplItem) -> &[Attribute] {
    attributes!(item, ImplItem: Const Fn Type Macro)
}

/// Those of an item in a trait.
pub fn of_trait_item(item: &TraitItem) -> &[Attribute] {
    attributes!(item, TraitItem: Const Fn Type Macro)
}

/// Those of a statement, if it is of a kind that has some in practice.
pub fn of_statement(statement: &Stmt) -> &[Attribute] {
    match statement {
        Stmt::Local(it) => &it.attrs,
        Stmt::Macro(it) => &it.attrs,
        Stmt::Expr(expression, _) => attributes!(expression, Expr: Block If Call MethodCall Unsafe),
        _ => &[],
    }
}
