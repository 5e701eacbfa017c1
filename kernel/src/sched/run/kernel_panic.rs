//! The kernel panics: all cores stop, and one of them says where each is.
//!
//! The first core that panics leads. It interrupts the others, which write down where they were and never go on. One that panics
//! meanwhile, too, does the same, with its message. One that has interrupts masked for longer than the leader waits cannot write
//! anything down, and that is said.
//!
//! Nothing holds any more, so nothing here takes a lock, uses the heap, or waits without a bound; what is read of others is what they have
//! written down, the numbers by which queues are counted, and the names in tables that never change. A failure in here is said,
//! and the end.

use core::fmt::Display;
use core::ptr;

use crate::arch::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::arch::backtrace::Place;
use crate::arch::switch::Frame;
use crate::arch::{MAX_CORES, clock, cpu, ipi, percpu};
use crate::crash::{Message, Trace};
use crate::mem::stack::StackBlock;
use crate::sched::cores::{self, Core};
use crate::sched::run::whereabouts::{Whereabouts, interrupts, readable, tell, tell_suspended};
use crate::sched::run::{crash, look_round};

/// How long the leader waits for the others: an emulator's cores may have to wait for the host's.
const PATIENCE_MILLISECONDS: u64 = 1_000;

/// The core that leads, and one; 0 while nobody does.
static LEADER: AtomicUsize = AtomicUsize::new(0);
/// What each core has written down, on its own stack, when it stopped.
static STOPPED: [AtomicPtr<Whereabouts>; MAX_CORES] = [const { AtomicPtr::new(ptr::null_mut()) }; MAX_CORES];
/// Where each core's code was when it faulted, if it was the kernel's own.
static FAULTED: [AtomicPtr<Frame>; MAX_CORES] = [const { AtomicPtr::new(ptr::null_mut()) }; MAX_CORES];

/// A fault that ends the system is about to be reported as a panic: `frame` says where. For the fault handler.
pub fn note_fault(frame: *mut Frame) {
    // Relaxed: read by this core.
    FAULTED[this_core()].store(frame, Ordering::Relaxed);
}

/// Stops all other cores, calls `say`, and says where each core is. If another core stops the system already, this one writes down where it
/// is, and `message`, and never goes on. If it is this one, it has failed meanwhile: only `say` is called. `above`: as for
/// [`crash::end_panicked`].
///
/// # Safety
/// The caller is the panic handler, with interrupts masked; nothing goes on afterwards.
pub unsafe fn stop_the_system(above: usize, message: &dyn Display, say: impl FnOnce()) {
    let this = this_core();
    // AcqRel: one leader. Acquire: what the leader is, is only compared.
    match LEADER.compare_exchange(0, this + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {}
        // While it said what is wrong something else went wrong.
        Err(leader) if leader == this + 1 => return say(),
        Err(_) => {
            let mut taken = Message::new();
            taken.take(message).take_unsaid();
            // SAFETY: by contract.
            let mut words = unsafe { own(above) };
            words.said = Some(taken);
            stop(this, &mut words)
        }
    }
    // SAFETY: by contract.
    let words = unsafe { own(above) };
    let others = cores::started() & !(1 << this);
    stop_others(others);
    say();
    if cores::all().filter(|core| others & core.mask() != 0).all(|core| words_of(core).is_some()) {
        // SAFETY: no other core goes on, and nor does this one.
        unsafe { tell_suspended() };
    }
    for core in cores::all().filter(|core| cores::started() & core.mask() != 0) {
        let own = if core.id().index() == this { Some(&words) } else { None };
        let words = own.or_else(|| words_of(core));
        let state = match (own, words) {
            (Some(_), _) => "panicked",
            (None, Some(Whereabouts { said: Some(_), .. })) => "panicked, too,",
            (None, _) => "was stopped",
        };
        tell(core, state, words);
    }
}

/// Whether a core stops the system.
pub(super) fn is_under_way() -> bool {
    // Relaxed: nothing is read that its leader has written.
    LEADER.load(Ordering::Relaxed) != 0
}

pub(super) fn this_core() -> usize {
    percpu::core_number().min(MAX_CORES - 1)
}

fn stop_others(others: u64) {
    let others = || cores::all().filter(move |core| others & core.mask() != 0);
    others().for_each(|core| ipi::stop(core.id()));
    let end = clock::now() + PATIENCE_MILLISECONDS * clock::frequency() / 1_000;
    while clock::now() < end && others().any(|core| words_of(core).is_none()) {
        cpu::relax();
    }
}

/// What a core has written down.
fn words_of(core: &Core) -> Option<&'static Whereabouts> {
    // SAFETY: stored by `stop`, on a stack that is never used for anything else from then on.
    // Acquire: pairs with the release in `stop`.
    unsafe { STOPPED[core.id().index()].load(Ordering::Acquire).as_ref() }
}

/// Stops this core for good.
fn stop(core: usize, words: &mut Whereabouts) -> ! {
    // Release: pairs with the acquire in `words_of`.
    STOPPED[core].store(words, Ordering::Release);
    loop {
        cpu::wait_for_interrupt();
    }
}

/// The interrupt by which the leader stops this core, or by which another asks where it is.
///
/// # Safety
/// In the interrupt's handler, with the complete frame of what it has interrupted.
pub(crate) unsafe fn on_stop(frame: *mut Frame) {
    if is_under_way() {
        // SAFETY: by contract.
        let mut words = unsafe { Whereabouts::of_interrupted(&*frame) };
        stop(this_core(), &mut words)
    }
    // SAFETY: by contract.
    unsafe { look_round::answer(frame) };
}

/// For a core that waits with interrupts masked: stops it if the system is being stopped, and says where it is if that is asked.
///
/// # Safety
/// As [`on_stop`].
pub(crate) unsafe fn answer(frame: *mut Frame) {
    // The interrupt that ends the wait was sent afterwards.
    if is_under_way() || look_round::is_under_way() {
        // SAFETY: by contract.
        unsafe { on_stop(frame) };
    }
}

/// Where the caller is, who has panicked: where its code faulted, or from where the panic was raised.
///
/// # Safety
/// The caller is part of the panic handler.
unsafe fn own(above: usize) -> Whereabouts {
    let block = StackBlock::current();
    // Relaxed: stored by this core.
    let frame = FAULTED[this_core()].load(Ordering::Relaxed);
    // SAFETY: stored in the fault handler, in which this is.
    if let Some(frame) = unsafe { frame.as_ref() } {
        // SAFETY: the code was stopped there, and stays.
        let words = unsafe { Whereabouts::at(Place::stopped_in(frame), block) };
        return Whereabouts { registers: Some(frame.clone()), ..words };
    }
    let place = Place::here();
    let stack = readable(block, place.sp);
    // SAFETY: that stack runs here.
    let place = unsafe { crash::raised_from(place, above, &stack) };
    // SAFETY: as above.
    let mut words = unsafe { Whereabouts::at(place, block) };
    // The call, as opposed to what follows it.
    words.pc = place.pc.wrapping_sub(4);
    if interrupts().contains(&place.sp) {
        // SAFETY: an interrupt's handler runs on behalf of this stack, so the frame is complete; the code stays.
        let interrupted = unsafe { &*block.saved() };
        let place = Place::stopped_in(interrupted);
        // SAFETY: as above.
        words.interrupted =
            Some((interrupted.clone(), unsafe { Trace::from(place, &readable(block, place.sp)) }));
    }
    words
}
