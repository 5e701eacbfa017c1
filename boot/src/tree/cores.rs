//! The cores: how many, where each sits, and how each is started.
//!
//! Starting them is not done here, but in `secondary.rs`.

use dtoolkit::Node;
use dtoolkit::fdt::FdtNode;
use magpie::arch::MAX_CORES;
use magpie::machine::Location;

use super::description::{Description, StartMethod};
use super::properties::{Facts, cell, first_cell, number, text};

/// Reads the cores into `found`.
pub(super) fn read(cpus: Option<FdtNode<'_>>, found: &mut Description<'_>) {
    let Some(cpus) = cpus else {
        // A tree without cores: the one that reads it exists all the same.
        found.cores = 1;
        return;
    };
    let mut handles = [0u32; MAX_CORES];
    let mut map = None;
    for node in cpus.children() {
        if map.is_none() && node.name_without_address() == "cpu-map" {
            map = Some(node);
        }
        let facts = Facts::of(node);
        let Some(affinity) = facts.reg.filter(|_| facts.is_of_type("cpu")).and_then(number) else { continue };
        if found.cores == MAX_CORES {
            found.cores_beyond += 1;
            continue;
        }
        let core = found.cores;
        found.places[core].affinity = affinity;
        found.places[core].node = facts.numa_node.and_then(first_cell).unwrap_or(0);
        // Where there is no map, MPIDR's higher fields are the best guess.
        found.places[core].cluster = (affinity >> 8 & 0xffff) as u32;
        handles[core] = facts.phandle.and_then(first_cell).unwrap_or(0);
        if facts.enable_method.is_some_and(|method| text(method) == b"spin-table")
            && let Some(address) =
                facts.release_address.and_then(number).and_then(|a| usize::try_from(a).ok())
        {
            found.start[core] = StartMethod::SpinTable(address);
        }
        found.cores += 1;
    }
    if let Some(map) = map {
        let count = found.cores;
        map_level(map, Location::default(), &mut |handle, place| {
            if let Some(core) = handles[..count].iter().position(|&known| known == handle) {
                found.places[core].socket = place.socket;
                found.places[core].cluster = place.cluster;
            }
        });
    }
    found.cores = found.cores.max(1);
}

/// Walks a `cpu-map`: sockets hold clusters, clusters hold clusters or cores.
fn map_level(node: FdtNode<'_>, place: Location, see: &mut impl FnMut(u32, Location)) {
    map_bounded(node, place, 0, see);
}

fn map_bounded(node: FdtNode<'_>, place: Location, depth: u32, see: &mut impl FnMut(u32, Location)) {
    // Deeper than any real tree; a damaged one must not use up the stack.
    if depth > 6 {
        return;
    }
    for child in node.children() {
        let name = child.name();
        let index = |prefix: &str| name.strip_prefix(prefix).and_then(|number| number.parse::<u32>().ok());
        let mut place = place;
        if let Some(socket) = index("socket") {
            place.socket = socket;
        } else if let Some(cluster) = index("cluster") {
            place.cluster = place.cluster * 16 + cluster;
        } else if index("core").is_none() && index("thread").is_none() {
            continue;
        }
        if let Some(handle) = cell(child, "cpu", 0) {
            see(handle, place);
        }
        map_bounded(child, place, depth + 1, see);
    }
}
