//! The other cores: started one by one, each reporting before the next; one that does not come is left out.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use alloc::boxed::Box;
use alloc::vec::Vec;
use magpie::arch::CoreId;
use magpie::internals::arch::psci::{self, Conduit};
use magpie::internals::arch::stack_layout::EXCEPTION_STACK_BYTES;
use magpie::internals::arch::start::{self, SecondaryStart, secondary_entry};
use magpie::internals::arch::{clock, cpu, exceptions, gic, ipi, mmu};
use magpie::internals::mem::stack;
use magpie::internals::sched::enter;
use magpie::log::text;
use magpie::mem;

use crate::tree::{Description, FirmwareCall, StartMethod};

/// How long a core may take to come up: generous, because an emulator's host may be busy.
const PATIENCE_SECONDS: u64 = 10;

static ARRIVED: AtomicUsize = AtomicUsize::new(1);
static RELEASED: AtomicBool = AtomicBool::new(false);
/// Cores that go on after their release.
static GONE_ON: AtomicUsize = AtomicUsize::new(1);

/// Starts cores 1 and up, `prepared` in all with this one. Returns how many run, this one included.
///
/// A core that cannot be started ends the sequence: cores are numbered without gaps.
pub(crate) fn start_others(found: &Description<'_>, prepared: usize) -> usize {
    if prepared < found.cores {
        text!("memory for {prepared} of {} cores only; the others stay off", found.cores);
    }
    let own = cpu::affinity();
    for core in 1..prepared {
        if found.places[core].affinity == own {
            text!(
                "core {core} is the one that boots: the device tree does not list it first; running on {core}"
            );
            return core;
        }
        if let Err(reason) = start(found, core) {
            text!(
                "core {core} does not start: {reason}; running on {core} core{}",
                if core == 1 { "" } else { "s" }
            );
            return core;
        }
    }
    prepared
}

fn start(found: &Description<'_>, core: usize) -> Result<(), &'static str> {
    let stack = stack::take().ok_or("no stack is left for it")?;
    let record = SecondaryStart {
        stack_top: stack.top() as usize,
        stack_block: core::ptr::from_ref(stack.block()) as usize,
        core,
    };
    let record = mem::try_box(record).map_err(|_| "no memory is left for it")?;
    // Kept for good: the core reads it at a time of its own choosing, with its caches off. It uses its stack with them
    // on.
    let record = Box::leak(record) as *const SecondaryStart as usize;
    mmu::clean(record, size_of::<SecondaryStart>());
    match found.start[core] {
        StartMethod::Psci => {
            let conduit = match found.firmware {
                Some(FirmwareCall::Hvc) => Conduit::Hvc,
                Some(FirmwareCall::Smc) => Conduit::Smc,
                None => return Err("the device tree names no firmware that starts cores"),
            };
            // SAFETY: the entry is the kernel's own for cores that start, which takes the record; that was cleaned above.
            unsafe { psci::cpu_on(conduit, found.places[core].affinity, secondary_entry(), record) }
                .map_err(|_| "the firmware refuses")?;
        }
        StartMethod::SpinTable(slot) => {
            let is_memory = found.memory.iter().any(|range| range.start <= slot && slot < range.end);
            if !is_memory || !slot.is_multiple_of(size_of::<u64>()) {
                return Err("its slot of the spin table is not in memory");
            }
            // SAFETY: the tree says that the slot is there; memory is mapped, and the first page until all cores
            // were started. The record was cleaned above.
            if !unsafe { start::release_from_spin_table(slot, found.places[core].affinity, record) } {
                return Err("its number is beyond what a start by spin table supports");
            }
        }
    }
    let patience = clock::now() + PATIENCE_SECONDS * clock::frequency();
    // Acquire: pairs with the release in `magpie_boot_secondary`.
    while ARRIVED.load(Ordering::Acquire) <= core {
        if clock::now() > patience {
            return Err("it was started but does not report");
        }
        cpu::relax();
    }
    Ok(())
}

/// Lets the started cores enter the scheduler, and waits until they do: `started` run, this one included. Waking from a
/// sleep takes an emulated core so long that the application would begin without it.
pub(crate) fn release_others(started: usize) {
    // Release: pairs with the acquire below; they see everything that boot set up.
    RELEASED.store(true, Ordering::Release);
    (1..started).filter_map(CoreId::new).for_each(ipi::send);
    let patience = clock::now() + PATIENCE_SECONDS * clock::frequency();
    // Relaxed: it is only waited for.
    while GONE_ON.load(Ordering::Relaxed) < started && clock::now() < patience {
        cpu::relax();
    }
}

/// Called by the first instructions of a core, on its stack, with the MMU on.
#[unsafe(no_mangle)]
extern "C" fn magpie_boot_secondary(core: usize) -> ! {
    let Some(id) = CoreId::new(core) else {
        panic!("core {core} was started, beyond what the kernel supports")
    };
    // Not boxed: an array of this size would be built on the stack first.
    let mut stacks = Vec::<u128>::new();
    if stacks.try_reserve_exact(EXCEPTION_STACK_BYTES / size_of::<u128>()).is_err() {
        panic!("no memory for core {core}'s stacks for exceptions; give the machine more")
    }
    let start = stacks.as_mut_ptr();
    core::mem::forget(stacks);
    // SAFETY: never freed, for this core alone; the pointer is one past the end, where a stack begins.
    unsafe { exceptions::install(start.byte_add(EXCEPTION_STACK_BYTES).cast()) };
    if gic::init_core(id).is_err() {
        panic!("the interrupt controller has no redistributor for core {core}");
    }
    cpu::start_event_stream();
    // Release: pairs with the boot core's acquire.
    ARRIVED.fetch_add(1, Ordering::Release);
    // Acquire: pairs with `release_others`, which sends the interrupt after its store. Masked, the interrupt stays
    // pending and ends the wait even if it comes right before. Waiting for an event (WFE) instead would spin on an
    // emulator, and slow the others' start.
    while !RELEASED.load(Ordering::Acquire) {
        cpu::wait_for_interrupt();
    }
    // Relaxed: as in `release_others`.
    GONE_ON.fetch_add(1, Ordering::Relaxed);
    // SAFETY: prepared by the boot core; the stack block was set by the first instructions with preemption
    // disabled once, and nothing here needs dropping.
    unsafe { enter(id) };
    loop {
        cpu::wait_for_interrupt();
    }
}
