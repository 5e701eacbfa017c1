//! What is wrong with a crate's imports, by its table of rooms.

use super::imports::{Import, Imports};
use super::sources::{Source, Sources};
use super::table::{Exception, Table, is_in};
use std::collections::BTreeSet;

/// A crate with its imports and its table.
pub struct House<'a> {
    /// The files.
    pub sources: &'a Sources,
    /// What they import.
    pub imports: &'a Imports,
    /// Their rooms.
    pub table: &'a Table,
    /// What to call the folder of the sources.
    pub folder: &'a str,
    /// What to call the file of the table.
    pub table_name: &'a str,
}

/// What a file does with what another makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It imports it, which may be done from below.
    Imports,
    /// It adds methods to it, which is done at home: rooms below could call them, and nobody would see an import.
    AddsMethods,
}

impl House<'_> {
    /// All complaints, a line each.
    pub fn complaints(&self) -> Vec<String> {
        let troubles = self.imports.troubles.iter().map(|trouble| format!("{}/{trouble}", self.folder));
        let mut complaints: Vec<_> = troubles.collect();
        self.without_rooms(&mut complaints);
        let mut needed = BTreeSet::new();
        let imports = self.imports.imports.iter().map(|import| (import, Manner::Imports));
        let methods = self.imports.methods.iter().map(|import| (import, Manner::AddsMethods));
        for (import, manner) in imports.chain(methods) {
            if let Some(complaint) = self.judge(import, manner) {
                match self.exception(import) {
                    Some(exception) => drop(needed.insert(exception.line)),
                    None => complaints.push(complaint),
                }
            }
        }
        for Exception { from, to, line } in &self.table.exceptions {
            if !needed.contains(line) {
                complaints.push(format!("{}:{line}: {from} -> {to} needs no exception", self.table_name));
            }
        }
        complaints
    }

    /// Files without a room, and rooms without a file.
    fn without_rooms(&self, complaints: &mut Vec<String>) {
        let Self { sources, table, folder, .. } = self;
        for (id, Source { path, .. }) in sources.files.iter().enumerate() {
            let is_excepted = table.is_facade(path) || self.imports.tests.contains(&id);
            if !is_excepted && table.room_of(path).is_none() {
                complaints.push(format!("{folder}/{path}: is in no room of {}", self.table_name));
            }
        }
        let rooms = table.rooms.iter().map(|room| &room.name).chain(&table.facades);
        for name in rooms {
            if !sources.files.iter().any(|file| is_in(&file.path, name)) {
                complaints.push(format!("{}: there is no {folder}/{name}", self.table_name));
            }
        }
    }

    /// What is wrong with an import, whatever is excepted.
    fn judge(&self, import: &Import, manner: Manner) -> Option<String> {
        let path = |file: usize| self.sources.files[file].path.as_str();
        let (from, to) = (path(import.from), path(import.to));
        // A file without a room is complained of as such.
        let room = self.table.room_of(from).filter(|_| !self.table.is_facade(from))?;
        let other = self.table.room_of(to).filter(|_| !self.table.is_facade(to));
        let floor_of = |room: usize| self.table.rooms[room].floor;
        let is_below = |other| manner == Manner::Imports && floor_of(other) < floor_of(room);
        if other.is_some_and(|other| other == room || is_below(other)) {
            return None;
        }
        let describe =
            |room: usize| format!("room {} (floor {})", self.table.rooms[room].name, floor_of(room));
        let origin = match other {
            Some(other) => describe(other),
            None if self.table.is_facade(to) => format!("the facade {to}"),
            None => format!("{to}, which is in no room"),
        };
        let (folder, line, subject) = (self.folder, import.line, describe(room));
        let verb = match manner {
            Manner::Imports => "imports",
            Manner::AddsMethods => "adds methods to",
        };
        Some(format!(
            "{folder}/{from}:{line}: {subject} {verb} {}{} from {origin}",
            module_of(to),
            import.item
        ))
    }

    fn exception(&self, import: &Import) -> Option<&Exception> {
        let path = |file: usize| self.sources.files[file].path.as_str();
        self.table.exceptions.iter().find(|it| it.covers(path(import.from), path(import.to)))
    }
}

/// The module in a file, as a path begins with it.
fn module_of(file: &str) -> String {
    let name = file.strip_suffix(".rs").unwrap_or(file);
    match name.strip_suffix("mod").or(name.strip_suffix("lib")) {
        Some("") => String::new(),
        Some(folder) if folder.ends_with('/') => folder.replace('/', "::"),
        _ => format!("{}::", name.replace('/', "::")),
    }
}
