//! GICv2 (Arm IHI 0048B): up to eight cores, registers in memory throughout.

use tock_registers::interfaces::{Readable, Writeable};
use tock_registers::register_structs;
use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};

use super::{GicError, TRIGGERS};
use crate::arch::atomic::{AtomicPtr, AtomicU8, Ordering};
use crate::arch::{CoreId, MAX_CORES, Trigger};

register_structs! {
    /// What all cores share. Priorities and targets are a byte for each interrupt, and may be accessed so; so are the bits of who has sent a core one
    /// of its own.
    Distributor {
        (0x000 => control: ReadWrite<u32>),
        (0x004 => kind: ReadOnly<u32>),
        (0x008 => _reserved0),
        (0x080 => _group: [ReadWrite<u32>; 32]),
        (0x100 => set_enable: [ReadWrite<u32>; 32]),
        (0x180 => clear_enable: [ReadWrite<u32>; 32]),
        (0x200 => set_pending: [ReadWrite<u32>; 32]),
        (0x280 => clear_pending: [ReadWrite<u32>; 32]),
        (0x300 => _active: [ReadWrite<u32>; 64]),
        (0x400 => priority: [ReadWrite<u8>; 1024]),
        (0x800 => targets: [ReadWrite<u8>; 1024]),
        (0xc00 => trigger: [ReadWrite<u32>; 64]),
        (0xd00 => _reserved2),
        (0xf00 => send: WriteOnly<u32>),
        (0xf04 => _reserved3),
        (0xf10 => clear_sent: [ReadWrite<u8>; 16]),
        (0xf20 => @END),
    },
    /// Each core's own.
    CpuInterface {
        (0x00 => control: ReadWrite<u32>),
        (0x04 => priority_mask: ReadWrite<u32>),
        (0x08 => _reserved0),
        (0x0c => acknowledge: ReadOnly<u32>),
        (0x10 => end: WriteOnly<u32>),
        (0x14 => @END),
    }
}

const ENABLE: u32 = 1;
/// Lets through every priority.
const LOWEST_PRIORITY: u32 = 0xff;
/// The priority of all our interrupts.
const PRIORITY: u8 = 0xa0;
/// Interrupts below this number are each core's own.
const OWN_INTERRUPTS: usize = super::FIRST_SHARED as usize;

// Written once at boot, before any other core runs: relaxed.
static DISTRIBUTOR: AtomicPtr<Distributor> = AtomicPtr::new(core::ptr::null_mut());
static CPU_INTERFACE: AtomicPtr<CpuInterface> = AtomicPtr::new(core::ptr::null_mut());
/// Each core's bit in the distributor's target masks, which need not be its number.
static TARGETS: [AtomicU8; MAX_CORES] = [const { AtomicU8::new(0) }; MAX_CORES];

fn distributor() -> &'static Distributor {
    // SAFETY: `init` was given the controller's address, and nothing else in this file runs before it.
    unsafe { &*DISTRIBUTOR.load(Ordering::Relaxed) }
}

fn cpu_interface() -> &'static CpuInterface {
    // SAFETY: as above; at one address each core finds its own.
    unsafe { &*CPU_INTERFACE.load(Ordering::Relaxed) }
}

/// # Safety
/// As [`super::init`].
pub(super) unsafe fn init(distributor: usize, cpu_interface: usize) {
    DISTRIBUTOR.store(core::ptr::with_exposed_provenance_mut(distributor), Ordering::Relaxed);
    CPU_INTERFACE.store(core::ptr::with_exposed_provenance_mut(cpu_interface), Ordering::Relaxed);
    self::distributor().control.set(ENABLE);
}

pub(super) fn init_core(core: CoreId, timer: u32) -> Result<(), GicError> {
    let distributor = distributor();
    // The target registers of a core's own interrupts read as that core's bit; on a single-core controller
    // as zero.
    let target = distributor.targets[..OWN_INTERRUPTS].iter().fold(0, |bits, target| bits | target.get());
    TARGETS[core.index()].store(if target == 0 { 1 } else { target }, Ordering::Relaxed);
    // The groups stay as they are: where the firmware runs in the secure world it has set them.
    for priority in &distributor.priority[..OWN_INTERRUPTS] {
        priority.set(PRIORITY);
    }
    distributor.set_enable[0].set(1 << super::WAKE_UP | 1 << super::STOP | 1 << timer);
    cpu_interface().priority_mask.set(LOWEST_PRIORITY);
    cpu_interface().control.set(ENABLE);
    Ok(())
}

/// What the register says of how many interrupts there are.
pub(super) fn kind() -> u32 {
    distributor().kind.get()
}

/// # Safety
/// As [`super::prepare`].
pub(super) unsafe fn prepare(number: u32, trigger: Trigger, core: CoreId) {
    let index = number as usize;
    mask(number);
    let distributor = distributor();
    let field = &distributor.trigger[index / TRIGGERS];
    field.set(super::with_trigger(field.get(), index, trigger));
    distributor.priority[index].set(PRIORITY);
    route(number, core);
    // What an edge has left behind.
    distributor.clear_pending[index / 32].set(1 << (index % 32));
}

pub(super) fn route(number: u32, core: CoreId) {
    // Relaxed: written once, before the core ran.
    distributor().targets[number as usize].set(TARGETS[core.index()].load(Ordering::Relaxed));
}

pub(super) fn unmask(number: u32) {
    distributor().set_enable[number as usize / 32].set(1 << (number % 32));
}

pub(super) fn mask(number: u32) {
    distributor().clear_enable[number as usize / 32].set(1 << (number % 32));
}

pub(super) fn set_pending(number: u32) {
    distributor().set_pending[number as usize / 32].set(1 << (number % 32));
}

/// Its priority was set with that of all the core's own, and it has no target but the core.
pub(super) fn enable_own(number: u32) {
    distributor().set_enable[0].set(1 << (number % 32));
}

pub(super) fn acknowledge() -> u32 {
    cpu_interface().acknowledge.get()
}

pub(super) fn end(interrupt: u32) {
    // What was acknowledged goes back whole, with the sender's bits.
    cpu_interface().end.set(interrupt);
}

pub(super) fn send(core: CoreId, number: u32) {
    let target = u32::from(TARGETS[core.index()].load(Ordering::Relaxed));
    // What the woken core is to see must be visible before the interrupt arrives.
    aarch64_cpu::asm::barrier::dsb(aarch64_cpu::asm::barrier::ISHST);
    distributor().send.set(target << 16 | number);
}

/// What other cores have sent this one, and itself, is not pending any more. What they send later is, because the read comes back
/// behind the write.
pub(super) fn clear_sent(number: u32) {
    let register = &distributor().clear_sent[number as usize];
    register.set(u8::MAX);
    register.get();
}
