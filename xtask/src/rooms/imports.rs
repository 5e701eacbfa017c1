//! Which file imports what from which other.
//!
//! - An import of a module alone is none, where what is meant is said behind its name (`sched::spawn(...)`): that is one.
//! - A module that only hands on what is inside it imports nothing by that: it is a facade.

use super::resolve::{Place, Resolver};
use super::sources::Sources;
use super::tree::{Kind, Mention, Tree};
use std::collections::BTreeSet;

/// One import.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    /// The file that imports.
    pub from: usize,
    /// The line there.
    pub line: usize,
    /// The file that makes what is imported.
    pub to: usize,
    /// What it is called there.
    pub item: String,
}

/// All imports of a crate.
#[derive(Default)]
pub struct Imports {
    /// What is imported, sorted.
    pub imports: Vec<Import>,
    /// Methods added to a type of another file: as if imported from there.
    pub methods: Vec<Import>,
    /// The files that are there for tests alone.
    pub tests: BTreeSet<usize>,
    /// What could not be made out.
    pub troubles: Vec<String>,
}

impl Imports {
    /// Resolves what the sources mention.
    pub fn new(sources: &Sources) -> Self {
        let mut tree = Tree::new(sources);
        let mut imports = Self { troubles: std::mem::take(&mut tree.troubles), ..Self::default() };
        let is_for_tests = |file: &usize| {
            let mut modules = tree.modules.iter().filter(|module| module.file == *file).peekable();
            modules.peek().is_some() && modules.all(|module| module.is_test)
        };
        imports.tests = (0..sources.files.len()).filter(is_for_tests).collect();
        for (id, module) in tree.modules.iter().enumerate() {
            if module.is_test {
                continue;
            }
            let mut one = OneModule {
                sources,
                tree: &tree,
                resolver: Resolver::new(&tree),
                id,
                through: BTreeSet::new(),
                imports: &mut imports,
            };
            for mention in module.mentions.iter().filter(|it| it.kind == Kind::Code) {
                one.path(mention);
            }
            for mention in &module.mentions {
                match &mention.kind {
                    Kind::Use { name, is_handed_on } if name == "*" => one.glob(mention, *is_handed_on),
                    Kind::Use { name, is_handed_on } => one.name(mention, name, *is_handed_on),
                    Kind::Methods => one.methods(mention),
                    Kind::Call => one.call(mention),
                    Kind::Code => {}
                }
            }
        }
        imports.imports.sort();
        imports.imports.dedup();
        imports.methods.sort();
        imports.troubles.sort();
        imports.troubles.dedup();
        imports
    }
}

/// What one module is at.
struct OneModule<'a> {
    sources: &'a Sources,
    tree: &'a Tree,
    resolver: Resolver<'a>,
    id: usize,
    /// The names of modules behind which something is named.
    through: BTreeSet<String>,
    imports: &'a mut Imports,
}

impl OneModule<'_> {
    /// A path in code.
    fn path(&mut self, mention: &Mention) {
        let first = &mention.path[0];
        let is_relative = !matches!(first.as_str(), "crate" | "self" | "super");
        if is_relative {
            let begins = self.resolver.places(self.id, &mention.path[..1]);
            if !begins.iter().any(|place| matches!(place, Place::Module(_))) {
                // A type, which is imported where its name comes from, or another crate.
                return;
            }
            self.through.insert(first.clone());
        }
        let path = mention.path.strip_suffix(&["*".to_owned()]).unwrap_or(&mention.path);
        for place in self.meant(path, mention.line) {
            self.import(place, mention.line);
        }
    }

    /// An import of one name.
    fn name(&mut self, mention: &Mention, name: &str, is_handed_on: bool) {
        let is_used = self.is_used(name);
        for place in self.meant(&mention.path, mention.line) {
            let is_module_only = matches!(place, Place::Module(_));
            if is_module_only && self.through.contains(name) {
                continue;
            }
            if is_handed_on && (is_module_only || !is_used) && self.is_inside(&place) {
                continue;
            }
            self.import(place, mention.line);
        }
    }

    /// An import of all names.
    fn glob(&mut self, mention: &Mention, is_handed_on: bool) {
        let path = &mention.path[..mention.path.len() - 1];
        for place in self.meant(path, mention.line) {
            let Place::Module(module) = place else {
                self.import(place, mention.line);
                continue;
            };
            let used: Vec<_> = self.tree.modules[self.id].used.iter().cloned().collect();
            let mut is_any_used = false;
            for name in used {
                for place in self.resolver.named(module, &name) {
                    is_any_used = true;
                    self.import(place, mention.line);
                }
            }
            let is_facade = is_handed_on && self.tree.is_within(module, self.id);
            if !is_any_used && !is_facade {
                self.import(place, mention.line);
            }
        }
    }

    /// A macro called by its name alone: one that is imported, or one of the modules around.
    fn call(&mut self, mention: &Mention) {
        let name = &mention.path[0];
        if !self.resolver.is_foreign(self.id, name) {
            return;
        }
        let mut around = Some(self.id);
        while let Some(module) = around {
            let module = &self.tree.modules[module];
            if let Some((_, file)) = module.macros.iter().find(|(made, _)| made == name) {
                let place = Place::Item { file: *file, name: name.clone(), goes_on: false };
                return self.import(place, mention.line);
            }
            around = module.parent;
        }
    }

    /// A type that gets methods.
    fn methods(&mut self, mention: &Mention) {
        let here = self.tree.modules[self.id].file;
        for place in self.resolver.places(self.id, &mention.path) {
            if let Place::Item { file, name, .. } = place
                && file != here
            {
                let (from, line) = (here, mention.line);
                self.imports.methods.push(Import { from, line, to: file, item: name });
            }
        }
    }

    /// What a path stands for: modules only if it stands for nothing else.
    fn meant(&mut self, path: &[String], line: usize) -> BTreeSet<Place> {
        let mut places = self.resolver.places(self.id, path);
        if places.is_empty() {
            let file = &self.sources.files[self.tree.modules[self.id].file].path;
            self.imports.troubles.push(format!("{file}:{line}: cannot tell what {} is", path.join("::")));
        }
        if places.iter().any(|place| !matches!(place, Place::Module(_))) {
            places.retain(|place| !matches!(place, Place::Module(_)));
        }
        places
    }

    fn import(&mut self, place: Place, line: usize) {
        let from = self.tree.modules[self.id].file;
        let (to, item) = match place {
            Place::Item { file, name, .. } => (file, name),
            Place::Module(module) => {
                let module = &self.tree.modules[module];
                (module.file, if module.name.is_empty() { "crate".into() } else { module.name.clone() })
            }
            Place::Foreign => return,
        };
        if to != from {
            self.imports.imports.push(Import { from, line, to, item });
        }
    }

    fn is_used(&self, name: &str) -> bool {
        self.tree.modules[self.id].used.contains(name)
    }

    /// Whether a place is in this module, or below it.
    fn is_inside(&self, place: &Place) -> bool {
        match place {
            Place::Module(module) => self.tree.is_within(*module, self.id),
            Place::Item { file, .. } => {
                let mut modules =
                    (0..self.tree.modules.len()).filter(|it| self.tree.modules[*it].file == *file);
                modules.all(|module| self.tree.is_within(module, self.id))
            }
            Place::Foreign => true,
        }
    }
}
