//! GICv3 (Arm IHI 0069): any number of cores, the CPU interface in system registers.

use core::arch::asm;

use super::{GicError, TRIGGERS, read, write};
use crate::arch::aarch64::cpu;
use crate::arch::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::arch::{CoreId, MAX_CORES, Trigger};

// Distributor.
const GICD_CTLR: usize = 0x0000;
const GICD_TYPER: usize = 0x0004;
const GICD_IGROUPR: usize = 0x0080;
const GICD_ISENABLER: usize = 0x0100;
const GICD_ICENABLER: usize = 0x0180;
const GICD_ISPENDR: usize = 0x0200;
const GICD_ICPENDR: usize = 0x0280;
const GICD_IPRIORITYR: usize = 0x0400;
const GICD_ICFGR: usize = 0x0c00;
const GICD_IROUTER: usize = 0x6000;
/// Affinity routing and group 1, as the non-secure world sees the register; harmless bits elsewhere.
const ENABLE_GROUP_1_AFFINITY: u32 = 1 << 4 | 1 << 1 | 1;
// Redistributor: two frames of 64 KiB each, four where virtual LPIs exist.
const GICR_TYPER: usize = 0x0008;
const GICR_WAKER: usize = 0x0014;
const FRAME_BYTES: usize = 0x1_0000;
const SGI_FRAME: usize = FRAME_BYTES;
const WAKER_PROCESSOR_SLEEP: u32 = 1 << 1;
const WAKER_CHILDREN_ASLEEP: u32 = 1 << 2;
const TYPER_VLPIS: u32 = 1 << 1;
const TYPER_LAST: u32 = 1 << 4;
const PRIORITIES: u32 = 0xa0a0_a0a0;
/// The fields of an affinity value that a route has; the other bits mean something else there.
const AFFINITY_FIELDS: u64 = 0xff_00ff_ffff;

// Written at boot before they are read: relaxed.
static DISTRIBUTOR: AtomicUsize = AtomicUsize::new(0);
static REDISTRIBUTORS: AtomicUsize = AtomicUsize::new(0);
static REDISTRIBUTORS_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Each core's affinity value, for sending.
static AFFINITIES: [AtomicU64; MAX_CORES] = [const { AtomicU64::new(0) }; MAX_CORES];

/// # Safety
/// As [`super::init`].
pub(super) unsafe fn init(distributor: usize, redistributors: usize, bytes: usize) {
    DISTRIBUTOR.store(distributor, Ordering::Relaxed);
    REDISTRIBUTORS.store(redistributors, Ordering::Relaxed);
    REDISTRIBUTORS_BYTES.store(bytes, Ordering::Relaxed);
    // SAFETY: the caller promised the controller's addresses.
    unsafe { write(distributor, GICD_CTLR, ENABLE_GROUP_1_AFFINITY) };
}

pub(super) fn init_core(core: CoreId, timer: u32) -> Result<(), GicError> {
    AFFINITIES[core.index()].store(cpu::affinity(), Ordering::Relaxed);
    let redistributor = find_redistributor().ok_or(GicError::NoRedistributor)?;
    // SAFETY: the redistributor is this core's own, in the region that `init` was given. The system
    // registers are the CPU interface's, as the architecture describes them.
    unsafe {
        let waker = read(redistributor, GICR_WAKER);
        write(redistributor, GICR_WAKER, waker & !WAKER_PROCESSOR_SLEEP);
        while read(redistributor, GICR_WAKER) & WAKER_CHILDREN_ASLEEP != 0 {
            core::hint::spin_loop();
        }
        let sgi = redistributor + SGI_FRAME;
        write(sgi, GICD_IGROUPR, u32::MAX);
        for i in 0..8 {
            write(sgi, GICD_IPRIORITYR + 4 * i, PRIORITIES);
        }
        write(sgi, GICD_ISENABLER, 1 << super::WAKE_UP | 1 << super::STOP | 1 << timer);
        asm!(
            // ICC_SRE_EL1: use the system registers.
            "mrs {t}, S3_0_C12_C12_5",
            "orr {t}, {t}, #1",
            "msr S3_0_C12_C12_5, {t}",
            "isb",
            // ICC_PMR_EL1: let through every priority.
            "mov {t}, #0xff",
            "msr S3_0_C4_C6_0, {t}",
            // ICC_IGRPEN1_EL1: take group 1.
            "mov {t}, #1",
            "msr S3_0_C12_C12_7, {t}",
            "isb",
            t = out(reg) _,
            options(nostack)
        );
    }
    Ok(())
}

/// The redistributor whose affinity is this core's.
fn find_redistributor() -> Option<usize> {
    let own = cpu::affinity();
    // GICR_TYPER holds the affinity fields side by side.
    let own = (own >> 32 & 0xff) << 24 | own & 0xff_ffff;
    let mut at = REDISTRIBUTORS.load(Ordering::Relaxed);
    let end = at + REDISTRIBUTORS_BYTES.load(Ordering::Relaxed);
    while at < end {
        // SAFETY: inside the region that `init` was given.
        let (low, high) = unsafe { (read(at, GICR_TYPER), read(at, GICR_TYPER + 4)) };
        if u64::from(high) == own {
            return Some(at);
        }
        if low & TYPER_LAST != 0 {
            return None;
        }
        at += if low & TYPER_VLPIS != 0 { 4 * FRAME_BYTES } else { 2 * FRAME_BYTES };
    }
    None
}

