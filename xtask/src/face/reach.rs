//! What can be named from outside: the items that public imports and modules lead to, from the facade's names on.
//!
//! `cfg`s decide nothing but what is for tests; what is hidden from the documentation is no part of the face.

use crate::rooms::attributes::of_item;
use crate::rooms::conditions::is_for_tests;
use crate::rooms::resolve::{Place, Resolver};
use crate::rooms::sources::Sources;
use crate::rooms::tree::{CRATE, Tree};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

/// The facade's imports.
pub struct Facade {
    /// Their paths, with the name that the last segment has from then on.
    imports: Vec<(Vec<String>, String)>,
}

impl Facade {
    /// Reads the facade's root. Its own modules name again what is named here.
    pub fn parse(text: &str) -> Result<Self> {
        let mut imports = Vec::new();
        for item in &syn::parse_file(text)?.items {
            if let Item::Use(item) = item
                && is_public(&item.vis)
            {
                imports.extend(branches(item));
            }
        }
        Ok(Self { imports })
    }

    /// What it names of one crate: paths from that crate's root.
    pub fn paths(&self, name: &str) -> Vec<Vec<String>> {
        let of_crate =
            self.imports.iter().filter(|(path, _)| path.first().is_some_and(|first| first == name));
        of_crate.map(|(path, _)| path[1..].to_vec()).collect()
    }
}

/// What a name of the face stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reached {
    /// The file that makes it.
    pub file: usize,
    /// What it is called there.
    pub made_as: String,
}

/// The names that lead to one thing.
#[derive(Default)]
pub struct Ways {
    /// One path to it, without the crate.
    pub path: String,
    /// The modules on the way, for their docs.
    pub modules: BTreeSet<usize>,
}

/// Follows names.
pub struct Explorer<'a> {
    sources: &'a Sources,
    tree: &'a Tree,
    /// What was found.
    pub reached: BTreeMap<Reached, Ways>,
    /// What leads nowhere.
    pub troubles: Vec<String>,
    /// The modules that were looked at.
    seen: BTreeSet<usize>,
}

impl<'a> Explorer<'a> {
    /// Follows paths from the crate's root.
    pub fn new(sources: &'a Sources, tree: &'a Tree, paths: &[Vec<String>]) -> Self {
        let mut explorer = Self {
            sources,
            tree,
            reached: BTreeMap::new(),
            troubles: tree.troubles.clone(),
            seen: BTreeSet::new(),
        };
        for path in paths {
            let full = [&["crate".to_owned()], &path[..]].concat();
            explorer.follow(CRATE, &full, "", path.last().map_or("", |name| name), None);
        }
        explorer
    }

    /// Goes where a path in a module leads; what is there is called `name` in what is called `outer`.
    fn follow(&mut self, module: usize, path: &[String], outer: &str, name: &str, way: Option<usize>) {
        let path_here = match (outer, name) {
            ("", name) => name.to_owned(),
            // Of a glob: what is behind it is named as if it stood here.
            (outer, "") => outer.to_owned(),
            (outer, name) => format!("{outer}::{name}"),
        };
        let mut places = Resolver::new(self.tree).places(module, path);
        places.retain(|place| !matches!(place, Place::Module(inner) if self.is_for_models(*inner)));
        if places.iter().any(|place| !matches!(place, Place::Module(_))) {
            // A module of the same name is where the thing is made, and private.
            places.retain(|place| !matches!(place, Place::Module(_)));
        }
        if places.is_empty() {
            let file = &self.sources.files[self.tree.modules[module].file].path;
            self.troubles.push(format!("{file}: cannot tell what {} is", path.join("::")));
        }
        for place in places {
            match place {
                Place::Module(inner) => self.module(inner, &path_here),
                Place::Item { file, name, .. } => self.item(Reached { file, made_as: name }, &path_here, way),
                Place::Foreign => {}
            }
        }
    }

