//! A small machine's device tree, for tests to read, change and damage.

use alloc::vec::Vec;

use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};

/// A property of 32-bit cells.
pub(super) fn cells(name: &str, cells: &[u32]) -> DeviceTreeProperty {
    let value: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
    bytes(name, &value)
}

/// A property of bytes; a text ends in a zero.
pub(super) fn bytes(name: &str, value: &[u8]) -> DeviceTreeProperty {
    DeviceTreeProperty::new(name, value.to_vec()).expect("a name that a property may have")
}

/// A node.
pub(super) fn node(
    name: &str,
    properties: impl IntoIterator<Item = DeviceTreeProperty>,
    children: impl IntoIterator<Item = DeviceTreeNode>,
) -> DeviceTreeNode {
    let mut node = DeviceTreeNode::new(name).expect("a name that a node may have");
    properties.into_iter().for_each(|property| node.add_property(property));
    children.into_iter().for_each(|child| node.add_child(child));
    node
}

/// A machine of two cores, as QEMU's `virt` describes itself.
pub(super) fn virt() -> DeviceTree {
    let cpu = |number: u32| {
        let properties = [
            bytes("device_type", b"cpu\0"),
            cells("reg", &[number]),
            cells("phandle", &[number + 0x100]),
            bytes("enable-method", b"psci\0"),
        ];
        node(if number == 0 { "cpu@0" } else { "cpu@1" }, properties, [])
    };
    let core = node("core0", [cells("cpu", &[0x101])], []);
    let map = node("cpu-map", [], [node("socket0", [], [node("cluster1", [], [core])])]);
    let mut tree = DeviceTree::new();
    tree.root = node(
        "",
        [cells("#address-cells", &[2]), cells("#size-cells", &[2])],
        [
            node(
                "memory@40000000",
                [bytes("device_type", b"memory\0"), cells("reg", &[0, 0x4000_0000, 0, 0x2000_0000])],
                [],
            ),
            node(
                "intc@8000000",
                [
                    bytes("compatible", b"arm,cortex-a15-gic\0"),
                    cells("reg", &[0, 0x800_0000, 0, 0x1_0000, 0, 0x801_0000, 0, 0x1_0000]),
                ],
                [],
            ),
            node(
                "timer",
                [
                    bytes("compatible", b"arm,armv8-timer\0"),
                    cells("interrupts", &[1, 13, 4, 1, 14, 4, 1, 11, 4, 1, 10, 4]),
                ],
                [],
            ),
            node(
                "psci",
                [bytes("compatible", b"arm,psci-1.0\0arm,psci-0.2\0"), bytes("method", b"hvc\0")],
                [],
            ),
            node(
                "pl011@9000000",
                [
                    bytes("compatible", b"arm,pl011\0arm,primecell\0"),
                    cells("reg", &[0, 0x900_0000, 0, 0x1000]),
                    cells("interrupts", &[0, 1, 4]),
                ],
                [],
            ),
            node("cpus", [cells("#address-cells", &[1]), cells("#size-cells", &[0])], [cpu(0), cpu(1), map]),
            node(
                "chosen",
                [
                    bytes("bootargs", b"seed=7\0"),
                    cells("linux,initrd-start", &[0x4800_0000]),
                    cells("linux,initrd-end", &[0x4800_1000]),
                    bytes("rng-seed", b"32 bytes, and some would say: no"),
                ],
                [],
            ),
        ],
    );
    tree
}
