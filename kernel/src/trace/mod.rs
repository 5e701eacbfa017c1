//! What has happened on each core, and when: the last events, in a ring for each.
//!
//! Two kinds of events are told apart by what they cost. What is rare anyway (a turn that was suspended, resumed or crashed, a theft, a core
//! that goes to sleep) is always written down: that is the **flight recorder**, which a panic of the kernel, the watchdog
//! and the commands `dump` and `crashes` print. What is frequent (each turn, wake-up, spawn, interrupt, gulp) is written down while a trace is [on](is_on), in the same rings.
//!
//! `event.rs` says what an event is, `ring.rs` how a core writes and others read, `frame.rs` how events go over the serial line, `recent.rs`
//! how they are shown as text. Who drains the rings is boot's. The flight recorder is in every image but one with the feature `uncounted`; the
//! rest in one with the feature `traced`.

pub(crate) mod event;
pub(crate) mod frame;
#[cfg(target_os = "none")]
mod recent;
pub(crate) mod ring;

use crate::arch::atomic::{AtomicBool, Ordering};
use crate::arch::{CoreId, MAX_CORES, clock, percpu};
use crate::stats::Name;
use crate::sync::PreemptGuard;

pub(crate) use event::Kind;
#[cfg(target_os = "none")]
pub(crate) use recent::{tell, tell_recent};
pub(crate) use ring::{Reading, Ring};

/// Whether there is a flight recorder.
pub(crate) const RECORDS: bool = !cfg!(feature = "uncounted");
/// Whether there can be a trace as well.
const TRACES: bool = RECORDS && cfg!(feature = "traced");

/// Events of a core that are kept. With traces 8 KiB: so many that a sender who comes round every 2 ms rarely misses some. Otherwise 2 KiB.
#[doc(hidden)]
pub const KEPT: usize = if TRACES { 256 } else { 64 };

// What is written down of the dead looks like pointers, and keeps nothing alive.
#[cfg_attr(target_os = "none", unsafe(link_section = ".bss.no_pointers"))]
static RINGS: [Ring<KEPT>; MAX_CORES] = [const { Ring::new() }; MAX_CORES];

static ON: AtomicBool = AtomicBool::new(false);

/// Whether frequent events, and [marks](mark), are written down.
///
/// ```
/// # fn expensive_to_find_out() -> u32 { 3 }
/// use magpie::trace;
///
/// if trace::is_on() {
///     trace::mark(1, expensive_to_find_out());
/// }
/// ```
#[inline(always)]
pub fn is_on() -> bool {
    // Relaxed: a switch. Who needs more has a barrier.
    TRACES && ON.load(Ordering::Relaxed)
}

/// Switches that on or off; the scheduler's part is in `sched/cores/longest.rs`.
pub(crate) fn set_on(on: bool) {
    // Relaxed: as above.
    ON.store(on && TRACES, Ordering::Relaxed);
}

/// The events of a core.
#[doc(hidden)]
pub fn ring(core: CoreId) -> &'static Ring<KEPT> {
    &RINGS[core.index()]
}

/// Writes an event of this core down, whether a trace is on or not. `subject` is whom it is about: a process's number, as a rule.
///
/// The caller has disabled preemption. Its interrupts may write events, too.
#[inline(always)]
pub(crate) fn note(kind: Kind, subject: u64, value: u32, name: Option<Name>) {
    note_at(clock::now(), kind, subject, value, name);
}

/// The same for a moment that is known.
#[inline(always)]
pub(crate) fn note_at(at: u64, kind: Kind, subject: u64, value: u32, name: Option<Name>) {
    if RECORDS {
        write(at, kind, subject, value, name);
    }
}

/// The same while a trace is on, out of the way of when it is not.
#[inline(always)]
pub(crate) fn note_if_on(kind: Kind, subject: u64, value: u32, name: Option<Name>) {
    if is_on() {
        note_aside(kind, subject, value, name);
    }
}

#[cold]
#[inline(never)]
fn note_aside(kind: Kind, subject: u64, value: u32, name: Option<Name>) {
    write(clock::now(), kind, subject, value, name);
}

/// Once in an image, because that is short, and events are rare or wanted.
#[inline(never)]
fn write(at: u64, kind: Kind, subject: u64, value: u32, name: Option<Name>) {
    // A core's number is less than this, which the compiler does not know.
    if let Some(ring) = RINGS.get(percpu::core_number()) {
        ring.write(event::encode(at, kind, subject, value, name));
    }
}

/// Writes down something of the application's, with a number and a value that it chooses, if a trace is on. The host tool shows it as an instant on
/// the core's track.
///
/// ```
/// use magpie::trace;
///
/// // The third request, of 512 bytes.
/// trace::mark(3, 512);
/// ```
pub fn mark(number: u64, value: u32) {
    if is_on() {
        let _here = PreemptGuard::new();
        note(Kind::Mark, number, value, None);
    }
}
