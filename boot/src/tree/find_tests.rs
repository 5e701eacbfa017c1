//! What drivers find in a tree: devices, their registers, and the interrupts that they can have alone.

use dtoolkit::fdt::Fdt;
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
use magpie::interrupt::{Line, Trigger};

use super::find::{Device, NoLine, devices, seed};
use super::samples::{bytes, cells, node, virt};

/// What is found of a device named `device@a003e00`, on the root or on the bus that is given.
fn found<T>(
    properties: &[(&str, &[u32])],
    bus: Option<Vec<DeviceTreeProperty>>,
    look: impl FnOnce(Device<'_>) -> T,
) -> Option<T> {
    let own = properties.iter().map(|(name, value)| cells(name, value));
    let device = node("device@a003e00", own.chain([bytes("compatible", b"some,new\0some,old\0")]), []);
    let mut tree = virt();
    match bus {
        Some(properties) => tree.root.add_child(node("bus", properties, [device])),
        None => tree.root.add_child(device),
    }
    seen(&tree, look)
}

fn seen<T>(tree: &DeviceTree, look: impl FnOnce(Device<'_>) -> T) -> Option<T> {
    let blob = tree.to_dtb();
    let tree = Fdt::new(&blob).expect("a sound tree");
    devices(tree.root()).find(|device| device.name().starts_with("device@")).map(look)
}

#[test]
fn a_device_says_what_it_is_and_where() {
    let properties: &[(&str, &[u32])] = &[("reg", &[0, 0xa00_3e00, 0, 0x200, 0, 0x5000, 0, 8])];
    let looked = found(properties, None, |device| {
        assert_eq!(device.compatible().collect::<Vec<_>>(), ["some,new", "some,old"]);
        assert!(device.is_compatible("some,old") && !device.is_compatible("some"));
        assert_eq!(device.registers(0), Some(0xa00_3e00..0xa00_4000));
        assert_eq!(device.registers(1), Some(0x5000..0x5008));
        assert_eq!(device.registers(2), None);
        assert!(!device.is_dma_coherent());
        assert_eq!(device.property("compatible"), Some(&b"some,new\0some,old\0"[..]));
        assert_eq!(device.property("another"), None);
    });
    assert!(looked.is_some());
}

#[test]
fn interrupts_are_lines_of_the_cores_controller() {
    let line = |value: &[u32]| found(&[("interrupts", value)], None, |device| device.line(0));
    assert_eq!(line(&[0, 47, 1]), Some(Ok(Line { number: 79, trigger: Trigger::Edge })));
    assert_eq!(line(&[0, 47, 4]), Some(Ok(Line { number: 79, trigger: Trigger::Level })));
    assert_eq!(line(&[0, 987, 8]), Some(Ok(Line { number: 1019, trigger: Trigger::Level })));
    assert_eq!(line(&[0, 988, 4]), Some(Err(NoLine::Elsewhere)));
    assert_eq!(line(&[0, u32::MAX, 4]), Some(Err(NoLine::Elsewhere)));
    // Each core's own.
    assert_eq!(line(&[1, 13, 4]), Some(Err(NoLine::Elsewhere)));
    assert_eq!(line(&[0, 47]), Some(Err(NoLine::None)));
    assert_eq!(line(&[]), Some(Err(NoLine::None)));
    let second = found(&[("interrupts", &[0, 47, 1, 0, 48, 1])], None, |device| {
        (device.line(1), device.line(2), device.line(usize::MAX))
    });
    let (there, beyond, far) = second.expect("the device");
    assert_eq!(there, Ok(Line { number: 80, trigger: Trigger::Edge }));
    assert_eq!((beyond, far), (Err(NoLine::None), Err(NoLine::None)));
}

#[test]
fn a_line_that_others_have_is_refused() {
    // The serial port's.
    let shared = found(&[("interrupts", &[0, 1, 4])], None, |device| device.line(0));
    assert_eq!(shared, Some(Err(NoLine::Shared)));
    // Its own twice.
    let twice = found(&[("interrupts", &[0, 47, 1, 0, 47, 1])], None, |device| device.line(0));
    assert_eq!(twice, Some(Err(NoLine::Shared)));
}

#[test]
fn another_controllers_interrupt_is_none_of_the_cores() {
    let own = found(&[("interrupts", &[3, 4]), ("interrupt-parent", &[77])], None, |device| {
        (device.line(0), device.line(1))
    });
    assert_eq!(own, Some((Err(NoLine::Elsewhere), Err(NoLine::None))));
    let of_bus = Some(vec![cells("interrupt-parent", &[77]), bytes("ranges", b"")]);
    let line = found(&[("interrupts", &[0, 47, 4])], of_bus, |device| device.line(0));
    assert_eq!(line, Some(Err(NoLine::Elsewhere)));
    // The controller, by its number.
    let mut tree = virt();
    let controller = tree.root.child_mut("intc@8000000").expect("it is there");
    controller.add_property(cells("phandle", &[77]));
    let own =
        [bytes("compatible", b"some\0"), cells("interrupts", &[0, 47, 4]), cells("interrupt-parent", &[77])];
    tree.root.add_child(node("device@1", own, []));
    let line = seen(&tree, |device| device.line(0));
    assert_eq!(line, Some(Ok(Line { number: 79, trigger: Trigger::Level })));
}

#[test]
fn a_bus_has_its_own_addresses_and_what_is_off_is_not_there() {
    let bus = |ranges: &[u32]| {
        let narrow = [cells("#address-cells", &[1]), cells("#size-cells", &[1])];
        narrow.into_iter().chain([cells("ranges", ranges), bytes("dma-coherent", b"")]).collect::<Vec<_>>()
    };
    let at = |ranges: &[u32]| {
        found(&[("reg", &[0x7e20_0000, 0xb4])], Some(bus(ranges)), |device| {
            assert!(device.is_dma_coherent());
            device.registers(0)
        })
    };
    assert_eq!(at(&[0x7e00_0000, 0, 0xfe00_0000, 0x180_0000]), Some(Some(0xfe20_0000..0xfe20_00b4)));
    assert_eq!(at(&[]), Some(Some(0x7e20_0000..0x7e20_00b4)));
    assert_eq!(at(&[0x7e00_0000, 0, 0xfe00_0000, 0x1000]), Some(None));
    let off: DeviceTreeNode =
        node("device@2", [bytes("compatible", b"some\0"), bytes("status", b"disabled\0")], []);
    let mut tree = virt();
    tree.root.add_child(off);
    assert!(seen(&tree, |_| ()).is_none());
}

#[test]
fn a_seed_is_what_was_put_there() {
    let mut tree = virt();
    let blob = tree.to_dtb();
    let read = Fdt::new(&blob).expect("a sound tree");
    assert_eq!(seed(read.root()), Some(&b"32 bytes, and some would say: no"[..]));
    for properties in [vec![], vec![bytes("rng-seed", b"")]] {
        tree.root.remove_child("chosen");
        tree.root.add_child(node("chosen", properties, []));
        let blob = tree.to_dtb();
        assert_eq!(seed(Fdt::new(&blob).expect("a sound tree").root()), None);
    }
    tree.root.remove_child("chosen");
    let blob = tree.to_dtb();
    assert_eq!(seed(Fdt::new(&blob).expect("a sound tree").root()), None);
}
