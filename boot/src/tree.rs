//! Reading the device tree: what boot needs of it, and a clear error where it says nothing.
//!
//! The tree comes from outside, so nothing in it is trusted: every access may fail, and counts are bounded.

use core::fmt;

use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::{Node, Property};
use magpie::arch::MAX_CORES;
use magpie::machine::Location;

use crate::memory::Range;

/// The most ranges of memory that are read.
pub const MOST_MEMORY: usize = 8;
/// The most ranges of reserved memory that are read.
pub const MOST_RESERVED: usize = 16;

/// What is wrong with the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TreeError {
    /// There is no tree at the given address, or it is damaged.
    Unreadable,
    /// It is longer than boot maps.
    TooLong,
    /// It names no memory.
    NoMemory,
    /// It names no interrupt controller that the kernel knows.
    NoInterruptController,
    /// It names no timer.
    NoTimer,
    /// It puts the registers of a device that boot needs into memory, or onto another's.
    DeviceOverlaps(Range),
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeviceOverlaps(registers) => {
                return write!(
                    f,
                    "the device tree puts a device's registers, {:#x} to {:#x}, onto memory or another device",
                    registers.start, registers.end
                );
            }
            Self::Unreadable => "the device tree is missing or damaged: boot the flat image, not the ELF",
            Self::TooLong => "the device tree is longer than 2 MiB: pack it (`dtc -I dtb -O dtb`)",
            Self::NoMemory => "the device tree names no memory",
            Self::NoInterruptController => "the device tree names no GICv2 or GICv3",
            Self::NoTimer => "the device tree names no Armv8 timer",
        })
    }
}

/// How a core is started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StartMethod {
    /// By a call to the firmware.
    #[default]
    Psci,
    /// By writing its entry address to this address.
    SpinTable(usize),
}

/// How the firmware is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirmwareCall {
    /// The hypervisor call.
    Hvc,
    /// The secure monitor call.
    Smc,
}

/// The interrupt controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InterruptController {
    /// GICv2: distributor and CPU interface.
    V2(Range, Range),
    /// GICv3: distributor and redistributors.
    V3(Range, Range),
}

/// What boot needs of the tree.
#[derive(Clone, Debug)]
pub struct Description<'a> {
    /// Memory.
    pub memory: [Range; MOST_MEMORY],
    /// Parts of the memory that are the firmware's.
    pub reserved: [Range; MOST_RESERVED],
    /// How many cores are named, at most [`MAX_CORES`] of them.
    pub cores: usize,
    /// How many more there are.
    pub cores_beyond: usize,
    /// Where each sits.
    pub places: [Location; MAX_CORES],
    /// How each is started.
    pub start: [StartMethod; MAX_CORES],
    /// The interrupt controller.
    pub interrupts: InterruptController,
    /// The virtual timer's interrupt number.
    pub timer_interrupt: u32,
    /// The console's registers, if it is a PL011.
    pub uart: Option<Range>,
    /// Its interrupt.
    pub uart_interrupt: Option<u32>,
    /// How the firmware is called, if there is one that takes calls.
    pub firmware: Option<FirmwareCall>,
    /// The boot arguments, up to the first byte that is not text.
    pub arguments: &'a str,
    /// How many bytes of them follow that.
    pub arguments_cut: usize,
    /// The initrd.
    pub input: Option<Range>,
}

/// Reads what boot needs.
pub fn read(blob: &[u8]) -> Result<Description<'_>, TreeError> {
    let tree = Fdt::new(blob).map_err(|_| TreeError::Unreadable)?;
    let root = tree.root();
    let mut found = Description {
        memory: memory(root)?,
        reserved: reserved(&tree),
        cores: 0,
        cores_beyond: 0,
        places: [Location::default(); MAX_CORES],
        start: [StartMethod::default(); MAX_CORES],
        interrupts: interrupts(root).ok_or(TreeError::NoInterruptController)?,
        timer_interrupt: timer(root).ok_or(TreeError::NoTimer)?,
        uart: by_compatible(root, &["arm,pl011"]).and_then(|node| node.range(0)),
        uart_interrupt: by_compatible(root, &["arm,pl011"]).and_then(|node| shared_interrupt(node.node)),
        firmware: firmware(root),
        arguments: "",
        arguments_cut: 0,
        input: None,
    };
    cores(root, &mut found);
    if let Some(chosen) = root.child("chosen") {
        let arguments = bytes(chosen, "bootargs").unwrap_or_default();
        let arguments = arguments.strip_suffix(&[0]).unwrap_or(arguments);
        found.arguments = valid_start(arguments);
        found.arguments_cut = arguments.len() - found.arguments.len();
        found.input = input(chosen);
    }
    check_devices(&found)?;
    Ok(found)
}

