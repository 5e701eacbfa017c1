//! The rooms as a table for people: how large each is, what it imports, and who imports each other in circles.

use super::circles::circles;
use super::graph::Graph;
use super::judge::House;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

impl House<'_> {
    /// Writes the table and the circles; all edges as well, if wanted.
    pub fn report(&self, out: &mut impl Write, has_edges: bool) -> fmt::Result {
        let graph = Graph::new(self.sources, &self.imports.imports);
        self.write_rooms(out)?;
        writeln!(out, "\ncircles of files:")?;
        graph.write_circles(out)?;
        writeln!(out, "\nmethods added to types of other files:")?;
        Graph::new(self.sources, &self.imports.methods).write_edges(out)?;
        if has_edges {
            writeln!(out, "\nimports of files:")?;
            graph.write_edges(out)?;
        }
        Ok(())
    }

    /// A line for each room, and the circles of rooms.
    fn write_rooms(&self, out: &mut impl Write) -> fmt::Result {
        let rooms = &self.table.rooms;
        let room_of: Vec<_> = self
            .sources
            .files
            .iter()
            .map(|file| self.table.room_of(&file.path).filter(|_| !self.table.is_facade(&file.path)))
            .collect();
        let mut imported = vec![BTreeMap::new(); rooms.len()];
        for import in &self.imports.imports {
            if let (Some(from), Some(to)) = (room_of[import.from], room_of[import.to])
                && from != to
            {
                *imported[from].entry(to).or_insert(0) += 1;
            }
        }
        writeln!(out, "floor  files  lines  room")?;
        for (id, room) in rooms.iter().enumerate() {
            let is_own = |file: &usize| room_of[*file] == Some(id) && !self.imports.tests.contains(file);
            let files: Vec<_> = (0..room_of.len()).filter(is_own).collect();
            let lines: usize = files.iter().map(|file| self.sources.files[*file].lines).sum();
            let others: Vec<_> =
                imported[id].iter().map(|(to, count)| format!("{} x{count}", rooms[*to].name)).collect();
            let imports = if others.is_empty() { "nothing".into() } else { others.join(", ") };
            let (floor, name) = (room.floor, &room.name);
            writeln!(out, "{floor:>5}  {:>5}  {lines:>5}  {name} imports {imports}", files.len())?;
        }
        let followers: Vec<_> = imported.iter().map(|others| others.keys().copied().collect()).collect();
        writeln!(out, "\ncircles of rooms:")?;
        for circle in circles(&followers) {
            let names: Vec<_> = circle.iter().map(|room| rooms[*room].name.as_str()).collect();
            writeln!(out, "{}", names.join(", "))?;
        }
        Ok(())
    }
}
