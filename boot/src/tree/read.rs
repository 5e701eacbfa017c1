//! Fills a [`Description`] from the bytes of a tree, and rejects one that boot could not use safely.
//!
//! What each part says is found in the files beside this one; here they are put together.

use dtoolkit::Node;
use dtoolkit::fdt::{Fdt, FdtNode};
use magpie::arch::MAX_CORES;
use magpie::machine::Location;

use super::cores;
use super::description::{Description, MOST_RESERVED, StartMethod, TreeError};
use super::devices::{firmware, shared_interrupt, timer};
use super::nodes::Nodes;
use super::properties::{bytes, number, range};
use crate::memory::Range;

/// Reads what boot needs.
pub fn read(blob: &[u8]) -> Result<Description<'_>, TreeError> {
    let tree = Fdt::new(blob).map_err(|_| TreeError::Unreadable)?;
    let nodes = Nodes::of(tree.root());
    let devices = &nodes.devices;
    let mut found = Description {
        memory: nodes.memory()?,
        reserved: reserved(&tree, nodes.reserved),
        cores: 0,
        cores_beyond: 0,
        places: [Location::default(); MAX_CORES],
        start: [StartMethod::default(); MAX_CORES],
        interrupts: devices.interrupts().ok_or(TreeError::NoInterruptController)?,
        timer_interrupt: devices.timer.and_then(timer).ok_or(TreeError::NoTimer)?,
        uart: devices.uart.and_then(|device| device.range(0)),
        uart_interrupt: devices.uart.and_then(|device| shared_interrupt(device.node)),
        firmware: devices.firmware.and_then(firmware),
        arguments: "",
        arguments_cut: 0,
        input: None,
    };
    cores::read(nodes.cpus, &mut found);
    if let Some(chosen) = nodes.chosen {
        let arguments = bytes(chosen, "bootargs").unwrap_or_default();
        let arguments = arguments.strip_suffix(&[0]).unwrap_or(arguments);
        found.arguments = valid_start(arguments);
        found.arguments_cut = arguments.len() - found.arguments.len();
        found.input = input(chosen);
    }
    check_devices(&found)?;
    Ok(found)
}

/// Writing to registers that are really memory could change anything, and a console on another device would stay
/// silent.
fn check_devices(found: &Description<'_>) -> Result<(), TreeError> {
    let overlap = |a: Range, b: Range| a.start < b.end && b.start < a.end;
    for (index, device) in found.devices().enumerate() {
        let in_memory = found.memory.iter().any(|memory| overlap(device, *memory));
        if in_memory || found.devices().skip(index + 1).any(|other| overlap(device, other)) {
            return Err(TreeError::DeviceOverlaps(device));
        }
    }
    Ok(())
}

/// The part of the bytes, from their beginning, that is text.
fn valid_start(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

fn input(chosen: FdtNode<'_>) -> Option<Range> {
    let start = usize::try_from(number(bytes(chosen, "linux,initrd-start")?)?).ok()?;
    let end = usize::try_from(number(bytes(chosen, "linux,initrd-end")?)?).ok()?;
    (start < end).then_some(Range { start, end })
}

/// The header's list of reservations, and the fixed ones of `/reserved-memory`. What is beyond
/// [`MOST_RESERVED`] is lost; no firmware known comes near.
fn reserved(tree: &Fdt<'_>, node: Option<FdtNode<'_>>) -> [Range; MOST_RESERVED] {
    let listed = tree.memory_reservations().map_while(|one| {
        let start = usize::try_from(one.address()).ok()?;
        Some(Range { start, end: start.checked_add(usize::try_from(one.size()).ok()?)? })
    });
    let nodes = node.into_iter().flat_map(|node| node.children());
    let fixed = nodes.flat_map(|node| (0..).map_while(move |index| range(node, index)));
    let mut ranges = [Range::default(); MOST_RESERVED];
    let found = listed.chain(fixed).filter(|range| range.bytes() > 0);
    for (slot, range) in ranges.iter_mut().zip(found) {
        *slot = range;
    }
    ranges
}
