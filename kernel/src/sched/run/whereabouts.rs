//! Where a core is: what it writes down about itself, and how that is said. Who asks is in `kernel_panic.rs` and `look_round.rs`.
//!
//! No lock is taken but the console's, and nothing is allocated: see there.

use core::fmt::{self, Display};
use core::ops::Range;
use core::ptr;

use crate::arch::backtrace::Place;
use crate::arch::exceptions;
use crate::arch::stack_layout::{FAULT_STACK_BYTES, is_on};
use crate::arch::switch::Frame;
use crate::crash::{Called, Message, Trace, stack_at};
use crate::mem::stack::{self, StackBlock};
use crate::sched::cores::{Core, here};
use crate::sched::process::{Header, Priority};
use crate::text;
use crate::trace::tell_recent;

/// Where a core is, which stays there for now.
pub(super) struct Whereabouts {
    pub pc: usize,
    pub sp: usize,
    /// All its registers, where it was interrupted, or has faulted; of code that called for a panic they say nothing.
    pub registers: Option<Frame>,
    pub trace: Trace,
    pub process: Option<&'static str>,
    pub actor: Option<&'static str>,
    /// What its handler had interrupted, if it was in one.
    pub interrupted: Option<(Frame, Trace)>,
    /// It has panicked by itself.
    pub said: Option<Message>,
}

/// What may be read of the stack with its pointer at `sp`: that of the block, or those of this core's handlers.
pub(super) fn readable(block: &StackBlock, sp: usize) -> Range<usize> {
    let handlers = exceptions::stacks();
    match () {
        () if is_on(ptr::from_ref(block).addr(), sp) => stack_at(block, sp),
        () if handlers.contains(&sp) => sp..handlers.end,
        () => 0..0,
    }
}

/// The stack on which this core handles interrupts.
pub(super) fn interrupts() -> Range<usize> {
    let handlers = exceptions::stacks();
    handlers.start..handlers.end - FAULT_STACK_BYTES
}

impl Whereabouts {
    /// # Safety
    /// The code at that place runs here, on the stack of `block` or on one of this core's for handlers, or was stopped
    /// there, and stays.
    pub(super) unsafe fn at(place: Place, block: &StackBlock) -> Self {
        let process = ptr::NonNull::new(block.process().cast::<Header>());
        Self {
            pc: place.pc,
            sp: place.sp,
            registers: None,
            // SAFETY: by contract.
            trace: unsafe { Trace::from(place, &readable(block, place.sp)) },
            // SAFETY: a process is kept alive during its turn, which does not end.
            process: process.map(|process| (unsafe { process.as_ref() }.vtable().name)()),
            actor: None,
            interrupted: None,
            said: None,
        }
    }

    /// Of the code that was interrupted in `frame`, on this core. From now on preemption is held there, so that nothing that was
    /// requested happens now.
    ///
    /// # Safety
    /// In the interrupt's handler, with the complete frame of what it has interrupted, which stays as long as this is used.
    pub(super) unsafe fn of_interrupted(frame: &Frame) -> Self {
        let block = StackBlock::current();
        let is_preemptible = block.preempt().is_enabled();
        block.preempt().hold();
        // SAFETY: the code was stopped there, and stays.
        let mut words = unsafe { Self::at(Place::stopped_in(frame), block) };
        words.registers = Some(frame.clone());
        if is_preemptible {
            // Only there the worker's own state can be relied on.
            words.actor = here::names_here().and_then(|names| names.actor);
        }
        words
    }
}

/// Says where a core is, whose state is this, by what it has written down, if it has.
pub(super) fn tell(core: &Core, state: &str, words: Option<&Whereabouts>) {
    let (number, waiting) = (core.id().index(), Waiting(core.queue.waiting_by_priority()));
    let Some(words) = words else {
        text!("core {number} does not answer; {waiting}");
        return tell_recent(core.id());
    };
    match (words.process, words.actor) {
        (Some(process), Some(actor)) => text!("core {number} {state} in {process}, {actor}; {waiting}"),
        (Some(process), None) => text!("core {number} {state} in {process}; {waiting}"),
        (None, _) => text!("core {number} {state} between two turns; {waiting}"),
    }
    if let Some(said) = &words.said {
        text!("  it said: {}", said.text());
    }
    match &words.registers {
        Some(registers) => text!("{registers}"),
        None => text!("  pc  {:016x}  sp  {:016x}", words.pc, words.sp),
    }
    text!("{}", Called(words.pc, &words.trace));
    if let Some((registers, trace)) = &words.interrupted {
        let pc = registers.place() as usize;
        text!("  in the handler of an interrupt, which met\n{registers}\n{}", Called(pc, trace));
    }
    tell_recent(core.id());
}

/// How many suspended processes are shown at most: each takes 16 ms on a slow line, and the cores stand still.
const MOST_SUSPENDED: usize = 32;

/// Says where suspended processes are. Looked for by the stacks that they are suspended on, so no list is needed.
///
/// # Safety
/// No other core runs, or can be in the middle of anything that goes on before this returns.
pub(super) unsafe fn tell_suspended() {
    let is_suspended = |block: &&StackBlock| {
        // SAFETY: whose turn is on a stack is kept alive by that, and no turn ends now.
        let process = unsafe { block.process().cast::<Header>().as_ref() };
        process.is_some_and(|process| process.is_suspended_on(block))
    };
    for block in stack::all().filter(is_suspended).take(MOST_SUSPENDED) {
        // SAFETY: the frame is complete, and nobody resumes the code now.
        let place = Place::stopped_in(unsafe { &*block.saved() });
        // SAFETY: as above.
        let words = unsafe { Whereabouts::at(place, block) };
        let (number, name) = (block.process().addr(), words.process.unwrap_or(""));
        text!("{number:x} is suspended in {name}\n{}", Called(place.pc, &words.trace));
    }
}

/// How many processes wait, by priority.
struct Waiting([usize; Priority::COUNT]);

impl Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |priority: Priority| self.0[priority.index()];
        let [max, high, normal, low] = Priority::ALL.map(of);
        write!(f, "{max} max, {high} high, {normal} normal, {low} low wait")
    }
}
