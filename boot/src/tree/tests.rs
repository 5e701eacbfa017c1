//! What the reader of the device tree makes of sound trees, of odd ones, and of trees that lack something.

use dtoolkit::memreserve::MemoryReservation;
use dtoolkit::model::{DeviceTree, DeviceTreeProperty};
use magpie::arch::MAX_CORES;

use super::description::MOST_MEMORY;
use super::samples::{bytes, cells, node, virt};
use super::{FirmwareCall, InterruptController, StartMethod, TreeError, read};
use crate::memory::Range;

/// What is read of `virt` after `change`, seen through `look`.
fn after<T>(
    change: impl FnOnce(&mut DeviceTree),
    look: impl FnOnce(&super::Description<'_>) -> T,
) -> Result<T, TreeError> {
    let mut tree = virt();
    change(&mut tree);
    read(&tree.to_dtb()).map(|found| look(&found))
}

/// As [`after`], where these properties are added to the root's child `name`, or stand there instead of what it had.
fn with<T, const N: usize>(
    name: &str,
    properties: [DeviceTreeProperty; N],
    look: impl FnOnce(&super::Description<'_>) -> T,
) -> Result<T, TreeError> {
    let change = |tree: &mut DeviceTree| {
        let child = tree.root.child_mut(name).expect("it is there");
        properties.into_iter().for_each(|property| child.add_property(property));
    };
    after(change, look)
}

/// What reading says when the root's child `name` is not there.
fn without(name: &str) -> Option<TreeError> {
    let remove = |tree: &mut DeviceTree| assert!(tree.root.remove_child(name).is_some(), "{name} was there");
    after(remove, |_| ()).err()
}

fn range(start: usize, bytes: usize) -> Range {
    Range { start, end: start + bytes }
}

#[test]
fn a_sound_tree_is_understood() {
    let blob = virt().to_dtb();
    let found = read(&blob).expect("a sound tree");
    assert_eq!((found.cores, found.arguments, found.timer_interrupt), (2, "seed=7", 27));
    assert_eq!(found.memory[0], range(0x4000_0000, 0x2000_0000));
    assert_eq!(found.memory[1], Range::default());
    assert_eq!((found.places[0].cluster, found.places[1].cluster), (0, 1));
    assert_eq!(found.input, Some(range(0x4800_0000, 0x1000)));
    assert_eq!(found.uart, Some(range(0x900_0000, 0x1000)));
    assert_eq!(found.uart_interrupt, Some(33));
    assert_eq!(found.firmware, Some(FirmwareCall::Hvc));
    assert_eq!(found.start[..2], [StartMethod::Psci, StartMethod::Psci]);
    let (distributor, cpu_interface) = (range(0x800_0000, 0x1_0000), range(0x801_0000, 0x1_0000));
    assert_eq!(found.interrupts, InterruptController::V2(distributor, cpu_interface));
}

#[test]
fn what_the_kernel_cannot_do_without_is_named() {
    assert_eq!(without("memory@40000000"), Some(TreeError::NoMemory));
    assert_eq!(without("intc@8000000"), Some(TreeError::NoInterruptController));
    assert_eq!(without("timer"), Some(TreeError::NoTimer));
}

#[test]
fn what_it_can_do_without_is_left_out() {
    for name in ["psci", "pl011@9000000", "cpus", "chosen"] {
        assert_eq!(without(name), None, "{name}");
    }
    let found = after(
        |tree| {
            for name in ["psci", "pl011@9000000", "cpus", "chosen"] {
                tree.root.remove_child(name);
            }
        },
        |found| (found.cores, found.uart, found.firmware, found.input, found.arguments.len()),
    );
    assert_eq!(found, Ok((1, None, None, None, 0)));
}

#[test]
fn an_empty_or_cut_blob_is_unreadable() {
    let blob = virt().to_dtb();
    assert_eq!(read(&[]).err(), Some(TreeError::Unreadable));
    assert_eq!(read(&[0xff; 64]).err(), Some(TreeError::Unreadable));
    assert_eq!(read(&blob[..blob.len() / 2]).err(), Some(TreeError::Unreadable));
}

#[test]
fn memory_without_a_byte_is_no_memory() {
    let memory = |reg: &[u32]| with("memory@40000000", [cells("reg", reg)], |found| found.memory);
    assert_eq!(memory(&[0, 0x4000_0000, 0, 0]).err(), Some(TreeError::NoMemory));
    assert_eq!(memory(&[]).err(), Some(TreeError::NoMemory));
    // A range that would go past the last address is ignored.
    assert_eq!(memory(&[u32::MAX, 0, u32::MAX, 0]).err(), Some(TreeError::NoMemory));
    let two = memory(&[0, 0x1000_0000, 0, 0x2b40_0000, 0, 0x4000_0000, 0, 0xbc00_0000]).expect("two ranges");
    assert_eq!(
        two[..3],
        [range(0x1000_0000, 0x2b40_0000), range(0x4000_0000, 0xbc00_0000), Range::default()]
    );
}

#[test]
fn more_memory_and_cores_than_are_kept_are_left_out() {
    let found = after(
        |tree| {
            for number in 0..MOST_MEMORY as u32 + 4 {
                let name = std::format!("memory@{:x}", 1 + number);
                let place = [1 + number, 0, 0, 0x1000];
                tree.root.add_child(node(
                    &name,
                    [bytes("device_type", b"memory\0"), cells("reg", &place)],
                    [],
                ));
            }
            let cpus = tree.root.child_mut("cpus").expect("the node");
            for number in 2..MAX_CORES as u32 + 10 {
                let name = std::format!("cpu@{number:x}");
                cpus.add_child(node(&name, [bytes("device_type", b"cpu\0"), cells("reg", &[number])], []));
            }
        },
        |found| (found.memory.iter().filter(|range| range.bytes() > 0).count(), found.cores),
    );
    assert_eq!(found, Ok((MOST_MEMORY, MAX_CORES)));
}

#[test]
fn cores_may_wait_on_a_spin_table() {
    let found = after(
        |tree| {
            let cpu = tree.find_node_mut("/cpus/cpu@1").expect("the node");
            cpu.add_property(bytes("enable-method", b"spin-table\0"));
            cpu.add_property(cells("cpu-release-addr", &[0, 0xe0]));
        },
        |found| found.start[1],
    );
    assert_eq!(found, Ok(StartMethod::SpinTable(0xe0)));
}

#[test]
fn gicv3_is_found_and_a_half_described_controller_is_none() {
    let controller = |reg: &[u32]| {
        let properties = [bytes("compatible", b"arm,gic-v3\0"), cells("reg", reg)];
        with("intc@8000000", properties, |found| found.interrupts)
    };
    let (distributor, redistributors) = (range(0x800_0000, 0x1_0000), range(0x80a_0000, 0xf6_0000));
    assert_eq!(
        controller(&[0, 0x800_0000, 0, 0x1_0000, 0, 0x80a_0000, 0, 0xf6_0000]),
        Ok(InterruptController::V3(distributor, redistributors))
    );
    assert_eq!(controller(&[0, 0x800_0000, 0, 0x1_0000]).err(), Some(TreeError::NoInterruptController));
}

/// As the Raspberry Pi 4's tree has it: devices on a bus with addresses of its own, the first serial port
/// switched off.
#[test]
fn addresses_on_a_bus_are_translated() {
    let found = after(
        |tree| {
            tree.root.remove_child("intc@8000000");
            tree.root.remove_child("pl011@9000000");
            let serial = |name: &str, at: u32, status: &[u8]| {
                let properties = [
                    bytes("compatible", b"arm,pl011\0"),
                    cells("reg", &[at, 0x200]),
                    bytes("status", status),
                ];
                node(name, properties, [])
            };
            let reg = cells("reg", &[0x4004_1000, 0x1000, 0x4004_2000, 0x2000]);
            let gic = node("interrupt-controller@40041000", [bytes("compatible", b"arm,gic-400\0"), reg], []);
            let ranges = [0x7e00_0000, 0, 0xfe00_0000, 0x180_0000, 0x4000_0000, 0, 0xff80_0000, 0x80_0000];
            let soc = [cells("#address-cells", &[1]), cells("#size-cells", &[1]), cells("ranges", &ranges)];
            let children = [
                serial("serial@7e201400", 0x7e20_1400, b"disabled\0"),
                serial("serial@7e201000", 0x7e20_1000, b"okay\0"),
                gic,
            ];
            tree.root.add_child(node("soc", soc, children));
        },
        |found| (found.uart, found.interrupts),
    );
    let (distributor, cpu_interface) = (range(0xff84_1000, 0x1000), range(0xff84_2000, 0x2000));
    let expected = (Some(range(0xfe20_1000, 0x200)), InterruptController::V2(distributor, cpu_interface));
    assert_eq!(found, Ok(expected));
}

#[test]
fn a_device_outside_its_bus_is_none() {
    let found = after(
        |tree| {
            tree.root.remove_child("pl011@9000000");
            let reg = cells("reg", &[0x7fff_ff00, 0x200]);
            let serial = node("serial@7fffff00", [bytes("compatible", b"arm,pl011\0"), reg], []);
            let ranges = cells("ranges", &[0x7e00_0000, 0, 0xfe00_0000, 0x200_0000]);
            let soc = [cells("#address-cells", &[1]), cells("#size-cells", &[1]), ranges];
            tree.root.add_child(node("soc", soc, [serial]));
        },
        |found| found.uart,
    );
    assert_eq!(found, Ok(None));
}

#[test]
fn an_input_that_ends_before_it_begins_is_none() {
    let input = |start: u32, end: u32| {
        let properties = [cells("linux,initrd-start", &[start]), cells("linux,initrd-end", &[end])];
        with("chosen", properties, |found| found.input)
    };
    assert_eq!(input(0x4800_0000, 0x4800_0000), Ok(None));
    assert_eq!(input(0x4800_1000, 0x4800_0000), Ok(None));
    assert_eq!(input(0, 1), Ok(Some(range(0, 1))));
}

#[test]
fn reserved_memory_is_found_in_both_places() {
    let found = after(
        |tree| {
            tree.memory_reservations.push(MemoryReservation::new(0, 0x1000));
            let cells_of = [cells("#address-cells", &[2]), cells("#size-cells", &[2])];
            let fixed = node("atf@4100000", [cells("reg", &[0, 0x4100_0000, 0, 0x2000])], []);
            // A size alone: the reader may choose the place, so no range is reserved.
            let dynamic = node("linux,cma", [cells("size", &[0, 0x400_0000])], []);
            tree.root.add_child(node("reserved-memory", cells_of, [fixed, dynamic]));
        },
        |found| found.reserved,
    )
    .expect("a sound tree");
    assert_eq!(found[..3], [range(0, 0x1000), range(0x4100_0000, 0x2000), Range::default()]);
}

#[test]
fn boot_arguments_are_read_up_to_what_is_no_text() {
    let arguments = |value: &[u8]| {
        with("chosen", [bytes("bootargs", value)], |found| (found.arguments.to_owned(), found.arguments_cut))
    };
    assert_eq!(arguments(b"seed=7 filter=a\0"), Ok(("seed=7 filter=a".to_owned(), 0)));
    assert_eq!(arguments(b"seed=7 \xff\xfe filter=a\0"), Ok(("seed=7 ".to_owned(), 11)));
    assert_eq!(arguments(b"\xff\0"), Ok((String::new(), 1)));
    assert_eq!(arguments(b"\0"), Ok((String::new(), 0)));
}

#[test]
fn registers_in_memory_or_on_another_device_are_refused() {
    let with_uart_at =
        |start: u32| with("pl011@9000000", [cells("reg", &[0, start, 0, 0x1000])], |found| found.uart);
    assert_eq!(with_uart_at(0xa00_0000), Ok(Some(range(0xa00_0000, 0x1000))));
    for start in [0x4000_0000, 0x5fff_f000, 0x800_0000, 0x801_f000] {
        let refused = with_uart_at(start);
        assert!(matches!(refused, Err(TreeError::DeviceOverlaps(_))), "{start:#x}: {refused:?}");
    }
}
