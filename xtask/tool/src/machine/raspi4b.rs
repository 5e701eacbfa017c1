//! QEMU's `raspi4b`: the device tree that it is given.
//!
//! Without one QEMU hands over a list of ATAGs, where a real board's firmware hands over a tree. The board's own
//! tree comes with the firmware, which is not ours to ship; so this writes one that says about the emulated
//! machine what the board's says about itself, in the same shape: cores on a spin table, devices on a bus with
//! addresses of its own. QEMU adds memory, boot arguments and the initrd. `--dtb` takes the board's own instead.

use crate::build::write_whole;
use anyhow::Result;
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
use std::path::Path;

fn cells(name: &str, cells: &[u32]) -> DeviceTreeProperty {
    let value: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
    DeviceTreeProperty::new_unchecked(name, value)
}

fn text(name: &str, value: &str) -> DeviceTreeProperty {
    DeviceTreeProperty::new_unchecked(name, [value.as_bytes(), &[0]].concat())
}

fn node(
    name: &str,
    properties: impl IntoIterator<Item = DeviceTreeProperty>,
    children: impl IntoIterator<Item = DeviceTreeNode>,
) -> DeviceTreeNode {
    let mut node = DeviceTreeNode::new_unchecked(name);
    properties.into_iter().for_each(|property| node.add_property(property));
    children.into_iter().for_each(|child| node.add_child(child));
    node
}

/// The cores wait here, one slot each, 8 bytes apart.
const SPIN_TABLE: u32 = 0xd8;

fn cpu(number: u32) -> DeviceTreeNode {
    let properties = [
        text("device_type", "cpu"),
        text("compatible", "arm,cortex-a72"),
        cells("reg", &[number]),
        text("enable-method", "spin-table"),
        cells("cpu-release-addr", &[0, SPIN_TABLE + 8 * number]),
    ];
    node(&format!("cpu@{number}"), properties, [])
}

fn soc() -> DeviceTreeNode {
    // From the bus's addresses to the cores': peripherals, and what is the cores' own.
    let ranges = [0x7e00_0000, 0, 0xfe00_0000, 0x180_0000, 0x4000_0000, 0, 0xff80_0000, 0x80_0000];
    let properties = [
        text("compatible", "simple-bus"),
        cells("#address-cells", &[1]),
        cells("#size-cells", &[1]),
        cells("ranges", &ranges),
    ];
    let serial = [text("compatible", "arm,pl011"), cells("reg", &[0x7e20_1000, 0x200])];
    let gic = [
        text("compatible", "arm,gic-400"),
        cells("reg", &[0x4004_1000, 0x1000, 0x4004_2000, 0x2000, 0x4004_4000, 0x2000, 0x4004_6000, 0x2000]),
    ];
    // Fewer bytes than there are, as in the board's own.
    let pins = [text("compatible", "brcm,bcm2711-gpio"), cells("reg", &[0x7e20_0000, 0xb4])];
    // Shared interrupt 33, a high level.
    let mailbox = [
        text("compatible", "brcm,bcm2835-mbox"),
        cells("reg", &[0x7e00_b880, 0x40]),
        cells("interrupts", &[0, 33, 4]),
    ];
    // QEMU hangs its card on the first of two controllers of the same kind, and the board on the second, at 0x7e340000.
    let slot = [text("compatible", "brcm,bcm2711-emmc2"), cells("reg", &[0x7e30_0000, 0x100])];
    // Of several, the one at the header; the board's own tree has it if its `config.txt` says so.
    let i2c = [
        DeviceTreeProperty::new_unchecked("compatible", *b"brcm,bcm2711-i2c\0brcm,bcm2835-i2c\0"),
        cells("reg", &[0x7e80_4000, 0x1000]),
    ];
    // What the second serial port is a part of, and that, which has interrupt 93 of those that are shared.
    let auxiliary = [text("compatible", "brcm,bcm2835-aux"), cells("reg", &[0x7e21_5000, 0x8])];
    let mini_uart = [
        text("compatible", "brcm,bcm2835-aux-uart"),
        cells("reg", &[0x7e21_5040, 0x40]),
        cells("interrupts", &[0, 93, 4]),
    ];
    let children = [
        node("aux@7e215000", auxiliary, []),
        node("serial@7e215040", mini_uart, []),
        node("i2c@7e804000", i2c, []),
        node("mmc@7e300000", slot, []),
        node("mailbox@7e00b880", mailbox, []),
        node("serial@7e201000", serial, []),
        node("interrupt-controller@40041000", gic, []),
        node("gpio@7e200000", pins, []),
    ];
    node("soc", properties, children)
}

/// The tree.
pub fn tree() -> Vec<u8> {
    let memory = [text("device_type", "memory"), cells("reg", &[0, 0, 0x3b40_0000])];
    let cpus = [cells("#address-cells", &[1]), cells("#size-cells", &[0])];
    // Secure, non-secure, virtual, hypervisor: per-core interrupts 13, 14, 11, 10, active low, for four cores.
    let interrupts: Vec<u32> = [13, 14, 11, 10].into_iter().flat_map(|number| [1, number, 0xf08]).collect();
    let timer = [text("compatible", "arm,armv8-timer"), cells("interrupts", &interrupts)];
    let mut tree = DeviceTree::new();
    tree.root = node(
        "",
        [
            text("compatible", "raspberrypi,4-model-b"),
            text("model", "Raspberry Pi 4 Model B, as emulated by QEMU"),
            cells("#address-cells", &[2]),
            cells("#size-cells", &[1]),
        ],
        [
            node("memory@0", memory, []),
            node("cpus", cpus, (0..4).map(cpu)),
            node("timer", timer, []),
            soc(),
            node("chosen", [], []),
        ],
    );
    tree.to_dtb()
}

/// Writes the tree to a file.
pub fn write_tree(path: &Path) -> Result<()> {
    write_whole(path, &tree())
}

#[cfg(test)]
mod tests {
    use super::tree;
    use dtoolkit::Node;
    use dtoolkit::fdt::Fdt;

    #[test]
    fn it_is_a_tree_with_four_cores() {
        let blob = tree();
        let tree = Fdt::new(&blob).unwrap();
        let cpus = tree.root().child("cpus").unwrap();
        assert_eq!(cpus.children().count(), 4);
    }
}
