//! GICv2 (Arm IHI 0048B): up to eight cores, registers in memory throughout.

use super::{GicError, read, write};
use crate::arch::atomic::{AtomicU8, AtomicUsize, Ordering};
use crate::arch::{CoreId, MAX_CORES};

// Distributor.
const GICD_CTLR: usize = 0x000;
const GICD_IGROUPR: usize = 0x080;
const GICD_ISENABLER: usize = 0x100;
const GICD_IPRIORITYR: usize = 0x400;
const GICD_ITARGETSR: usize = 0x800;
const GICD_SGIR: usize = 0xf00;
// CPU interface.
const GICC_CTLR: usize = 0x00;
const GICC_PMR: usize = 0x04;
const GICC_IAR: usize = 0x0c;
const GICC_EOIR: usize = 0x10;

const ENABLE: u32 = 1;
/// Lets through every priority.
const LOWEST_PRIORITY: u32 = 0xff;
/// The priority of all our interrupts, in each of a register's four bytes.
const PRIORITIES: u32 = 0xa0a0_a0a0;

// Written once at boot, before any other core runs: relaxed.
static DISTRIBUTOR: AtomicUsize = AtomicUsize::new(0);
static CPU_INTERFACE: AtomicUsize = AtomicUsize::new(0);
/// Each core's bit in the distributor's target masks, which need not be its number.
static TARGETS: [AtomicU8; MAX_CORES] = [const { AtomicU8::new(0) }; MAX_CORES];

fn distributor() -> usize {
    DISTRIBUTOR.load(Ordering::Relaxed)
}

fn cpu_interface() -> usize {
    CPU_INTERFACE.load(Ordering::Relaxed)
}

/// # Safety
/// As [`super::init`].
pub(super) unsafe fn init(distributor: usize, cpu_interface: usize) {
    DISTRIBUTOR.store(distributor, Ordering::Relaxed);
    CPU_INTERFACE.store(cpu_interface, Ordering::Relaxed);
    // SAFETY: by contract.
    unsafe { write(distributor, GICD_CTLR, ENABLE) };
}

pub(super) fn init_core(core: CoreId, timer: u32) -> Result<(), GicError> {
    // SAFETY: `init` was given the controller's addresses. The registers for interrupts 0 to 31 are this
    // core's own copies.
    unsafe {
        // The first target register reads as this core's own bit, in every byte.
        let target = (0..8).map(|i| read(distributor(), GICD_ITARGETSR + 4 * i)).fold(0, |a, b| a | b);
        // On a single-core controller it reads as zero.
        let target = if target == 0 { 1 } else { (target | target >> 8 | target >> 16 | target >> 24) as u8 };
        TARGETS[core.index()].store(target, Ordering::Relaxed);
        // Where the firmware runs in the secure world this is read-only, and the group was set by it.
        write(distributor(), GICD_IGROUPR, read(distributor(), GICD_IGROUPR));
        for i in 0..8 {
            write(distributor(), GICD_IPRIORITYR + 4 * i, PRIORITIES);
        }
        write(distributor(), GICD_ISENABLER, 1 << super::WAKE_UP | 1 << timer);
        write(cpu_interface(), GICC_PMR, LOWEST_PRIORITY);
        write(cpu_interface(), GICC_CTLR, ENABLE);
    }
    Ok(())
}

pub(super) fn enable_device(number: u32) {
    let index = number as usize;
    let target = TARGETS[CoreId::BOOT.index()].load(Ordering::Relaxed);
    // SAFETY: `init` was given the controller's addresses; byte accesses to these two are architected.
    unsafe {
        let byte =
            |offset: usize| core::ptr::with_exposed_provenance_mut::<u8>(distributor() + offset + index);
        byte(GICD_IPRIORITYR).write_volatile(PRIORITIES as u8);
        byte(GICD_ITARGETSR).write_volatile(target);
        write(distributor(), GICD_ISENABLER + 4 * (index / 32), 1 << (index % 32));
    }
}

pub(super) fn acknowledge() -> u32 {
    // SAFETY: `init` was given the controller's addresses.
    unsafe { read(cpu_interface(), GICC_IAR) }
}

pub(super) fn end(interrupt: u32) {
    // SAFETY: as above; what was acknowledged goes back whole, with the sender's bits.
    unsafe { write(cpu_interface(), GICC_EOIR, interrupt) }
}

pub(super) fn send(core: CoreId, number: u32) {
    let target = u32::from(TARGETS[core.index()].load(Ordering::Relaxed));
    // What the woken core is to see must be visible before the interrupt arrives.
    aarch64_cpu::asm::barrier::dsb(aarch64_cpu::asm::barrier::ISHST);
    // SAFETY: as above.
    unsafe { write(distributor(), GICD_SGIR, target << 16 | number) }
}
