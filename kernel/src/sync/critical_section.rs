//! The kernel's implementation of the crate `critical-section`, for libraries that know no kernel: `embassy-sync` and others. An image
//! whose application uses none contains none of it but for two questions on the way of a crash.
//!
//! A section
//! 1. masks interrupts on its core, so no handler can wait for it there;
//! 2. disables preemption: what it wakes may be urgent, and a preemption would leave the section to whatever else runs on this core;
//! 3. takes the one lock of all cores, which a core may enter again.
//!
//! From 1 on nothing else runs on the core, so the core's block stands for the section. Whoever finds the lock taken takes 2 and 1
//! back before it tries again: it waits as it was called, may be interrupted and preempted, and another's section makes no core deaf.
//! Only who was called with interrupts masked, a handler, waits so; the holder is on another core, and its section goes on, because it
//! waits for nobody.
//!
//! Leaving is the reverse: the lock, interrupts, preemption, which happens there if it has become due.
//!
//! A process that crashes in a section ends alone: the section ends with it (`sched/run/crash.rs`), as it would in a thread that
//! unwinds. What is guarded may be half changed; a `RefCell` there stays borrowed.
//!
//! On the host a thread stands in for a core, and for itself if it is none; there is nothing to mask.

use critical_section::{Impl, RawRestoreState, set_impl};

use super::section_lock::{Entered, SectionLock};
use super::{PreemptGuard, SpinWait};
use crate::arch::{irq, percpu};

/// Of all cores.
static LOCK: SectionLock = SectionLock::new();

/// The restore state: interrupts were unmasked.
const WAS_UNMASKED: RawRestoreState = 0;
/// Interrupts were masked.
const WAS_MASKED: RawRestoreState = 1;
/// The core was in the section already.
const WAS_INSIDE: RawRestoreState = 2;

struct Section;
set_impl!(Section);

// SAFETY: from `acquire` to the matching `release` nothing else runs on the core, and the lock keeps out other cores; what one section
// wrote the next sees, by the lock's ordering.
unsafe impl Impl for Section {
    unsafe fn acquire() -> RawRestoreState {
        let mut wait = SpinWait::default();
        loop {
            let was_masked = irq::mask();
            let here = PreemptGuard::new();
            match LOCK.enter(percpu::holder()) {
                Some(Entered::First) => {
                    here.keep();
                    return if was_masked { WAS_MASKED } else { WAS_UNMASKED };
                }
                // The outermost section has masked and disabled, for this one too.
                Some(Entered::Again) => return WAS_INSIDE,
                None => {}
            }
            if !was_masked {
                // SAFETY: they were unmasked, and this section has not begun.
                unsafe { irq::enable() };
            }
            drop(here);
            wait.pause();
        }
    }

    unsafe fn release(state: RawRestoreState) {
        if state != WAS_INSIDE {
            LOCK.leave(Entered::First);
            if state == WAS_UNMASKED {
                // SAFETY: they were unmasked when the section began, which is over.
                unsafe { irq::enable() };
            }
            // SAFETY: kept when the section began, on this stack, because nobody could be preempted since.
            drop(unsafe { PreemptGuard::kept() });
        }
    }
}

/// Whether the caller, which has preemption disabled, is in a section.
#[inline(always)]
pub(crate) fn is_inside() -> bool {
    LOCK.is_held_by(percpu::holder())
}

/// Ends the section that the caller is in, if it is in one, for code that does not go on: preemption stays disabled.
///
/// # Safety
/// Preemption is disabled, and the code that began the section will not go on.
#[inline(never)]
pub(crate) unsafe fn abandon() {
    if is_inside() {
        LOCK.leave(Entered::First);
    }
}
