//! Devices in the tree, for drivers: found by what they are compatible with, and what each says of itself.
//!
//! Boot's own devices are found in `devices.rs`. A node is looked at if it is the root's child, or is on a bus that is.

use core::fmt;
use core::ops::Range;

use dtoolkit::Node;
use dtoolkit::fdt::{Fdt, FdtNode};
use magpie::interrupt::{Line, Trigger};
use spin::Once;

use super::properties::{Facts, bytes, cell, first_cell, range, text, translated};

/// The tree, once boot has read it.
static TREE: Once<&'static [u8]> = Once::new();

/// What the interrupt controllers are compatible with that the kernel drives.
const CONTROLLERS: [&str; 4] = ["arm,gic-v3", "arm,gic-400", "arm,cortex-a15-gic", "arm,cortex-a9-gic"];

/// The kind of an interrupt that all cores share, of a GIC, and from where on it numbers them.
const SHARED: u32 = 0;
const FIRST_SHARED: u32 = 32;

/// At boot: the tree, which stays where it is.
#[cfg(target_os = "none")]
#[inline(always)]
pub(crate) fn note(blob: &'static [u8]) {
    TREE.call_once(|| blob);
}

/// A device that the tree describes.
///
/// ```
/// use magpie_boot::tree::{Device, all};
///
/// for device in all() {
///     let name: &str = device.name();
///     println!("{name}: {:?}, {:?}", device.registers(0), device.line(0));
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Device<'a> {
    node: FdtNode<'a>,
    bus: Option<FdtNode<'a>>,
    root: FdtNode<'a>,
}

/// Why a device has no interrupt to be claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoLine {
    /// It has none of that index.
    None,
    /// It goes to another controller than the cores', or each core has it of its own.
    Elsewhere,
    /// Other devices have the same: no driver can have it alone.
    Shared,
}

impl fmt::Display for NoLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "the device tree names no such interrupt for the device",
            Self::Elsewhere => {
                "the device's interrupt does not go to the cores' interrupt controller, or is each core's own"
            }
            Self::Shared => "the device shares its interrupt with another one: that is not supported",
        })
    }
}

impl core::error::Error for NoLine {}

/// The devices that are compatible with `name`, and are not switched off, in the tree's order. None on the host.
///
/// ```
/// assert_eq!(magpie_boot::tree::find("virtio,mmio").count(), 0);
/// ```
pub fn find(name: &str) -> impl Iterator<Item = Device<'static>> {
    all().filter(move |device| device.is_compatible(name))
}

/// All devices that are not switched off, in the tree's order, whether anybody can drive them or not. None on the host.
///
/// ```
/// assert_eq!(magpie_boot::tree::all().count(), 0);
/// ```
pub fn all() -> impl Iterator<Item = Device<'static>> {
    // Boot has read it, so it is a tree.
    TREE.get().and_then(|blob| Fdt::new(blob).ok()).into_iter().flat_map(|tree| devices(tree.root()))
}

/// Random bytes that whoever started the machine has put into the tree (`/chosen/rng-seed`): as good as their source, and the same however often they are read.
/// None on the host.
///
/// ```
/// assert_eq!(magpie_boot::tree::random_seed(), None);
/// ```
pub fn random_seed() -> Option<&'static [u8]> {
    seed(Fdt::new(TREE.get()?).ok()?.root())
}

pub(super) fn seed(root: FdtNode<'_>) -> Option<&[u8]> {
    let chosen = root.children().find(|node| node.name_without_address() == "chosen")?;
    bytes(chosen, "rng-seed").filter(|seed| !seed.is_empty())
}

pub(super) fn devices<'a>(root: FdtNode<'a>) -> impl Iterator<Item = Device<'a>> {
    let on_root = root.children().map(move |node| Device { node, bus: None, root });
    let on_bus = root
        .children()
        .flat_map(move |bus| bus.children().map(move |node| Device { node, bus: Some(bus), root }));
    on_root.chain(on_bus).filter(|device| {
        let facts = Facts::of(device.node);
        facts.compatible.is_some() && facts.status.is_none_or(|status| text(status) != b"disabled")
    })
}

