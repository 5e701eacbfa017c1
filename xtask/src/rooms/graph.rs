//! The imports as a graph of files, for people to read: every edge with what is imported, and the circles.

use super::circles::circles;
use super::imports::Import;
use super::sources::Sources;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// What one file imports from another: each item and how often.
type Edge<'a> = BTreeMap<&'a str, usize>;

/// The graph.
pub struct Graph<'a> {
    sources: &'a Sources,
    edges: BTreeMap<(usize, usize), Edge<'a>>,
}

impl<'a> Graph<'a> {
    /// Draws the graph.
    pub fn new(sources: &'a Sources, imports: &'a [Import]) -> Self {
        let mut edges: BTreeMap<_, Edge> = BTreeMap::new();
        for import in imports {
            *edges.entry((import.from, import.to)).or_default().entry(&import.item).or_default() += 1;
        }
        Self { sources, edges }
    }

    /// The files that import each other in circles.
    pub fn circles(&self) -> Vec<Vec<usize>> {
        let mut followers = vec![Vec::new(); self.sources.files.len()];
        for (from, to) in self.edges.keys() {
            followers[*from].push(*to);
        }
        circles(&followers)
    }

    /// One edge as a line.
    fn edge(&self, out: &mut impl Write, (from, to): (usize, usize), edge: &Edge) -> fmt::Result {
        let path = |file: usize| &self.sources.files[file].path;
        let items: Vec<_> = edge
            .iter()
            .map(|(item, count)| if *count > 1 { format!("{item} x{count}") } else { (*item).to_owned() })
            .collect();
        let total: usize = edge.values().sum();
        writeln!(out, "{} -> {} ({total}): {}", path(from), path(to), items.join(", "))
    }

    /// All edges, a line each.
    pub fn write_edges(&self, out: &mut impl Write) -> fmt::Result {
        self.edges.iter().try_for_each(|(ends, edge)| self.edge(out, *ends, edge))
    }

    /// All circles with the edges inside.
    pub fn write_circles(&self, out: &mut impl Write) -> fmt::Result {
        for (number, circle) in self.circles().iter().enumerate() {
            writeln!(out, "circle {}: {} files", number + 1, circle.len())?;
            for (ends, edge) in &self.edges {
                if circle.contains(&ends.0) && circle.contains(&ends.1) {
                    write!(out, "  ")?;
                    self.edge(out, *ends, edge)?;
                }
            }
        }
        Ok(())
    }
}
