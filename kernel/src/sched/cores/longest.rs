//! What took longest on a core: turns, interrupts, stretches with interrupts masked, postponed preemptions.
//!
//! A turn's end compares two numbers, as the end of an interrupt does; where it was is written down only for one that is longer than
//! all before. What exactly is measured, and what is not, is said at the fields of [`CoreStatistics`](crate::stats::CoreStatistics).

use core::cell::Cell;
use core::mem::offset_of;

use super::block::Core;
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::arch::switch::Frame;
use crate::arch::{barrier, clock, irq, pair};
use crate::mem::stack::StackBlock;
use crate::sched::cores;
use crate::sched::process::Header;
#[cfg(feature = "traced")]
use crate::stats::Activity;
use crate::stats::{Longest, Name};
use crate::trace::{self, Kind};

/// What a device's interrupt is called.
pub(crate) const DEVICE: &str = "a device";

/// When stretches that have not ended yet began, in clock ticks, and what is to be exceeded.
#[repr(C)]
pub(crate) struct Open {
    /// When the turn in progress began, and the longest turn: side by side, so that both are loaded at once. The longest turn, and the longest
    /// interrupt, are here again where a turn's end and a handler find them soonest. While a trace is on they are [`EVERY`]: then all are looked at.
    /// Written by other cores for that alone.
    turn: [AtomicU64; 2],
    longest_interrupt: AtomicU64,
    /// While a trace is on, between two turns: since when the kernel runs, zero otherwise. Written by other cores where a trace begins.
    #[cfg(feature = "traced")]
    kernel_since: AtomicU64,
    /// An interrupt that was longer than all before, and is not written down yet: how long; zero: there is none. Then its name and its place.
    new_interrupt: Cell<u64>,
    new_interrupt_name: Cell<Option<Name>>,
    new_interrupt_place: Cell<u64>,
    /// How long the longest of those took for which the loop has waited since it last looked: who waits for what they wake does not wait for more.
    awaited_interrupt: Cell<u64>,
    /// When interrupts were masked, if that is known: zero otherwise.
    masked_at: Cell<u64>,
    /// When a preemption was postponed, and the instruction that was interrupted then. Good while the preemption word of the stack
    /// says that it was noted: that stack does not leave this core before.
    postponed_at: Cell<u64>,
    postponed_in: Cell<u64>,
}

impl Open {
    pub(super) const fn new() -> Self {
        Self {
            turn: [AtomicU64::new(0), AtomicU64::new(0)],
            longest_interrupt: AtomicU64::new(0),
            #[cfg(feature = "traced")]
            kernel_since: AtomicU64::new(0),
            new_interrupt: Cell::new(0),
            new_interrupt_name: Cell::new(None),
            new_interrupt_place: Cell::new(0),
            awaited_interrupt: Cell::new(0),
            masked_at: Cell::new(0),
            postponed_at: Cell::new(0),
            postponed_in: Cell::new(0),
        }
    }

    #[inline(always)]
    fn longest_turn(&self) -> &AtomicU64 {
        &self.turn[1]
    }
}

/// Less than any stretch, as a signed number.
const EVERY: u64 = u64::MAX;

/// Switches traces of turns, interrupts and what else is frequent on or off.
///
/// From then on every turn is longer than the longest that a core knows of, so its end comes where that is looked at closely, and writes the event
/// down. While no trace is on that costs nothing.
pub fn set_tracing(on: bool) {
    trace::set_on(on);
    // Pairs with the barrier in `note_longer`: either that sees that the trace is on, or what is stored below comes behind what it stores.
    barrier::full();
    if on {
        for core in cores::all() {
            // What a trace before this one has left.
            #[cfg(feature = "traced")]
            core.open.kernel_since.store(0, Ordering::Relaxed);
            core.open.longest_turn().store(EVERY, Ordering::Relaxed);
            core.open.longest_interrupt.store(EVERY, Ordering::Relaxed);
        }
    }
}

/// A stretch was longer than `known` says: it is the longest, or a trace is on or was until now.
#[inline(never)]
fn note_longer(known: &AtomicU64, longest: &Longest, ticks: u64, name: Name, place: u64) {
    if ticks as i64 > longest.ticks() as i64 {
        longest.replace(ticks, name, place);
    }
    // Relaxed: see above.
    if trace::is_on() {
        return;
    }
    know(known, longest.ticks().max(ticks));
}

/// From now on what is longer than this is looked at closely.
#[inline(always)]
fn know(known: &AtomicU64, ticks: u64) {
    known.store(ticks, Ordering::Relaxed);
    // Pairs with the barrier in `set_tracing`.
    barrier::full();
    if trace::is_on() {
        known.store(EVERY, Ordering::Relaxed);
    }
}

