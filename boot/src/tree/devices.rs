//! The devices that boot needs: which node is which, by what it is compatible with, and what it says of itself.
//!
//! Where in the tree they are looked for is in `nodes.rs`. Nothing here touches a device.

use dtoolkit::fdt::FdtNode;

use super::description::{FirmwareCall, InterruptController};
use super::properties::{Facts, bytes, cell, range, text, translated};
use crate::memory::Range;

/// A device, and the bus that it is on unless it is the root's child.
#[derive(Clone, Copy)]
pub(super) struct Device<'a> {
    pub(super) node: FdtNode<'a>,
    pub(super) bus: Option<FdtNode<'a>>,
}

impl Device<'_> {
    /// The `index`th range of its `reg`, as a core sees it.
    pub(super) fn range(self, index: usize) -> Option<Range> {
        let own = range(self.node, index)?;
        self.bus.map_or(Some(own), |bus| translated(bus, own))
    }
}

/// The devices that boot needs: of each kind the first that is not switched off, level by level.
#[derive(Default)]
pub(super) struct Devices<'a> {
    gic_v2: Option<Device<'a>>,
    gic_v3: Option<Device<'a>>,
    pub(super) timer: Option<Device<'a>>,
    pub(super) uart: Option<Device<'a>>,
    pub(super) firmware: Option<Device<'a>>,
}

impl<'a> Devices<'a> {
    /// Takes a node for what it is compatible with, if nothing was taken for that before.
    pub(super) fn look_at(&mut self, device: Device<'a>, facts: &Facts<'a>) {
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
    pub(super) fn is_incomplete(&self) -> bool {
        [self.gic_v3, self.timer, self.uart, self.firmware].iter().any(Option::is_none)
    }

    pub(super) fn interrupts(&self) -> Option<InterruptController> {
        if let Some(device) = self.gic_v3 {
            return Some(InterruptController::V3(device.range(0)?, device.range(1)?));
        }
        let device = self.gic_v2?;
        Some(InterruptController::V2(device.range(0)?, device.range(1)?))
    }
}

pub(super) fn timer(device: Device<'_>) -> Option<u32> {
    // Four interrupts of three cells each: secure, non-secure, virtual, hypervisor. The second cell is the
    // number among the per-core ones, which begin at 16.
    const VIRTUAL_NUMBER: usize = 2 * 3 + 1;
    let number = cell(device.node, "interrupts", VIRTUAL_NUMBER)?;
    // Not `then_some`: it would do the addition even for numbers that are out of range.
    (number < 16).then(|| number + 16)
}

/// A device's first interrupt, if it is one that all cores share: those are numbered from 32 on.
pub(super) fn shared_interrupt(node: FdtNode<'_>) -> Option<u32> {
    const SHARED: u32 = 0;
    const MOST: u32 = 988;
    let number = cell(node, "interrupts", 1).filter(|number| *number < MOST)?;
    (cell(node, "interrupts", 0)? == SHARED).then_some(number + 32)
}

pub(super) fn firmware(device: Device<'_>) -> Option<FirmwareCall> {
    match text(bytes(device.node, "method")?) {
        b"hvc" => Some(FirmwareCall::Hvc),
        b"smc" => Some(FirmwareCall::Smc),
        _ => None,
    }
}
