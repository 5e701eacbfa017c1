//! Reading the device tree: what boot needs of it, and a clear error where it says nothing.
//!
//! The tree comes from outside, so nothing in it is trusted: every access may fail, and counts are bounded.
//!
//! A property is found by going through those before it, a child by going through all that is in its elder siblings. So the
//! root's children are gone through once, and the properties of each once ([`Facts`]); what is below them, once more if
//! a device was not among them.

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
    cores(nodes.cpus, &mut found);
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
fn number(value: &[u8]) -> Option<u64> {
    match value.len() {
        4 | 8 => Some(value.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))),
        _ => None,
    }
}

/// The first cell of a property.
fn first_cell(value: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*value.first_chunk()?))
}

/// The bytes of a property that is a text, without the zero at its end.
fn text(value: &[u8]) -> &[u8] {
    value.strip_suffix(&[0]).unwrap_or(value)
}

/// Properties of a node that decide what it is to boot: of several with one name, the first.
#[derive(Default)]
struct Facts<'a> {
    compatible: Option<&'a [u8]>,
    device_type: Option<&'a [u8]>,
    status: Option<&'a [u8]>,
    reg: Option<&'a [u8]>,
    phandle: Option<&'a [u8]>,
    numa_node: Option<&'a [u8]>,
    enable_method: Option<&'a [u8]>,
    release_address: Option<&'a [u8]>,
}

impl<'a> Facts<'a> {
    fn of(node: FdtNode<'a>) -> Self {
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

    fn is_of_type(&self, name: &str) -> bool {
        self.device_type.is_some_and(|value| text(value) == name.as_bytes())
    }
}

/// The `index`th range of a node's `reg`.
fn range(node: FdtNode<'_>, index: usize) -> Option<Range> {
    let reg = node.reg().ok()??.nth(index)?;
    let start = usize::try_from(reg.address::<u64>().ok()?).ok()?;
    let bytes = usize::try_from(reg.size::<u64>().ok()?).ok()?;
    Some(Range { start, end: start.checked_add(bytes)? })
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

/// The devices that boot needs: of each kind the first that is not switched off, level by level.
#[derive(Default)]
struct Devices<'a> {
    gic_v2: Option<Device<'a>>,
    gic_v3: Option<Device<'a>>,
    timer: Option<Device<'a>>,
    uart: Option<Device<'a>>,
    firmware: Option<Device<'a>>,
}

impl<'a> Devices<'a> {
    /// Takes a node for what it is compatible with, if nothing was taken for that before.
    fn look_at(&mut self, device: Device<'a>, facts: &Facts<'a>) {
        let Some(compatible) = facts.compatible else { return };
        if facts.status.is_some_and(|status| text(status) == b"disabled") {
            return;
        }
        for name in compatible.split(|&byte| byte == 0) {
            let kind = match name {
                b"arm,cortex-a15-gic" | b"arm,gic-400" | b"arm,cortex-a9-gic" => &mut self.gic_v2,
                b"arm,gic-v3" => &mut self.gic_v3,
                b"arm,armv8-timer" => &mut self.timer,
                b"arm,pl011" => &mut self.uart,
                b"arm,psci-1.0" | b"arm,psci-0.2" | b"arm,psci" => &mut self.firmware,
                _ => continue,
            };
            kind.get_or_insert(device);
        }
    }

    /// Whether one that would be used is still to be found. A GICv2 is not used beside a GICv3.
    fn is_incomplete(&self) -> bool {
        [self.gic_v3, self.timer, self.uart, self.firmware].iter().any(Option::is_none)
    }

    fn interrupts(&self) -> Option<InterruptController> {
        if let Some(device) = self.gic_v3 {
            return Some(InterruptController::V3(device.range(0)?, device.range(1)?));
        }
        let device = self.gic_v2?;
        Some(InterruptController::V2(device.range(0)?, device.range(1)?))
    }
}

/// The nodes that boot reads.
#[derive(Default)]
struct Nodes<'a> {
    devices: Devices<'a>,
    memory: [Range; MOST_MEMORY],
    memory_count: usize,
    reserved: Option<FdtNode<'a>>,
    cpus: Option<FdtNode<'a>>,
    chosen: Option<FdtNode<'a>>,
}

impl<'a> Nodes<'a> {
    fn of(root: FdtNode<'a>) -> Self {
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

    fn memory(&self) -> Result<[Range; MOST_MEMORY], TreeError> {
        if self.memory_count == 0 { Err(TreeError::NoMemory) } else { Ok(self.memory) }
    }
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

fn timer(device: Device<'_>) -> Option<u32> {
    // Four interrupts of three cells each: secure, non-secure, virtual, hypervisor. The second cell is the
    // number among the per-core ones, which begin at 16.
    const VIRTUAL_NUMBER: usize = 2 * 3 + 1;
    let number = cell(device.node, "interrupts", VIRTUAL_NUMBER)?;
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

fn firmware(device: Device<'_>) -> Option<FirmwareCall> {
    match text(bytes(device.node, "method")?) {
        b"hvc" => Some(FirmwareCall::Hvc),
        b"smc" => Some(FirmwareCall::Smc),
        _ => None,
    }
}

fn input(chosen: FdtNode<'_>) -> Option<Range> {
    let start = usize::try_from(number(bytes(chosen, "linux,initrd-start")?)?).ok()?;
    let end = usize::try_from(number(bytes(chosen, "linux,initrd-end")?)?).ok()?;
    (start < end).then_some(Range { start, end })
}

fn cores(cpus: Option<FdtNode<'_>>, found: &mut Description<'_>) {
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

#[cfg(test)]
#[path = "tree_fuzz.rs"]
mod fuzz;
#[cfg(test)]
#[path = "tree_samples.rs"]
mod samples;
#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