/// So many ticks as a value of an event.
fn value(ticks: u64) -> u32 {
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// Whether a stretch is longer than all before it.
#[inline(always)]
fn is_longer(began: u64, now: u64, longest: u64) -> bool {
    // Signed, because a processor may read the clock a little too early.
    !cfg!(feature = "uncounted") && now.wrapping_sub(began) as i64 > longest as i64
}

impl Core {
    /// A turn begins.
    #[inline(always)]
    pub(crate) fn begin_turn(&self, now: u64) {
        // Relaxed: this core alone writes it, and to others it is an estimate.
        self.open.turn[0].store(now, Ordering::Relaxed);
        #[cfg(feature = "traced")]
        if trace::is_on() {
            self.begin_traced_turn();
        }
    }

    /// The moment that is known is when the turn before ended. What lies between is the kernel's own.
    #[cfg(feature = "traced")]
    #[cold]
    #[inline(never)]
    fn begin_traced_turn(&self) {
        let now = clock::now();
        self.open.turn[0].store(now, Ordering::Relaxed);
        // Relaxed: this core alone writes it, but for who begins a trace and may have one stretch lost.
        let since = self.open.kernel_since.load(Ordering::Relaxed);
        if since != 0 {
            self.open.kernel_since.store(0, Ordering::Relaxed);
            // What was before an interrupt that came meanwhile is lost.
            let began = since.max(self.statistics.time.since());
            self.statistics.kernel.add(now.saturating_sub(began));
        }
    }

    /// While a trace is on: between two turns the core goes over from one activity to another.
    #[cfg(feature = "traced")]
    #[cold]
    #[inline(never)]
    pub(super) fn note_traced_activity(&self, before: Activity, activity: Activity, now: u64) {
        // Relaxed: as above.
        let since = self.open.kernel_since.load(Ordering::Relaxed);
        match (before, activity) {
            (Activity::Running, Activity::Running) => {}
            (Activity::Running, _) if since != 0 => {
                self.open.kernel_since.store(0, Ordering::Relaxed);
                self.statistics.kernel.add(now.saturating_sub(since));
            }
            (_, Activity::Running) => self.open.kernel_since.store(now, Ordering::Relaxed),
            _ => {}
        }
    }

    /// When the turn in progress began.
    pub(crate) fn turn_began_at(&self) -> u64 {
        self.open.turn[0].load(Ordering::Relaxed)
    }

    /// A turn follows another at once. What else counts from its beginning does not go on from one such turn to the next.
    #[inline(always)]
    pub(crate) fn begin_next_turn(&self, now: u64) {
        if !cfg!(feature = "uncounted") {
            self.begin_turn(now);
        }
    }

    /// The turn of a process is over, or suspended. By the core's loop, before another begins.
    #[inline(always)]
    pub(crate) fn note_turn(&self, process: &Header, now: u64, how: Kind, name: impl FnOnce() -> Name) {
        // Of the longest see `set_tracing`.
        // SAFETY: that is where the two lie.
        let [began, longest] =
            unsafe { pair::load::<{ offset_of!(Self, open.turn) }>(core::ptr::from_ref(self).cast()) };
        if is_longer(began, now, longest) {
            self.note_longer_turn(process, now, how, name());
        }
    }

    #[cold]
    #[inline(never)]
    fn note_longer_turn(&self, process: &Header, now: u64, how: Kind, name: Name) {
        // The clock of two processors may differ by a little.
        let ticks = now.saturating_sub(self.turn_began_at());
        let place = core::ptr::from_ref(process).addr() as u64;
        if trace::is_on() {
            trace::note_at(now, how, place, value(ticks), Some(name));
            #[cfg(feature = "traced")]
            self.open.kernel_since.store(now, Ordering::Relaxed);
            if ticks as i64 <= self.statistics.longest_turn.ticks() as i64 {
                return;
            }
        }
        note_longer(self.open.longest_turn(), &self.statistics.longest_turn, ticks, name, place);
    }

    /// The turn of a process was suspended, or has crashed: the flight recorder has that always.
    pub(crate) fn note_broken_turn(&self, process: &Header, now: u64, how: Kind, name: impl Fn() -> Name) {
        if trace::RECORDS && !trace::is_on() {
            let ticks = now.saturating_sub(self.turn_began_at());
            trace::note_at(now, how, core::ptr::from_ref(process).addr() as u64, value(ticks), Some(name()));
        }
        // Writes it down where a trace is on.
        self.note_turn(process, now, how, name);
    }

    /// A handler's work is done, on behalf of the code that was interrupted.
    #[inline(always)]
    pub(crate) fn note_interrupt(&self, name: Name, began: u64, now: u64) {
        // Relaxed: see `set_tracing`.
        if is_longer(began, now, self.open.longest_interrupt.load(Ordering::Relaxed)) {
            // Where the loop waits, it has interrupted nothing.
            let place = if self.waits.get() { 0 } else { place_in(StackBlock::current()) };
            self.note_longer_interrupt(name, now.saturating_sub(began), now, place);
        }
    }

    /// The same of a device's for which the loop has waited, and which has interrupted nothing.
    #[inline(always)]
    pub(crate) fn note_awaited_interrupt(&self, began: u64, now: u64) {
        if cfg!(feature = "uncounted") {
            return;
        }
        if trace::is_on() {
            return self.note_longer_interrupt(|| DEVICE, now.saturating_sub(began), now, 0);
        }
        let ticks = now.wrapping_sub(began);
        let longest = &self.open.awaited_interrupt;
        // Signed, as in `is_longer`.
        longest.set((longest.get() as i64).max(ticks as i64) as u64);
    }

    #[cold]
    #[inline(never)]
    fn note_longer_interrupt(&self, name: Name, ticks: u64, now: u64, place: u64) {
        let (known, longest) = (&self.open.longest_interrupt, &self.statistics.longest_interrupt);
        if trace::is_on() {
            trace::note_at(now, Kind::Interrupt, 0, value(ticks), Some(name));
            return note_longer(known, longest, ticks, name, place);
        }
        // Interrupts are masked: the loop writes it down.
        let new = &self.open.new_interrupt;
        if ticks > new.get() {
            new.set(ticks);
            self.open.new_interrupt_name.set(Some(name));
            self.open.new_interrupt_place.set(place);
        }
        know(known, longest.ticks().max(new.get()));
    }

    /// Writes down what interrupts have left. By the core's loop.
    #[inline(always)]
    pub(crate) fn note_interrupts(&self) {
        // Zero, both, where there was none.
        let awaited = self.open.awaited_interrupt.replace(0);
        // Relaxed: see `set_tracing`.
        let is_longer =
            awaited != 0 && is_longer(0, awaited, self.open.longest_interrupt.load(Ordering::Relaxed));
        if is_longer || self.open.new_interrupt.get() != 0 {
            self.note_new_interrupts(awaited);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_new_interrupts(&self, awaited: u64) {
        // An interrupt may write there, too.
        let were_masked = irq::mask();
        let longest = &self.statistics.longest_interrupt;
        let note = |ticks: u64, name: Name, place| {
            if ticks as i64 > longest.ticks() as i64 {
                longest.replace(ticks, name, place);
            }
        };
        note(awaited, || DEVICE, 0);
        let ticks = self.open.new_interrupt.replace(0);
        if let Some(name) = self.open.new_interrupt_name.get() {
            note(ticks, name, self.open.new_interrupt_place.get());
        }
        know(&self.open.longest_interrupt, longest.ticks());
        if !were_masked {
            // SAFETY: they were not masked before.
            unsafe { irq::enable() };
        }
    }

    /// Interrupts have been masked since then, by an interrupt or by the kernel. They are when this is called.
    #[inline(always)]
    pub(crate) fn begin_masked(&self, since: u64) {
        self.open.masked_at.set(since);
    }

    /// Since when they are, if that is known; otherwise zero. It is forgotten.
    #[inline(always)]
    pub(crate) fn take_masked(&self) -> u64 {
        self.open.masked_at.replace(0)
    }

    /// Interrupts are about to be unmasked, in a transition of this name. On the stack of `interrupted` lies what the masking interrupt
    /// has met.
    pub(crate) fn end_masked(&self, name: Name, interrupted: Option<&StackBlock>) {
        self.note_masked((self.take_masked(), clock::now()), name, interrupted);
    }

    /// As [`Self::end_masked`], of a stretch from the first moment to the second. What it has met is still suspended. Interrupts may be
    /// unmasked by now, in the core's loop, because none of them ends such a stretch there.
    pub(crate) fn note_masked(&self, (began, now): (u64, u64), name: Name, interrupted: Option<&StackBlock>) {
        let longest = &self.statistics.longest_transition;
        if began != 0 && is_longer(began, now, longest.ticks()) {
            longest.replace(now - began, name, interrupted.map_or(0, place_in));
        }
    }

    /// A preemption was requested that the code in `frame`, on the stack of `block`, has disabled: it is left to the end of that
    /// section.
    #[cold]
    pub(crate) fn note_postponed(&self, block: &StackBlock, frame: &Frame) {
        if block.preempt().is_noted_first() {
            self.open.postponed_at.set(clock::now());
            self.open.postponed_in.set(frame.place());
        }
    }

    /// The section has ended that [`Self::note_postponed`] has left it to, in a turn of `process`.
    #[cold]
    pub(crate) fn note_postponement(&self, process: &Header) {
        let (began, longest) = (self.open.postponed_at.get(), &self.statistics.longest_postponement);
        let now = clock::now();
        if is_longer(began, now, longest.ticks()) {
            longest.replace(now - began, process.vtable().name, self.open.postponed_in.get());
        }
    }
}

/// Where the code was interrupted that runs, or is suspended, on a stack.
fn place_in(block: &StackBlock) -> u64 {
    // SAFETY: the vectors have written it, and do not as long as interrupts are masked or the code is suspended.
    unsafe { (*block.saved()).place() }
}
