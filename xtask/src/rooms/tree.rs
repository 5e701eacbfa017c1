//! The tree of modules: which file each is in, what its names mean, and which paths its code mentions.
//!
//! A name may mean several things: a module and a function, or one thing for each of several targets. All are kept. What
//! a name leads to in the end is `resolve`'s to say.

use super::collect::{Contents, collect};
use super::conditions::is_for_tests;
use super::sources::{ROOT, Source, Sources};
use std::collections::{BTreeSet, HashMap};
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta};

/// The crate's root module.
pub const CRATE: usize = 0;

/// A folder whose code may import anything: the kernel's own tests.
const TESTS_FOLDER: &str = "checks";

/// What a name in a module may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A module.
    Module(usize),
    /// Something made here: whether a path may go on behind it, as behind a type.
    Item { goes_on: bool },
    /// What a path leads to, from this module.
    Path(Vec<String>),
    /// Another crate.
    Foreign,
}

/// A path that a module's code mentions.
#[derive(Clone, Debug)]
pub struct Mention {
    /// Its segments; the last of a glob is `*`.
    pub path: Vec<String>,
    /// Where.
    pub line: usize,
    /// What it is.
    pub kind: Kind,
}

/// What a mention is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A part of code, or of what a macro is given.
    Code,
    /// A macro called by its name alone.
    Call,
    /// An import, under a name; `is_handed_on`: others can import it from here.
    Use { name: String, is_handed_on: bool },
    /// A type to which methods are added.
    Methods,
}

/// One module.
#[derive(Default)]
pub struct Module {
    /// The file it is in.
    pub file: usize,
    /// The module around it; none for the crate.
    pub parent: Option<usize>,
    /// Its own name.
    pub name: String,
    /// What its names mean.
    pub names: HashMap<String, Vec<Meaning>>,
    /// What names mean in some block of its code.
    pub inner_names: HashMap<String, Vec<Meaning>>,
    /// Paths of which all names are names here.
    pub globs: Vec<Vec<String>>,
    /// The macros that can be called by name from here on, and below: those made here, and those of children with
    /// `#[macro_use]`. With the files that make them.
    pub macros: Vec<(String, usize)>,
    /// The paths that its code mentions.
    pub mentions: Vec<Mention>,
    /// The names that its code uses, wherever from.
    pub used: BTreeSet<String>,
    /// Whether its imports are nobody's business: it is compiled for tests alone.
    pub is_test: bool,
}

/// All modules of a crate.
pub struct Tree {
    /// The modules, the crate first.
    pub modules: Vec<Module>,
    /// What is wrong with the sources.
    pub troubles: Vec<String>,
}

impl Tree {
    /// Builds the tree.
    pub fn new(sources: &Sources) -> Self {
        let mut tree = Self { modules: Vec::new(), troubles: Vec::new() };
        let Some(root) = sources.find(ROOT) else {
            tree.troubles.push(format!("there is no {ROOT}"));
            return tree;
        };
        let crate_ = Module { file: root, ..Module::default() };
        tree.add(sources, crate_, &sources.files[root].syntax.items, "");
        let mounted: BTreeSet<_> = tree.modules.iter().map(|module| module.file).collect();
        for (file, source) in sources.files.iter().enumerate() {
            if !mounted.contains(&file) {
                tree.troubles.push(format!("{}: no module is in this file", source.path));
            }
        }
        tree
    }

    /// Whether a module is another, or somewhere in it.
    pub fn is_within(&self, module: usize, outer: usize) -> bool {
        let mut at = Some(module);
        while let Some(module) = at {
            if module == outer {
                return true;
            }
            at = self.modules[module].parent;
        }
        false
    }

    /// Adds a module with its items; its children's files are looked for in a folder.
    fn add(&mut self, sources: &Sources, module: Module, items: &[Item], folder: &str) -> usize {
        let id = self.modules.len();
        let Contents { names, inner_names, macros, root_names, globs, mentions, used } = collect(items);
        let macros = macros.into_iter().map(|name| (name, module.file)).collect();
        let module = Module { names, inner_names, macros, globs, mentions, used, ..module };
        let (file, is_test) = (module.file, module.is_test);
        self.modules.push(module);
        for name in root_names {
            let path = self.path_to(id, name.clone());
            self.mean(CRATE, name, Meaning::Path(path));
        }
        for item in items {
            if let Item::Mod(child) = item {
                let name = child.ident.to_string();
                let is_test = is_test || is_for_tests(&child.attrs) || name == TESTS_FOLDER;
                let module =
                    Module { file, parent: Some(id), name: name.clone(), is_test, ..Module::default() };
                let hands_macros_on = child.attrs.iter().any(|it| it.path().is_ident("macro_use"));
                if let Some(child) = self.add_child(sources, module, child, folder) {
                    self.mean(id, name, Meaning::Module(child));
                    if hands_macros_on {
                        let macros = self.modules[child].macros.clone();
                        self.modules[id].macros.extend(macros);
                    }
                }
            }
        }
        id
    }

    fn add_child(
        &mut self,
        sources: &Sources,
        mut module: Module,
        child: &ItemMod,
        folder: &str,
    ) -> Option<usize> {
        let name = &module.name;
        if let Some((_, items)) = &child.content {
            let folder = format!("{folder}{name}/");
            return Some(self.add(sources, module, items, &folder));
        }
        let here = &sources.files[module.file].path;
        let paths = match path_attribute(&child.attrs) {
            Some(path) => vec![normal(&format!("{}{path}", folder_of(here)))],
            None => vec![format!("{folder}{name}.rs"), format!("{folder}{name}/mod.rs")],
        };
        let Some(file) = paths.iter().find_map(|path| sources.find(path)) else {
            if module.is_test && path_attribute(&child.attrs).is_some() {
                // Tests may stand outside the sources, where nothing is looked at.
                return None;
            }
            self.troubles.push(format!("{here}: there is no file for its module {name}"));
            return None;
        };
        let Source { path, syntax, .. } = &sources.files[file];
        let folder = if paths.len() == 1 || path.ends_with("/mod.rs") {
            folder_of(path).to_owned()
        } else {
            format!("{}/", path.trim_end_matches(".rs"))
        };
        module.is_test |= is_for_tests(&syntax.attrs);
        module.file = file;
        Some(self.add(sources, module, &syntax.items, &folder))
    }

    /// The path from the crate's root to a name in a module.
    fn path_to(&self, module: usize, name: String) -> Vec<String> {
        let mut path = vec![name];
        let mut at = module;
        while let Some(parent) = self.modules[at].parent {
            path.push(self.modules[at].name.clone());
            at = parent;
        }
        path.push("crate".into());
        path.reverse();
        path
    }

    fn mean(&mut self, module: usize, name: String, meaning: Meaning) {
        self.modules[module].names.entry(name).or_default().push(meaning);
    }
}

/// What `#[path = "..."]` says.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

/// The folder of a file, with a slash behind it, or nothing.
fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..=slash])
}

/// The path without `..` and `.`.
fn normal(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
