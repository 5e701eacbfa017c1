//! Which of the tree's nodes boot reads: the root's children are gone through once, and what is below them once more if a
//! device was not among them.
//!
//! The cores' nodes are read in `cores.rs`, the devices' in `devices.rs`.

use dtoolkit::Node;
use dtoolkit::fdt::FdtNode;

use super::description::{MOST_MEMORY, TreeError};
use super::devices::{Device, Devices};
use super::properties::{Facts, range};
use crate::memory::Range;

/// The nodes that boot reads.
#[derive(Default)]
pub(super) struct Nodes<'a> {
    pub(super) devices: Devices<'a>,
    memory: [Range; MOST_MEMORY],
    memory_count: usize,
    pub(super) reserved: Option<FdtNode<'a>>,
    pub(super) cpus: Option<FdtNode<'a>>,
    pub(super) chosen: Option<FdtNode<'a>>,
}

impl<'a> Nodes<'a> {
    pub(super) fn of(root: FdtNode<'a>) -> Self {
        let mut nodes = Self::default();
        for node in root.children() {
            let named = match node.name_without_address() {
                "reserved-memory" => Some(&mut nodes.reserved),
                "cpus" => Some(&mut nodes.cpus),
                "chosen" => Some(&mut nodes.chosen),
                _ => None,
            };
            if let Some(named) = named {
                named.get_or_insert(node);
            }
            let facts = Facts::of(node);
            if facts.is_of_type("memory") {
                nodes.add_memory(node);
            }
            nodes.devices.look_at(Device { node, bus: None }, &facts);
        }
        if nodes.devices.is_incomplete() {
            for bus in root.children() {
                for node in bus.children() {
                    nodes.devices.look_at(Device { node, bus: Some(bus) }, &Facts::of(node));
                }
            }
        }
        nodes
    }

    fn add_memory(&mut self, node: FdtNode<'_>) {
        for range in (0..).map_while(|index| range(node, index)) {
            if self.memory_count < MOST_MEMORY && range.bytes() > 0 {
                self.memory[self.memory_count] = range;
                self.memory_count += 1;
            }
        }
    }

    pub(super) fn memory(&self) -> Result<[Range; MOST_MEMORY], TreeError> {
        if self.memory_count == 0 { Err(TreeError::NoMemory) } else { Ok(self.memory) }
    }
}
