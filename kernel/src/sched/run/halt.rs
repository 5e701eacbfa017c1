//! Standing still: every core but one waits, at a point where it holds nothing of the kernel's.
//!
//! The leader raises the call and interrupts the others. A core stands still
//! - in a turn, where preemption is enabled: at the end of an interrupt or, if that came within a section, at the section's
//!   end (`preempt::consider`), with all its registers in the block of its stack;
//! - in its loop, between two turns, where it has nothing in hand.
//!
//! So while they stand, no lock is held, no queue is half-changed, and no block of the heap is between two owners. What
//! a core runs on its way there may take long, and a core may have left its loop for good, so the leader does not wait
//! for ever.
//!
//! How the calls and the answers go between the cores is in [`Standstill`](crate::sched::cores::standstill::Standstill).

use core::cell::Cell;
use core::ops::Range;

use crate::arch::atomic::{AtomicUsize, Ordering};
use crate::arch::stack_layout::EXCEPTION_STACK_BYTES;
use crate::arch::switch::{self, Frame};
use crate::arch::{MAX_CORES, clock, cpu, exceptions, ipi, irq, timer};
use crate::mem::stack::StackBlock;
use crate::sched::cores::{self, Core, calls};
use crate::sched::place::wake;
use crate::sched::run::kernel_panic;

/// How long the leader waits for the others.
const PATIENCE_MICROSECONDS: u64 = 200_000;
/// How long until it interrupts them again: an interrupt that meets a core between two turns has no effect.
const RING_AGAIN_MICROSECONDS: u64 = 1_000;

fn ticks(microseconds: u64) -> u64 {
    microseconds * clock::frequency() / 1_000_000
}

/// Where each core's stacks for exceptions begin, once it has stood still or led.
static EXCEPTION_STACKS: [AtomicUsize; MAX_CORES] = [const { AtomicUsize::new(0) }; MAX_CORES];

fn note_exception_stacks(core: &Core) {
    // Relaxed: published by the release in `Standstill::stand`, or used by this core only.
    EXCEPTION_STACKS[core.id().index()].store(exceptions::stacks().start, Ordering::Relaxed);
}

/// Stands still until the call is taken back.
///
/// # Safety
/// Interrupts are masked, `frame` is the complete state of the code that runs on the stack of `block`, and that code is a
/// process with preemption enabled, or the core's loop.
#[cold]
#[inline(never)]
pub(crate) unsafe fn stand_still(core: &Core, block: &StackBlock, frame: *mut Frame) {
    if block.process().is_null() && !core.stands.get() {
        return;
    }
    note_exception_stacks(core);
    // The leader interrupts when it is over. The interrupt stays pending, so it ends this even if it comes right
    // before. So would the end of a slice, and another interrupt of the leader's, sent when this core did not stand yet: the wait would be a
    // loop, which a host runs in the leader's place.
    timer::mask();
    calls::CALLS.stand(core.mask(), calls::HALT, ipi::take_back, || {
        cpu::wait_for_interrupt();
        // SAFETY: by contract.
        unsafe { kernel_panic::answer(frame) };
    });
    timer::unmask();
    // What was taken back may have been about something else.
    ipi::send(core.id());
    core.end_masked(|| "standing still for a collection", None);
}

/// Stands still in the core's own loop.
///
/// # Safety
/// The caller is `core`'s loop, between two turns.
pub(crate) unsafe fn stand_still_in_loop(core: &Core) {
    core.stands.set(true);
    switch::preempt_trap();
    core.stands.set(false);
}

/// Which other cores there are.
fn others(core: &Core) -> u64 {
    cores::started() & !core.mask()
}

fn all_stand(core: &Core) -> bool {
    calls::CALLS.standing() & others(core) == others(core)
}

/// Runs `action` while all other cores stand still, with interrupts masked. `None` if another core leads, or they did not
/// come to stand in time. `action` is shown that they do.
///
/// # Safety
/// The caller is `core`'s loop, between two turns.
pub(crate) unsafe fn with_all_standing<R>(core: &Core, action: impl FnOnce(&Standing) -> R) -> Option<R> {
    if !calls::CALLS.lead(calls::HALT) {
        return None;
    }
    calls::tell_all();
    let mut result = None;
    if call_together(core) {
        irq::disable();
        core.begin_masked(clock::now());
        note_exception_stacks(core);
        result = Some(action(&Standing(())));
        core.end_masked(|| "a collection", None);
        // SAFETY: the loop runs with interrupts unmasked.
        unsafe { irq::enable() };
    }
    let standing = calls::CALLS.standing();
    calls::CALLS.end(calls::HALT);
    for other in cores::all().filter(|other| standing & other.mask() != 0) {
        ipi::send(other.id());
    }
    result
}

/// Whether the others came to stand in time.
fn call_together(core: &Core) -> bool {
    let end = clock::now() + ticks(PATIENCE_MICROSECONDS);
    let ring_again = Cell::new(0);
    while !all_stand(core) {
        let now = clock::now();
        if now >= end {
            return false;
        }
        if now >= ring_again.get() {
            ring_again.set(now + ticks(RING_AGAIN_MICROSECONDS));
            let standing = calls::CALLS.standing();
            for other in cores::all().filter(|other| others(core) & !standing & other.mask() != 0) {
                if !wake::wake(other) {
                    ipi::send(other.id());
                }
            }
        }
        cpu::relax();
    }
    true
}

/// Proof that all other cores stand still.
pub(crate) struct Standing(());

impl Standing {
    /// The cores' stacks for exceptions. Nothing on them is in use; what is left there of registers that were saved, of crashed code, too, says
    /// nothing.
    pub(crate) fn exception_stacks(&self) -> impl Iterator<Item = Range<usize>> {
        // Relaxed: ordered by `all_stand`.
        let starts = EXCEPTION_STACKS.iter().map(|start| start.load(Ordering::Relaxed));
        starts.filter(|start| *start != 0).map(|start| start..start + EXCEPTION_STACK_BYTES)
    }
}
