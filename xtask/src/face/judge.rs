//! What no example shows.

use super::docs::Shown;
use super::reach::{Explorer, Reached, Ways, attributes, is_hidden, is_public, items};
use crate::rooms::attributes::{of_impl_item, of_item};
use crate::rooms::conditions::is_for_tests;
use crate::rooms::resolve::{Place, Resolver};
use crate::rooms::sources::Sources;
use crate::rooms::tree::Tree;
use std::collections::BTreeMap;
use syn::{Attribute, ImplItem, Item, ItemImpl, Signature, TraitItem, Type};

/// All complaints about one crate, a line each; `paths` are what the facade names of it.
pub fn complaints(paths: &[Vec<String>], sources: &Sources, folder: &str) -> Vec<String> {
    let tree = Tree::new(sources);
    let Explorer { reached, troubles, .. } = Explorer::new(sources, &tree, paths);
    let mut complaints: Vec<_> = troubles.iter().map(|trouble| format!("{folder}/{trouble}")).collect();
    let judge = Judge { sources, tree: &tree, folder, impls: impls(sources, &tree) };
    for (thing, ways) in &reached {
        judge.thing(thing, ways, &mut complaints);
    }
    complaints.sort();
    complaints.dedup();
    complaints
}

/// The `impl`s that add methods to something, with their files.
type Impls<'a> = BTreeMap<Reached, Vec<(usize, &'a ItemImpl)>>;

/// Finds all `impl`s without a trait.
fn impls<'a>(sources: &'a Sources, tree: &Tree) -> Impls<'a> {
    let mut impls = Impls::new();
    for (id, module) in tree.modules.iter().enumerate().filter(|(_, module)| !module.is_test) {
        for item in items(sources, tree, id) {
            let Item::Impl(item) = item else { continue };
            if item.trait_.is_some() || is_for_tests(&item.attrs) || is_hidden(&item.attrs) {
                continue;
            }
            let Type::Path(subject) = &*item.self_ty else { continue };
            let path: Vec<_> =
                subject.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            for place in Resolver::new(tree).places(id, &path) {
                if let Place::Item { file, name, .. } = place {
                    impls.entry(Reached { file, made_as: name }).or_default().push((module.file, item));
                }
            }
        }
    }
    impls
}

struct Judge<'a> {
    sources: &'a Sources,
    tree: &'a Tree,
    folder: &'a str,
    impls: Impls<'a>,
}

/// A function of a type or a trait.
struct Method<'a> {
    file: usize,
    attributes: &'a [Attribute],
    signature: &'a Signature,
}

impl<'a> Judge<'a> {
    /// Looks at something that can be named, and at its methods.
    fn thing(&self, thing: &Reached, ways: &Ways, complaints: &mut Vec<String>) {
        let mut modules = Shown::default();
        for module in &ways.modules {
            modules.add(Shown::of(attributes(self.sources, self.tree, *module)));
        }
        for item in self.made(thing).filter(|item| !is_hidden(of_item(item))) {
            let (name, span) = match item {
                Item::Fn(item) => (item.sig.ident.to_string(), item.sig.ident.span()),
                Item::Macro(item) => match &item.ident {
                    Some(name) => (name.to_string(), name.span()),
                    None => continue,
                },
                Item::Struct(_) | Item::Enum(_) | Item::Union(_) | Item::Trait(_) => {
                    self.methods(thing, item, ways, &modules, complaints);
                    continue;
                }
                _ => continue,
            };
            let (outer, called) = ways.path.rsplit_once("::").unwrap_or(("", &name));
            let outer = outer.rsplit("::").next().unwrap_or_default();
            let is_shown = Shown::of(of_item(item)).any
                || modules.calls.contains(called)
                || modules.paths.contains(&(outer.to_owned(), called.to_owned()));
            if !is_shown {
                complaints.push(self.complaint(thing.file, span.start().line, &ways.path));
            }
        }
    }

    /// Looks at the methods of a type or a trait.
    fn methods(
        &self,
        thing: &Reached,
        item: &'a Item,
        ways: &Ways,
        modules: &Shown,
        complaints: &mut Vec<String>,
    ) {
        let mut page = Shown::of(of_item(item));
        let mut methods: Vec<Method<'_>> = Vec::new();
        let mut is_trait = false;
        if let Item::Trait(item) = item {
            is_trait = true;
            methods.extend(item.items.iter().filter_map(|item| match item {
                TraitItem::Fn(item) => {
                    Some(Method { file: thing.file, attributes: &item.attrs, signature: &item.sig })
                }
                _ => None,
            }));
        }
        for (file, item) in self.impls.get(thing).into_iter().flatten() {
            page.add(Shown::of(&item.attrs));
            methods.extend(item.items.iter().filter_map(|item| match item {
                ImplItem::Fn(method) if is_public(&method.vis) => {
                    Some(Method { file: *file, attributes: of_impl_item(item), signature: &method.sig })
                }
                _ => None,
            }));
        }
        methods.retain(|method| !is_for_tests(method.attributes) && !is_hidden(method.attributes));
        for method in &methods {
            page.add(Shown::of(method.attributes));
        }
        let type_name = ways.path.rsplit("::").next().unwrap_or(&thing.made_as);
        for Method { file, attributes, signature } in methods {
            let name = signature.ident.to_string();
            let shows = |shown: &Shown| {
                let by_path = shown.paths.contains(&(type_name.to_owned(), name.clone()));
                by_path
                    || (signature.receiver().is_some() && shown.methods.contains(&name))
                    || (is_trait && shown.written.contains(&name))
            };
            if !(Shown::of(attributes).any || shows(&page) || shows(modules)) {
                let line = signature.ident.span().start().line;
                complaints.push(self.complaint(file, line, &format!("{}::{name}", ways.path)));
            }
        }
    }

    /// The items that something may be: one for each target.
    fn made(&self, thing: &Reached) -> impl Iterator<Item = &'a Item> {
        let modules =
            (0..self.tree.modules.len()).filter(|module| self.tree.modules[*module].file == thing.file);
        let name = thing.made_as.clone();
        modules.flat_map(|module| items(self.sources, self.tree, module)).filter(move |item| {
            let made = match item {
                Item::Enum(it) => &it.ident,
                Item::Fn(it) => &it.sig.ident,
                Item::Macro(item) => match &item.ident {
                    Some(name) => name,
                    None => return false,
                },
                Item::Struct(it) => &it.ident,
                Item::Trait(it) => &it.ident,
                Item::Union(it) => &it.ident,
                _ => return false,
            };
            *made == name
        })
    }

    fn complaint(&self, file: usize, line: usize, path: &str) -> String {
        format!("{}/{}:{line}: no example shows {path}", self.folder, self.sources.files[file].path)
    }
}
