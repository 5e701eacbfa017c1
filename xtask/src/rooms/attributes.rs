//! The attributes of whatever may have some: syntax knows many kinds, and no common name for this.

use syn::{Attribute, Expr, ImplItem, Item, Stmt, TraitItem};

/// Those of an item.
pub fn of_item(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::ExternCrate(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::ForeignMod(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::TraitAlias(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Union(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// Those of an item in an `impl`.
pub fn of_impl_item(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(it) => &it.attrs,
        ImplItem::Fn(it) => &it.attrs,
        ImplItem::Type(it) => &it.attrs,
        ImplItem::Macro(it) => &it.attrs,
        _ => &[],
    }
}

/// Those of an item in a trait.
pub fn of_trait_item(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(it) => &it.attrs,
        TraitItem::Fn(it) => &it.attrs,
        TraitItem::Type(it) => &it.attrs,
        TraitItem::Macro(it) => &it.attrs,
        _ => &[],
    }
}

/// Those of a statement, if it is of a kind that has some in practice.
pub fn of_statement(statement: &Stmt) -> &[Attribute] {
    match statement {
        Stmt::Local(it) => &it.attrs,
        Stmt::Macro(it) => &it.attrs,
        Stmt::Expr(Expr::Block(it), _) => &it.attrs,
        Stmt::Expr(Expr::If(it), _) => &it.attrs,
        Stmt::Expr(Expr::Call(it), _) => &it.attrs,
        Stmt::Expr(Expr::MethodCall(it), _) => &it.attrs,
        Stmt::Expr(Expr::Unsafe(it), _) => &it.attrs,
        _ => &[],
    }
}