impl<'a> Device<'a> {
    /// Its name in the tree, with its address.
    ///
    /// ```
    /// # use magpie_boot::tree::Device;
    /// fn is_virtio(device: &Device<'_>) -> bool { device.name().starts_with("virtio_mmio@") }
    /// ```
    pub fn name(&self) -> &'a str {
        self.node.name()
    }

    /// What it is compatible with, the most special first.
    ///
    /// ```
    /// # use magpie_boot::tree::Device;
    /// fn first<'a>(device: &Device<'a>) -> Option<&'a str> { device.compatible().next() }
    /// ```
    pub fn compatible(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let value = bytes(self.node, "compatible").unwrap_or_default();
        text(value).split(|byte| *byte == 0).filter_map(|name| core::str::from_utf8(name).ok())
    }

    /// Whether it is compatible with that.
    ///
    /// ```
    /// # use magpie_boot::tree::Device;
    /// fn is_timer(device: &Device<'_>) -> bool { device.is_compatible("arm,armv8-timer") }
    /// ```
    pub fn is_compatible(&self, name: &str) -> bool {
        self.compatible().any(|own| own == name)
    }

    /// Where its registers are, as a core sees them: the `index`th range, from 0 on.
    ///
    /// ```
    /// # use magpie_boot::tree::Device;
    /// fn bytes(device: &Device<'_>) -> Option<usize> { device.registers(0).map(|range| range.len()) }
    /// ```
    pub fn registers(&self, index: usize) -> Option<Range<usize>> {
        let own = range(self.node, index)?;
        let range = self.bus.map_or(Some(own), |bus| translated(bus, own))?;
        Some(range.start..range.end)
    }

    /// Its interrupt, to be claimed: the `index`th, from 0 on.
    ///
    /// # Errors
    /// [`NoLine`].
    ///
    /// ```
    /// # use magpie_boot::tree::{Device, NoLine};
    /// fn number(device: &Device<'_>) -> Result<u32, NoLine> { device.line(0).map(|line| line.number) }
    /// ```
    pub fn line(&self, index: usize) -> Result<Line, NoLine> {
        let line = self.own_line(index)?;
        // Itself once.
        let owners = devices(self.root).map(|device| device.times(line.number));
        if owners.sum::<usize>() > 1 { Err(NoLine::Shared) } else { Ok(line) }
    }

    /// How often it has the interrupt of this number. Where its interrupts go is looked up only then: for that the tree is searched.
    fn times(self, number: u32) -> usize {
        let numbers = (0..).map_while(|index| self.specifier(index));
        let times = numbers
            .filter(|[kind, own, _]| *kind == SHARED && own.checked_add(FIRST_SHARED) == Some(number))
            .count();
        if times > 0 && self.asks_the_cores() { times } else { 0 }
    }

    /// The cells that say which interrupt its `index`th is, of a GIC: kind, number, trigger.
    fn specifier(&self, index: usize) -> Option<[u32; 3]> {
        let first = index.checked_mul(3)?;
        let cell = |offset| cell(self.node, "interrupts", first.checked_add(offset)?);
        Some([cell(0)?, cell(1)?, cell(2)?])
    }

    /// Its interrupt, whoever else has it.
    fn own_line(&self, index: usize) -> Result<Line, NoLine> {
        const MOST: u32 = 988;
        if !self.asks_the_cores() {
            return Err(if bytes(self.node, "interrupts").is_some() && index == 0 {
                NoLine::Elsewhere
            } else {
                NoLine::None
            });
        }
        let [kind, number, flags] = self.specifier(index).ok_or(NoLine::None)?;
        if kind != SHARED || number >= MOST {
            return Err(NoLine::Elsewhere);
        }
        // Rising or falling edges; a high or low level.
        let trigger = if flags & 3 != 0 { Trigger::Edge } else { Trigger::Level };
        Ok(Line { number: number + FIRST_SHARED, trigger })
    }

    /// Whether its interrupts go to the cores' controller: the parent that it names, or else its bus, or else the root.
    fn asks_the_cores(&self) -> bool {
        let named = [Some(self.node), self.bus, Some(self.root)];
        let parent = named.into_iter().flatten().find_map(|node| bytes(node, "interrupt-parent"));
        let Some(parent) = parent.and_then(first_cell) else { return true };
        devices(self.root).any(|device| {
            let is_it = Facts::of(device.node).phandle.and_then(first_cell) == Some(parent);
            is_it && CONTROLLERS.iter().any(|name| device.is_compatible(name))
        })
    }

    /// Whether it sees the cores' caches, so that memory that it shares needs no [`sync`](magpie::device::DmaMemory::sync).
    ///
    /// ```
    /// # use magpie_boot::tree::Device;
    /// fn needs_sync(device: &Device<'_>) -> bool { !device.is_dma_coherent() }
    /// ```
    pub fn is_dma_coherent(&self) -> bool {
        [Some(self.node), self.bus].into_iter().flatten().any(|node| bytes(node, "dma-coherent").is_some())
    }

    /// A property, as it is in the tree: numbers have their most significant byte first.
    ///
    /// ```
    /// # use magpie_boot::tree::Device;
    /// fn width<'a>(device: &Device<'a>) -> Option<&'a [u8]> { device.property("reg-io-width") }
    /// ```
    pub fn property(&self, name: &str) -> Option<&'a [u8]> {
        bytes(self.node, name)
    }
}

impl fmt::Debug for Device<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.name())
    }
}
