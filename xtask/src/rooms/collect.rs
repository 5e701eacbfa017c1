//! What stands in one module: the names it makes, the paths it mentions.
//!
//! Leaves out what is compiled for tests alone, attributes, and the modules inside: each of them has a turn of its own.

use super::attributes::{of_impl_item, of_item, of_statement, of_trait_item};
use super::conditions::is_for_tests;
use super::tokens::Found;
use super::tree::{Kind, Meaning, Mention};
use proc_macro2::{Span, TokenStream};
use std::collections::{BTreeSet, HashMap};
use syn::visit::{self, Visit};
use syn::{Attribute, ForeignItem, ImplItem, Item, ItemUse, Stmt, TraitItem, Type, UseTree, Visibility};

/// What was found in a module.
#[derive(Default)]
pub struct Contents {
    /// What its names mean.
    pub names: HashMap<String, Vec<Meaning>>,
    /// What names mean in some block.
    pub inner_names: HashMap<String, Vec<Meaning>>,
    /// Macros that are made here.
    pub macros: Vec<String>,
    /// Those of them that are the crate's root's.
    pub root_names: Vec<String>,
    /// Paths of which all names are names here.
    pub globs: Vec<Vec<String>>,
    /// The mentioned paths.
    pub mentions: Vec<Mention>,
    /// The used names.
    pub used: BTreeSet<String>,
}

/// Looks through a module's items.
pub fn collect(items: &[Item]) -> Contents {
    let mut collector = Collector { contents: Contents::default(), depth: 0 };
    for item in items {
        collector.name(item);
        if !matches!(item, Item::Mod(_)) {
            collector.visit_item(item);
        }
    }
    collector.contents
}

struct Collector {
    contents: Contents,
    /// How many blocks are around.
    depth: usize,
}

impl Collector {
    /// Notes what an item makes.
    fn name(&mut self, item: &Item) {
        let (name, goes_on) = match item {
            Item::Const(it) => (&it.ident, false),
            Item::Enum(it) => {
                for variant in &it.variants {
                    // Reached only by a glob over the enum, which no other name can be confused with.
                    let name = format!("{}::{}", it.ident, variant.ident);
                    self.mean(name, Meaning::Item { goes_on: false });
                }
                (&it.ident, true)
            }
            Item::Fn(it) => (&it.sig.ident, false),
            Item::Static(it) => (&it.ident, false),
            Item::Struct(it) => (&it.ident, true),
            Item::Trait(it) => (&it.ident, true),
            Item::TraitAlias(it) => (&it.ident, true),
            Item::Type(it) => (&it.ident, true),
            Item::Union(it) => (&it.ident, true),
            Item::ExternCrate(it) => {
                let name = it.rename.as_ref().map_or(&it.ident, |(_, name)| name);
                let is_own = it.ident == "self";
                let meaning = if is_own { Meaning::Path(vec!["crate".into()]) } else { Meaning::Foreign };
                return self.mean(name.to_string(), meaning);
            }
            Item::ForeignMod(block) => {
                for it in &block.items {
                    match it {
                        ForeignItem::Fn(it) => self.make(&it.sig.ident.to_string(), false),
                        ForeignItem::Static(it) => self.make(&it.ident.to_string(), false),
                        ForeignItem::Type(it) => self.make(&it.ident.to_string(), true),
                        _ => {}
                    }
                }
                return;
            }
            Item::Macro(it) => {
                if let Some(name) = &it.ident {
                    if it.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
                        self.contents.root_names.push(name.to_string());
                    }
                    self.contents.macros.push(name.to_string());
                    self.make(&name.to_string(), false);
                } else {
                    let mut found = Found::default();
                    found.scan(it.mac.tokens.clone());
                    for name in found.items {
                        self.make(&name, true);
                    }
                }
                return;
            }
            _ => return,
        };
        self.make(&name.to_string(), goes_on);
    }

    fn make(&mut self, name: &str, goes_on: bool) {
        self.mean(name.to_owned(), Meaning::Item { goes_on });
    }

    fn mean(&mut self, name: String, meaning: Meaning) {
        self.contents.names.entry(name).or_default().push(meaning);
    }

    fn mention(&mut self, path: Vec<String>, span: Span, kind: Kind) {
        self.contents.mentions.push(Mention { path, line: span.start().line, kind });
    }

    /// Notes the branches of a `use`.
    fn branch(&mut self, tree: &UseTree, mut path: Vec<String>, is_handed_on: bool) {
        let (last, name) = match tree {
            UseTree::Path(it) => {
                path.push(it.ident.to_string());
                return self.branch(&it.tree, path, is_handed_on);
            }
            UseTree::Group(it) => {
                return it.items.iter().for_each(|tree| self.branch(tree, path.clone(), is_handed_on));
            }
            UseTree::Name(it) => (&it.ident, &it.ident),
            UseTree::Rename(it) => (&it.ident, &it.rename),
            UseTree::Glob(it) => {
                if self.depth == 0 {
                    self.contents.globs.push(path.clone());
                }
                path.push("*".into());
                let kind = Kind::Use { name: "*".into(), is_handed_on };
                return self.mention(path, it.star_token.spans[0], kind);
            }
        };
        let mut name = name.to_string();
        if last == "self" {
            if name == "self" {
                name = path.last().cloned().unwrap_or_default();
            }
        } else {
            path.push(last.to_string());
        }
        let names = if self.depth == 0 { &mut self.contents.names } else { &mut self.contents.inner_names };
        names.entry(name.clone()).or_default().push(Meaning::Path(path.clone()));
        self.mention(path, last.span(), Kind::Use { name, is_handed_on });
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let mut found = Found::default();
        found.scan(tokens);
        for (path, span) in found.paths {
            self.mention(path, span, Kind::Code);
        }
        for (name, span) in found.calls {
            self.mention(vec![name], span, Kind::Call);
        }
        self.contents.used.extend(found.idents);
    }
}