    /// Notes what a module makes and hands on.
    fn module(&mut self, module: usize, path: &str) {
        if !self.seen.insert(module) {
            return;
        }
        for item in items(self.sources, self.tree, module) {
            if is_for_tests(of_item(item)) || is_hidden(of_item(item)) {
                continue;
            }
            if let Item::Use(item) = item {
                if is_public(&item.vis) {
                    for (target, name) in branches(item) {
                        self.follow(module, &target, path, &name, Some(module));
                    }
                }
            } else if let Some(name) = public_name(item) {
                self.follow(module, &["self".into(), name.clone()], path, &name, Some(module));
            }
        }
    }

    /// Whether a module is there for a model checker alone.
    fn is_for_models(&self, module: usize) -> bool {
        inline(self.sources, self.tree, module).is_some_and(|(attributes, _)| {
            attributes.iter().any(|attribute| {
                attribute.path().is_ident("cfg")
                    && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("loom"))
            })
        })
    }

    fn item(&mut self, reached: Reached, path: &str, way: Option<usize>) {
        let ways = self.reached.entry(reached).or_default();
        if ways.path.is_empty() {
            path.clone_into(&mut ways.path);
        }
        ways.modules.extend(way);
    }
}

/// The items of a module.
pub fn items<'a>(sources: &'a Sources, tree: &Tree, module: usize) -> &'a [Item] {
    match inline(sources, tree, module) {
        Some((_, items)) => items,
        None => &sources.files[tree.modules[module].file].syntax.items,
    }
}

/// The attributes of a module: those inside its file, or on its block.
pub fn attributes<'a>(sources: &'a Sources, tree: &Tree, module: usize) -> &'a [Attribute] {
    match inline(sources, tree, module) {
        Some((attributes, _)) => attributes,
        None => &sources.files[tree.modules[module].file].syntax.attrs,
    }
}

/// A module that stands as a block in its parent's file.
fn inline<'a>(sources: &'a Sources, tree: &Tree, module: usize) -> Option<(&'a [Attribute], &'a [Item])> {
    let it = &tree.modules[module];
    let parent = it.parent.filter(|parent| tree.modules[*parent].file == it.file)?;
    items(sources, tree, parent).iter().find_map(|item| match item {
        Item::Mod(item) if item.ident == it.name => {
            item.content.as_ref().map(|(_, items)| (&item.attrs[..], &items[..]))
        }
        _ => None,
    })
}

/// What an item is called, if others can name it from here.
fn public_name(item: &Item) -> Option<String> {
    let (visibility, name) = match item {
        Item::Enum(it) => (&it.vis, &it.ident),
        Item::Fn(it) => (&it.vis, &it.sig.ident),
        Item::Mod(it) => (&it.vis, &it.ident),
        Item::Struct(it) => (&it.vis, &it.ident),
        Item::Trait(it) => (&it.vis, &it.ident),
        Item::Type(it) => (&it.vis, &it.ident),
        Item::Union(it) => (&it.vis, &it.ident),
        _ => return None,
    };
    is_public(visibility).then(|| name.to_string())
}

/// Whether something is public without limits.
pub fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether documentation leaves it out.
pub fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("hidden"))
    })
}

/// The paths of an import, and the names that they make.
fn branches(item: &ItemUse) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    if !is_for_tests(&item.attrs) && !is_hidden(&item.attrs) {
        branch(&item.tree, &[], &mut found);
    }
    found
}

fn branch(tree: &UseTree, path: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let (last, name) = match tree {
        UseTree::Path(it) => {
            return branch(&it.tree, &[path, &[it.ident.to_string()]].concat(), found);
        }
        UseTree::Group(it) => return it.items.iter().for_each(|tree| branch(tree, path, found)),
        UseTree::Name(it) => (&it.ident, &it.ident),
        UseTree::Rename(it) => (&it.ident, &it.rename),
        // What is behind it is a module's face: see `Explorer::module`.
        UseTree::Glob(_) => return found.push((path.to_vec(), String::new())),
    };
    if last == "self" {
        let name = if name == "self" { path.last().cloned().unwrap_or_default() } else { name.to_string() };
        found.push((path.to_vec(), name));
    } else {
        found.push(([path, &[last.to_string()]].concat(), name.to_string()));
    }
}
