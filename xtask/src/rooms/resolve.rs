//! Where a path leads: through modules, imports under other names, and globs, to the file that makes the thing.
//!
//! Visibility is not looked at, nor are `cfg`s: where a name means several things, it leads to all of them.

use super::tree::{CRATE, Meaning, Tree};
use std::collections::BTreeSet;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A module.
    Module(usize),
    /// Something that a file makes.
    Item { file: usize, name: String, goes_on: bool },
    /// Something of another crate.
    Foreign,
}

/// Finds places.
pub struct Resolver<'a> {
    tree: &'a Tree,
    /// The names that are being looked up: one that leads back to itself leads nowhere.
    under_way: Vec<(usize, String)>,
}

impl<'a> Resolver<'a> {
    /// A resolver.
    pub fn new(tree: &'a Tree) -> Self {
        Self { tree, under_way: Vec::new() }
    }

    /// All places that a path leads to; none: it cannot be told.
    pub fn places(&mut self, module: usize, path: &[String]) -> BTreeSet<Place> {
        let mut rest = path.iter();
        let mut places = BTreeSet::new();
        let Some(first) = rest.next() else { return places };
        let start = match first.as_str() {
            "crate" => Some(CRATE),
            "self" => Some(module),
            "super" => self.tree.modules[module].parent,
            name => {
                places = self.in_scope(module, name);
                if path.len() > 1 {
                    places.retain(|place| !matches!(place, Place::Item { goes_on: false, .. }));
                }
                if places.is_empty() {
                    places.insert(Place::Foreign);
                }
                None
            }
        };
        places.extend(start.map(Place::Module));
        for name in rest {
            places = places.into_iter().flat_map(|place| self.step(place, name)).collect();
        }
        places
    }

    fn step(&mut self, place: Place, name: &str) -> BTreeSet<Place> {
        match place {
            Place::Module(module) if name == "super" => {
                self.tree.modules[module].parent.map(Place::Module).into_iter().collect()
            }
            Place::Module(module) => self.named(module, name),
            // A variant, or something associated.
            Place::Item { goes_on: true, .. } | Place::Foreign => BTreeSet::from([place]),
            Place::Item { .. } => BTreeSet::new(),
        }
    }

    /// Whether a module knows a name only from other crates, or from the text around it.
    pub fn is_foreign(&mut self, module: usize, name: &str) -> bool {
        self.in_scope(module, name).is_empty()
    }

    /// What a module calls by a name.
    pub fn named(&mut self, module: usize, name: &str) -> BTreeSet<Place> {
        let tree = self.tree;
        let it = &tree.modules[module];
        let mut places = BTreeSet::new();
        let mut is_foreign = false;
        for meaning in it.names.get(name).into_iter().flatten() {
            match meaning {
                Meaning::Module(child) => drop(places.insert(Place::Module(*child))),
                Meaning::Item { goes_on } => drop(places.insert(self.item(module, name, *goes_on))),
                Meaning::Foreign => is_foreign = true,
                Meaning::Path(path) => {
                    let found = self.followed(module, name, path);
                    is_foreign |= found.contains(&Place::Foreign);
                    places.extend(found.into_iter().filter(|place| *place != Place::Foreign));
                }
            }
        }
        if places.is_empty() && !is_foreign {
            let found = self.behind_globs(module, name);
            is_foreign |= found.contains(&Place::Foreign);
            places.extend(found.into_iter().filter(|place| *place != Place::Foreign));
        }
        if places.is_empty() && is_foreign {
            // Who brings a thing of another crate in answers for it.
            places.insert(self.item(module, name, true));
        }
        places
    }

    /// What a module calls by a name that it has with all others of somewhere.
    fn behind_globs(&mut self, module: usize, name: &str) -> BTreeSet<Place> {
        let tree = self.tree;
        let mut places = BTreeSet::new();
        for glob in &tree.modules[module].globs {
            places.extend(self.once(module, format!("* {name} {}", glob.join("::")), |resolver| {
                let outer = resolver.places(module, glob);
                outer.into_iter().flat_map(|place| resolver.in_glob(place, name)).collect()
            }));
        }
        places
    }

    fn in_glob(&mut self, outer: Place, name: &str) -> BTreeSet<Place> {
        match outer {
            Place::Module(module) => self.named(module, name),
            Place::Item { file, name: outer, .. } => self.variant(file, &outer, name).into_iter().collect(),
            Place::Foreign => BTreeSet::from([Place::Foreign]),
        }
    }

    /// What a name is where a path begins with it; nothing: another crate.
    fn in_scope(&mut self, module: usize, name: &str) -> BTreeSet<Place> {
        let tree = self.tree;
        let mut places = BTreeSet::new();
        let it = &tree.modules[module];
        if it.names.contains_key(name) || !it.globs.is_empty() {
            places = self.named(module, name);
        }
        for meaning in it.inner_names.get(name).into_iter().flatten() {
            if let Meaning::Path(path) = meaning {
                places.extend(self.followed(module, name, path));
            }
        }
        places
    }

    fn followed(&mut self, module: usize, name: &str, path: &[String]) -> BTreeSet<Place> {
        // By path: one name may lead several ways.
        self.once(module, format!("{name} {}", path.join("::")), |resolver| resolver.places(module, path))
    }

    /// Looks something up, unless that is what is being looked up.
    fn once(
        &mut self,
        module: usize,
        what: String,
        look: impl FnOnce(&mut Self) -> BTreeSet<Place>,
    ) -> BTreeSet<Place> {
        let key = (module, what);
        if self.under_way.contains(&key) {
            return BTreeSet::new();
        }
        self.under_way.push(key);
        let places = look(self);
        self.under_way.pop();
        places
    }

    /// The variant of an enum that a glob over it makes a name.
    fn variant(&self, file: usize, outer: &str, name: &str) -> Option<Place> {
        let qualified = format!("{outer}::{name}");
        let mut modules = self.tree.modules.iter().filter(|module| module.file == file);
        modules.any(|module| module.names.contains_key(&qualified)).then(|| Place::Item {
            file,
            name: outer.to_owned(),
            goes_on: true,
        })
    }

    fn item(&self, module: usize, name: &str, goes_on: bool) -> Place {
        Place::Item { file: self.tree.modules[module].file, name: name.to_owned(), goes_on }
    }
}