/// Goes into a part of code, unless it is for tests.
macro_rules! unless_for_tests {
    ($($visit:ident($Part:ident))*) => {$(
        fn $visit(&mut self, part: &'a syn::$Part) {
            if !is_for_tests(&part.attrs) {
                visit::$visit(self, part);
            }
        }
    )*};
}

impl<'a> Visit<'a> for Collector {
    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_vis_restricted(&mut self, _: &'a syn::VisRestricted) {}

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if item.leading_colon.is_none() {
            self.branch(&item.tree, Vec::new(), !matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if let (None, Type::Path(it)) = (&item.trait_, &*item.self_ty)
            && let Some(first) = it.path.segments.first()
        {
            let path = it.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.mention(path, first.ident.span(), Kind::Methods);
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_block(&mut self, block: &'a syn::Block) {
        self.depth += 1;
        visit::visit_block(self, block);
        self.depth -= 1;
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none()
            && let Some(first) = path.segments.first()
        {
            self.contents.used.insert(first.ident.to_string());
            if path.segments.len() > 1 {
                let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                self.mention(names, first.ident.span(), Kind::Code);
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, it: &'a syn::Macro) {
        visit::visit_macro(self, it);
        if let Some(name) = it.path.get_ident() {
            self.mention(vec![name.to_string()], name.span(), Kind::Call);
        }
        self.tokens(it.tokens.clone());
    }

    fn visit_item(&mut self, item: &'a Item) {
        if !is_for_tests(of_item(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        if !is_for_tests(of_impl_item(item)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'a TraitItem) {
        if !is_for_tests(of_trait_item(item)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !is_for_tests(of_statement(statement)) {
            visit::visit_stmt(self, statement);
        }
    }

    unless_for_tests! { visit_field(Field) visit_field_value(FieldValue) visit_variant(Variant) visit_arm(Arm) }
}
