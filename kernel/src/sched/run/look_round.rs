//! A look at where all cores are, after which they go on: one asks the others by the interrupt that stops them, and says what they
//! have written down.
//!
//! What a core writes lies on its own stack, where it waits until that was said. The one that asks takes it over before it reads it; a
//! core that sees that nobody asks any more takes it back, if it was not taken over. So nobody reads what is not there any more
//! (`written.rs`).
//!
//! A panic of the kernel comes first: then all of this ends at once, unsaid.

use core::ptr::NonNull;

use crate::arch::atomic::{AtomicUsize, Ordering};
use crate::arch::backtrace::Place;
use crate::arch::switch::Frame;
use crate::arch::{MAX_CORES, clock, cpu, ipi, irq};
use crate::log::console;
use crate::mem::stack::StackBlock;
use crate::sched::cores::{self, Core};
use crate::sched::run::kernel_panic::{self, this_core};
use crate::sched::run::whereabouts::{Whereabouts, interrupts, tell, tell_suspended};
use crate::sched::run::written::Written;
use crate::sync::PreemptGuard;

/// How long the others are waited for.
const PATIENCE_MILLISECONDS: u64 = 200;

/// The core that asks, and one; 0 while nobody does.
static ASKS: AtomicUsize = AtomicUsize::new(0);
/// What each core has written down, until that was said.
static WRITTEN: [Written<Whereabouts>; MAX_CORES] = [const { Written::new() }; MAX_CORES];

/// Says where all cores and suspended processes are. The cores stand still until all of it was said.
pub fn whereabouts() {
    let _here = PreemptGuard::new();
    let was_masked = irq::mask();
    // SAFETY: interrupts are masked, and preemption is disabled.
    unsafe { look_round(&|| {}) };
    if !was_masked {
        // SAFETY: they were not, when this began.
        unsafe { irq::enable() };
    }
}

/// Whether a core asks.
pub(super) fn is_under_way() -> bool {
    // Relaxed: nothing is read that it has written.
    ASKS.load(Ordering::Relaxed) != 0
}

/// Asks all cores, calls `say`, and says where they are. Whether nobody else asks just now.
///
/// # Safety
/// In the handler of an interrupt, or with interrupts masked and preemption disabled.
#[inline(never)]
pub(super) unsafe fn look_round(say: &dyn Fn()) -> bool {
    let this = this_core();
    // AcqRel: one after the other. Relaxed on failure: nothing is read.
    if ASKS.compare_exchange(0, this + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return false;
    }
    // The code that was interrupted may have the line.
    console::enter_panic();
    let others =
        || cores::all().filter(|core| cores::started() & core.mask() != 0 && core.id().index() != this);
    others().for_each(|core| ipi::stop(core.id()));
    let end = clock::now() + PATIENCE_MILLISECONDS * clock::frequency() / 1_000;
    let written = |core: &Core| WRITTEN[core.id().index()].is_here();
    while clock::now() < end && !others().all(written) && !kernel_panic::is_under_way() {
        cpu::relax();
    }
    say();
    if others().all(written) {
        // SAFETY: all others wait for this one, so what is suspended stays so.
        unsafe { tell_suspended() };
    }
    // SAFETY: by contract.
    let own = unsafe { whereabouts_here() };
    // Nobody goes on before all was said: what a core prints would get between, for the line is locked by nobody now.
    let mut met = 0;
    for core in cores::all().filter(|core| cores::started() & core.mask() != 0) {
        if kernel_panic::is_under_way() {
            break;
        }
        if core.id().index() == this {
            tell(core, "looks round", Some(&own));
            continue;
        }
        let taken = WRITTEN[core.id().index()].take();
        if taken.is_some() {
            met |= core.mask();
        }
        // SAFETY: left in `answer`, and taken over: that core waits until this is over.
        tell(core, "was met", taken.map(|words| unsafe { words.as_ref() }));
    }
    console::leave_panic();
    cores::all().filter(|core| met & core.mask() != 0).for_each(|core| WRITTEN[core.id().index()].say_read());
    // Release: pairs with the acquire of who asks next.
    ASKS.store(0, Ordering::Release);
    true
}

/// Where this core is: in its loop, or what the handler has interrupted that calls this.
///
/// # Safety
/// As [`look_round`].
unsafe fn whereabouts_here() -> Whereabouts {
    let (block, place) = (StackBlock::current(), Place::here());
    if !interrupts().contains(&place.sp) {
        // SAFETY: it is the caller.
        return unsafe { Whereabouts::at(place, block) };
    }
    // SAFETY: an interrupt's handler runs on behalf of this stack, so the frame is complete, and the code stays.
    unsafe {
        let interrupted = &*block.saved();
        let words = Whereabouts::at(Place::stopped_in(interrupted), block);
        Whereabouts { registers: Some(interrupted.clone()), ..words }
    }
}

/// Another core asks: says where this one is, waits until that was said, and goes on.
///
/// # Safety
/// As [`kernel_panic::on_stop`].
pub(super) unsafe fn answer(frame: *mut Frame) {
    let asks = ASKS.load(Ordering::Relaxed);
    if asks == 0 || asks == this_core() + 1 {
        // It was asked long ago.
        return;
    }
    // SAFETY: by contract; the code goes on only after this.
    let mut words = unsafe { Whereabouts::of_interrupted(&*frame) };
    let (place, words) = (&WRITTEN[this_core()], NonNull::from(&mut words));
    place.leave(words);
    while !place.was_read() {
        // Relaxed: nothing is read that the other has written.
        let is_over = ASKS.load(Ordering::Relaxed) != asks || kernel_panic::is_under_way();
        if is_over && place.take_back(words) {
            break;
        }
        cpu::relax();
    }
    StackBlock::current().preempt().release();
}
