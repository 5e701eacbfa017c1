//! What is in one node: properties by their names, as bytes, numbers and ranges of addresses.
//!
//! Every access may fail, because the tree comes from outside. What a property means to boot is not decided here.

use dtoolkit::fdt::FdtNode;
use dtoolkit::{Node, Property};

use crate::memory::Range;

pub(super) fn bytes<'a>(node: FdtNode<'a>, name: &str) -> Option<&'a [u8]> {
    node.properties().find(|property| property.name() == name)?.value_as::<&'a [u8]>().ok()
}

/// The `index`th 32-bit cell of a property.
pub(super) fn cell(node: FdtNode<'_>, name: &str, index: usize) -> Option<u32> {
    let value = bytes(node, name)?.get(index * 4..index * 4 + 4)?;
    Some(u32::from_be_bytes(value.try_into().ok()?))
}

/// A property of one or two cells.
pub(super) fn number(value: &[u8]) -> Option<u64> {
    match value.len() {
        4 | 8 => Some(value.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))),
        _ => None,
    }
}

/// The first cell of a property.
pub(super) fn first_cell(value: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*value.first_chunk()?))
}

/// The bytes of a property that is a text, without the zero at its end.
pub(super) fn text(value: &[u8]) -> &[u8] {
    value.strip_suffix(&[0]).unwrap_or(value)
}

/// Properties of a node that decide what it is to boot: of several with one name, the first.
#[derive(Default)]
pub(super) struct Facts<'a> {
    pub(super) compatible: Option<&'a [u8]>,
    device_type: Option<&'a [u8]>,
    pub(super) status: Option<&'a [u8]>,
    pub(super) reg: Option<&'a [u8]>,
    pub(super) phandle: Option<&'a [u8]>,
    pub(super) numa_node: Option<&'a [u8]>,
    pub(super) enable_method: Option<&'a [u8]>,
    pub(super) release_address: Option<&'a [u8]>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(node: FdtNode<'a>) -> Self {
        let mut facts = Self::default();
        for property in node.properties() {
            let fact = match property.name() {
                "compatible" => &mut facts.compatible,
                "device_type" => &mut facts.device_type,
                "status" => &mut facts.status,
                "reg" => &mut facts.reg,
                "phandle" => &mut facts.phandle,
                "numa-node-id" => &mut facts.numa_node,
                "enable-method" => &mut facts.enable_method,
                "cpu-release-addr" => &mut facts.release_address,
                _ => continue,
            };
            if fact.is_none() {
                *fact = property.value_as::<&'a [u8]>().ok();
            }
        }
        facts
    }

    pub(super) fn is_of_type(&self, name: &str) -> bool {
        self.device_type.is_some_and(|value| text(value) == name.as_bytes())
    }
}

/// The `index`th range of a node's `reg`.
pub(super) fn range(node: FdtNode<'_>, index: usize) -> Option<Range> {
    let reg = node.reg().ok()??.nth(index)?;
    let start = usize::try_from(reg.address::<u64>().ok()?).ok()?;
    let bytes = usize::try_from(reg.size::<u64>().ok()?).ok()?;
    Some(Range { start, end: start.checked_add(bytes)? })
}

/// A range of a bus's addresses as a core sees it, by the bus's `ranges`: triples of the bus's address, the
/// root's address (of two cells) and a size. An empty `ranges` means: the same addresses.
pub(super) fn translated(bus: FdtNode<'_>, own: Range) -> Option<Range> {
    const ROOT_CELLS: usize = 2;
    let ranges = bytes(bus, "ranges")?;
    if ranges.is_empty() {
        return Some(own);
    }
    let address_cells = cell(bus, "#address-cells", 0).unwrap_or(2) as usize;
    let size_cells = cell(bus, "#size-cells", 0).unwrap_or(1) as usize;
    if !(1..=2).contains(&address_cells) || !(1..=2).contains(&size_cells) {
        return None;
    }
    let value = |cells: &[u8]| {
        let whole = cells.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        usize::try_from(whole).ok()
    };
    ranges.chunks_exact((address_cells + ROOT_CELLS + size_cells) * 4).find_map(|triple| {
        let (from, rest) = triple.split_at(address_cells * 4);
        let (to, size) = rest.split_at(ROOT_CELLS * 4);
        let (from, to, size) = (value(from)?, value(to)?, value(size)?);
        let offset = own.start.checked_sub(from)?;
        let inside = offset.checked_add(own.bytes())? <= size;
        let start = to.checked_add(offset)?;
        inside.then_some(Range { start, end: start.checked_add(own.bytes())? })
    })
}