/// What the register says of how many interrupts there are.
pub(super) fn kind() -> u32 {
    // SAFETY: `init` was given the controller's address.
    unsafe { read(distributor(), GICD_TYPER) }
}

/// # Safety
/// As [`super::prepare`].
pub(super) unsafe fn prepare(number: u32, trigger: Trigger, core: CoreId) {
    let index = number as usize;
    mask(number);
    let distributor = distributor();
    // SAFETY: `init` was given the controller's address; byte access to the priorities is architected. One caller at a time
    // changes what has fields for several interrupts, by contract.
    unsafe {
        let group = GICD_IGROUPR + 4 * (index / 32);
        write(distributor, group, read(distributor, group) | 1 << (index % 32));
        let triggers = GICD_ICFGR + 4 * (index / TRIGGERS);
        write(distributor, triggers, super::with_trigger(read(distributor, triggers), index, trigger));
        core::ptr::with_exposed_provenance_mut::<u8>(distributor + GICD_IPRIORITYR + index)
            .write_volatile(PRIORITIES as u8);
    }
    route(number, core);
    // What an edge has left behind.
    set(GICD_ICPENDR, number);
}

pub(super) fn route(number: u32, core: CoreId) {
    let affinity = AFFINITIES[core.index()].load(Ordering::Relaxed);
    let router =
        core::ptr::with_exposed_provenance_mut::<u64>(distributor() + GICD_IROUTER + 8 * number as usize);
    // SAFETY: `init` was given the controller's address. The register has 64 bits, and is written at once, because an interrupt may come
    // between two halves.
    unsafe { router.write_volatile(affinity & AFFINITY_FIELDS) };
}

pub(super) fn unmask(number: u32) {
    set(GICD_ISENABLER, number);
}

pub(super) fn mask(number: u32) {
    set(GICD_ICENABLER, number);
}

pub(super) fn set_pending(number: u32) {
    set(GICD_ISPENDR, number);
}

/// Writes an interrupt's bit into a register in which zeros change nothing.
fn set(register: usize, number: u32) {
    // SAFETY: `init` was given the controller's address.
    unsafe { write(distributor(), register + 4 * (number as usize / 32), 1 << (number % 32)) };
}

fn distributor() -> usize {
    DISTRIBUTOR.load(Ordering::Relaxed)
}

/// Its priority and group were set with those of all the core's own.
pub(super) fn enable_own(number: u32) {
    set_own(GICD_ISENABLER, number);
}

/// What was sent to this core is not pending any more. What is sent later is: see `set_own`.
pub(super) fn clear_own(number: u32) {
    set_own(GICD_ICPENDR, number);
}

/// Writes an interrupt's bit into one of the core's own registers, in which zeros change nothing. It has come there when this returns,
/// because the read comes back behind the write.
fn set_own(register: usize, number: u32) {
    if let Some(redistributor) = find_redistributor() {
        // SAFETY: the redistributor is this core's own, in the region that `init` was given.
        unsafe {
            write(redistributor + SGI_FRAME, register, 1 << (number % 32));
            read(redistributor + SGI_FRAME, register);
        }
    }
}

pub(super) fn acknowledge() -> u32 {
    let interrupt: u64;
    // SAFETY: ICC_IAR1_EL1, enabled in `init_core`.
    unsafe { asm!("mrs {}, S3_0_C12_C12_0", "dsb sy", out(reg) interrupt, options(nostack)) };
    interrupt as u32
}

pub(super) fn end(interrupt: u32) {
    // SAFETY: ICC_EOIR1_EL1, enabled in `init_core`.
    unsafe { asm!("msr S3_0_C12_C12_1, {}", "isb", in(reg) u64::from(interrupt), options(nostack)) };
}

pub(super) fn send(core: CoreId, number: u32) {
    let affinity = AFFINITIES[core.index()].load(Ordering::Relaxed);
    let aff = |level: u64| affinity >> (8 * level) & 0xff;
    let aff3 = affinity >> 32 & 0xff;
    // The target list has 16 bits; which 16 of Aff0's values they stand for is the range selector.
    let value = aff3 << 48
        | (aff(0) / 16) << 44
        | aff(2) << 32
        | u64::from(number) << 24
        | aff(1) << 16
        | 1 << (aff(0) % 16);
    // SAFETY: ICC_SGI1R_EL1, enabled in `init_core`. The barrier makes visible what the woken core is to
    // see before the interrupt arrives.
    unsafe { asm!("dsb ishst", "msr S3_0_C12_C11_5, {}", "isb", in(reg) value, options(nostack)) };
}
