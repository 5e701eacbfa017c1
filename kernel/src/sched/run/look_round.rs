//! A look at where all cores are, after which they go on: one asks the others by the interrupt that stops them, and says what they
//! have written down.
//!
//! What a core writes lies on its own stack, where it waits until that was said. The one that asks takes it over before it reads it; a
//! core that sees that nobody asks any more takes it back, if it was not taken over. So nobody reads what is not there any more.
//!
//! A panic of the kernel comes first: then all of this ends at once, unsaid.

use core::ptr;

use crate::arch::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::arch::backtrace::Place;
use crate::arch::switch::Frame;
use crate::arch::{MAX_CORES, clock, cpu, ipi};
use crate::log::console;
use crate::mem::stack::StackBlock;
use crate::sched::cores::{self, Core};
use crate::sched::run::kernel_panic::{self, this_core};
use crate::sched::run::whereabouts::{Whereabouts, interrupts, tell};

/// How long the others are waited for.
const PATIENCE_MILLISECONDS: u64 = 200;

/// The core that asks, and one; 0 while nobody does.
static ASKS: AtomicUsize = AtomicUsize::new(0);
/// What each core has written down, [`TAKEN`] while that is said, null when it may go on.
static WRITTEN: [AtomicPtr<Whereabouts>; MAX_CORES] = [const { AtomicPtr::new(ptr::null_mut()) }; MAX_CORES];
const TAKEN: *mut Whereabouts = ptr::dangling_mut();

/// Whether a core asks.
pub(super) fn is_under_way() -> bool {
    // Relaxed: nothing is read that it has written.
    ASKS.load(Ordering::Relaxed) != 0
}

/// Asks all cores, calls `say`, and says where they are. Whether nobody else asks just now.
///
/// # Safety
/// In the handler of an interrupt, or in the core's loop with interrupts masked.
pub(super) unsafe fn look_round(say: impl FnOnce()) -> bool {
    let this = this_core();
    // AcqRel: one after the other. Relaxed on failure: nothing is read.
    if ASKS.compare_exchange(0, this + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return false;
    }
    // The code that was interrupted may have the line.
    console::enter_panic();
    let others =
        || cores::all().filter(|core| cores::started() & core.id().mask() != 0 && core.id().index() != this);
    others().for_each(|core| ipi::stop(core.id()));
    let end = clock::now() + PATIENCE_MILLISECONDS * clock::frequency() / 1_000;
    // Relaxed: only looked at; who reads takes it over.
    let written = |core: &Core| !WRITTEN[core.id().index()].load(Ordering::Relaxed).is_null();
    while clock::now() < end && !others().all(written) && !kernel_panic::is_under_way() {
        cpu::relax();
    }
    say();
    // SAFETY: by contract.
    let own = unsafe { whereabouts_here() };
    for core in cores::all().filter(|core| cores::started() & core.id().mask() != 0) {
        if kernel_panic::is_under_way() {
            break;
        }
        if core.id().index() == this {
            tell(core, "looks round", Some(&own));
            continue;
        }
        let place = &WRITTEN[core.id().index()];
        let words = place.load(Ordering::Relaxed);
        // Acquire: pairs with the release in `answer`. Relaxed on failure: it has been taken back.
        let is_taken = !words.is_null()
            && place.compare_exchange(words, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // SAFETY: written in `answer`, and taken over: that core waits until this is over.
        tell(core, "was met", is_taken.then(|| unsafe { &*words }));
        if is_taken {
            // Release: pairs with the acquire in `answer`: it was read before.
            place.store(ptr::null_mut(), Ordering::Release);
        }
    }
    console::leave_panic();
    // Release: pairs with the acquire of who asks next.
    ASKS.store(0, Ordering::Release);
    true
}

/// Where this core is: in its loop, or what the handler has interrupted that calls this.
///
/// # Safety
/// As [`look_round`].
unsafe fn whereabouts_here() -> Whereabouts {
    let (block, mut place) = (StackBlock::current(), Place::here());
    if interrupts().contains(&place.sp) {
        // SAFETY: an interrupt's handler runs on behalf of this stack, so the frame is complete.
        place = Place::stopped_in(unsafe { &*block.saved() });
    }
    // SAFETY: it is interrupted there, or is the caller.
    unsafe { Whereabouts::at(place, block) }
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
    let (place, words) = (&WRITTEN[this_core()], &raw mut words);
    // Release: pairs with the acquire in `look_round`.
    place.store(words, Ordering::Release);
    // Acquire: pairs with the release in `look_round`.
    while !place.load(Ordering::Acquire).is_null() {
        let is_over = ASKS.load(Ordering::Relaxed) != asks || kernel_panic::is_under_way();
        // Relaxed: what was written is read by nobody, or it was taken over.
        if is_over
            && place.compare_exchange(words, ptr::null_mut(), Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            break;
        }
        cpu::relax();
    }
    StackBlock::current().preempt().release();
}