impl Description<'_> {
    /// The registers that boot maps.
    pub fn devices(&self) -> impl Iterator<Item = Range> {
        let (InterruptController::V2(first, second) | InterruptController::V3(first, second)) =
            self.interrupts;
        [Some(first), Some(second), self.uart].into_iter().flatten()
    }
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

fn text<'a>(node: FdtNode<'a>, name: &str) -> Option<&'a str> {
    let value: &'a [u8] = bytes(node, name)?;
    core::str::from_utf8(value.strip_suffix(&[0]).unwrap_or(value)).ok()
}

/// The part of the bytes, from their beginning, that is text.
fn valid_start(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

fn bytes<'a>(node: FdtNode<'a>, name: &str) -> Option<&'a [u8]> {
    node.properties().find(|property| property.name() == name)?.value_as::<&'a [u8]>().ok()
}

/// The `index`th 32-bit cell of a property.
fn cell(node: FdtNode<'_>, name: &str, index: usize) -> Option<u32> {
    let value = bytes(node, name)?.get(index * 4..index * 4 + 4)?;
    Some(u32::from_be_bytes(value.try_into().ok()?))
}

/// A property of one or two cells.
fn number(node: FdtNode<'_>, name: &str) -> Option<u64> {
    let value = bytes(node, name)?;
    match value.len() {
        4 => Some(u64::from(cell(node, name, 0)?)),
        8 => Some(u64::from(cell(node, name, 0)?) << 32 | u64::from(cell(node, name, 1)?)),
        _ => None,
    }
}

/// The `index`th range of a node's `reg`.
fn range(node: FdtNode<'_>, index: usize) -> Option<Range> {
    let reg = node.reg().ok()??.nth(index)?;
    let start = usize::try_from(reg.address::<u64>().ok()?).ok()?;
    let bytes = usize::try_from(reg.size::<u64>().ok()?).ok()?;
    Some(Range { start, end: start.checked_add(bytes)? })
}

fn is_compatible(node: FdtNode<'_>, names: &[&str]) -> bool {
    let Some(value) = bytes(node, "compatible") else { return false };
    value.split(|&byte| byte == 0).any(|one| names.iter().any(|name| name.as_bytes() == one))
}

/// A device, and the bus that it is on unless it is the root's child.
#[derive(Clone, Copy)]
struct Device<'a> {
    node: FdtNode<'a>,
    bus: Option<FdtNode<'a>>,
}

impl Device<'_> {
    /// The `index`th range of its `reg`, as a core sees it.
    fn range(self, index: usize) -> Option<Range> {
        let own = range(self.node, index)?;
        self.bus.map_or(Some(own), |bus| translated(bus, own))
    }
}

/// The first device, level by level, with one of these names in its `compatible`, unless it is switched off.
fn by_compatible<'a>(root: FdtNode<'a>, names: &[&str]) -> Option<Device<'a>> {
    let is_it = |node: FdtNode<'_>| {
        is_compatible(node, names) && text(node, "status").is_none_or(|status| status != "disabled")
    };
    let here = root.children().find(|node| is_it(*node)).map(|node| Device { node, bus: None });
    here.or_else(|| {
        root.children().find_map(|bus| {
            bus.children().find(|node| is_it(*node)).map(|node| Device { node, bus: Some(bus) })
        })
    })
}

/// A range of a bus's addresses as a core sees it, by the bus's `ranges`: triples of the bus's address, the
/// root's address (of two cells) and a size. An empty `ranges` means: the same addresses.
fn translated(bus: FdtNode<'_>, own: Range) -> Option<Range> {
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

fn memory(root: FdtNode<'_>) -> Result<[Range; MOST_MEMORY], TreeError> {
    let mut ranges = [Range::default(); MOST_MEMORY];
    let mut count = 0;
    for node in root.children().filter(|node| text(*node, "device_type") == Some("memory")) {
        for index in 0.. {
            let Some(range) = range(node, index) else { break };
            if count < MOST_MEMORY && range.bytes() > 0 {
                ranges[count] = range;
                count += 1;
            }
        }
    }
    if count == 0 { Err(TreeError::NoMemory) } else { Ok(ranges) }
}

/// The header's list of reservations, and the fixed ones of `/reserved-memory`. What is beyond
/// [`MOST_RESERVED`] is lost; no firmware known comes near.
fn reserved(tree: &Fdt<'_>) -> [Range; MOST_RESERVED] {
    let listed = tree.memory_reservations().map_while(|one| {
        let start = usize::try_from(one.address()).ok()?;
        Some(Range { start, end: start.checked_add(usize::try_from(one.size()).ok()?)? })
    });
    let root = tree.root();
    let nodes = root.child("reserved-memory").into_iter().flat_map(|node| node.children());
    let fixed = nodes.flat_map(|node| (0..).map_while(move |index| range(node, index)));
    let mut ranges = [Range::default(); MOST_RESERVED];
    let found = listed.chain(fixed).filter(|range| range.bytes() > 0);
    for (slot, range) in ranges.iter_mut().zip(found) {
        *slot = range;
    }
    ranges
}

fn interrupts(root: FdtNode<'_>) -> Option<InterruptController> {
    let v2 = || by_compatible(root, &["arm,cortex-a15-gic", "arm,gic-400", "arm,cortex-a9-gic"]);
    if let Some(node) = by_compatible(root, &["arm,gic-v3"]) {
        return Some(InterruptController::V3(node.range(0)?, node.range(1)?));
    }
    let node = v2()?;
    Some(InterruptController::V2(node.range(0)?, node.range(1)?))
}

fn timer(root: FdtNode<'_>) -> Option<u32> {
    // Four interrupts of three cells each: secure, non-secure, virtual, hypervisor. The second cell is the
    // number among the per-core ones, which begin at 16.
    const VIRTUAL_NUMBER: usize = 2 * 3 + 1;
    let number = cell(by_compatible(root, &["arm,armv8-timer"])?.node, "interrupts", VIRTUAL_NUMBER)?;
    // Not `then_some`: it would do the addition even for numbers that are out of range.
    (number < 16).then(|| number + 16)
}

/// A device's first interrupt, if it is one that all cores share: those are numbered from 32 on.
fn shared_interrupt(node: FdtNode<'_>) -> Option<u32> {
    const SHARED: u32 = 0;
    const MOST: u32 = 988;
    let number = cell(node, "interrupts", 1).filter(|number| *number < MOST)?;
    (cell(node, "interrupts", 0)? == SHARED).then_some(number + 32)
}

fn firmware(root: FdtNode<'_>) -> Option<FirmwareCall> {
    let node = by_compatible(root, &["arm,psci-1.0", "arm,psci-0.2", "arm,psci"])?.node;
    match text(node, "method")? {
        "hvc" => Some(FirmwareCall::Hvc),
        "smc" => Some(FirmwareCall::Smc),
        _ => None,
    }
}

fn input(chosen: FdtNode<'_>) -> Option<Range> {
    let start = usize::try_from(number(chosen, "linux,initrd-start")?).ok()?;
    let end = usize::try_from(number(chosen, "linux,initrd-end")?).ok()?;
    (start < end).then_some(Range { start, end })
}

fn cores(root: FdtNode<'_>, found: &mut Description<'_>) {
    let Some(cpus) = root.child("cpus") else {
        // A tree without cores: the one that reads it exists all the same.
        found.cores = 1;
        return;
    };
    let mut handles = [0u32; MAX_CORES];
    for node in cpus.children().filter(|node| text(*node, "device_type") == Some("cpu")) {
        let Some(affinity) = number(node, "reg") else { continue };
        if found.cores == MAX_CORES {
            found.cores_beyond += 1;
            continue;
        }
        let core = found.cores;
        found.places[core].affinity = affinity;
        found.places[core].node = cell(node, "numa-node-id", 0).unwrap_or(0);
        // Where there is no map, MPIDR's higher fields are the best guess.
        found.places[core].cluster = (affinity >> 8 & 0xffff) as u32;
        handles[core] = cell(node, "phandle", 0).unwrap_or(0);
        if text(node, "enable-method") == Some("spin-table")
            && let Some(address) = number(node, "cpu-release-addr").and_then(|a| usize::try_from(a).ok())
        {
            found.start[core] = StartMethod::SpinTable(address);
        }
        found.cores += 1;
    }
    if let Some(map) = cpus.child("cpu-map") {
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

#[cfg(test)]
#[path = "tree_fuzz.rs"]
mod fuzz;
#[cfg(test)]
#[path = "tree_samples.rs"]
mod samples;
#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
