//! What a future waits with: a timer in memory of its own, armed again and again.
//!
//! A timer has an allocation of its own, which the future owns: its queue links it, and a future may lie in
//! memory that a crash gives back without dropping anything (see `sched::spawn::task`). When a process crashes, the timers that
//! would wake it are taken out of their queues (`timers/owned.rs`); their memory stays, because the future may belong
//! to another process by now. That process arms the timer for itself.
//!
//! **Without memory** for its timer a future asks to be polled again at once, until there is some or its moment has come.
//! So it is never early and is not lost, but its process uses up its turns and counts as work meanwhile.

use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use super::instant::Instant;
use super::timers::lead;
use super::timers::owned::OwnedTimers;
use super::timers::per_core::{self, Checked};
use super::timers::timer::Timer;
use crate::sched;
use crate::sync::keep_waker;

/// Waits for one moment after the other.
pub(super) struct Alarm {
    background: bool,
    /// From the first poll before a moment on.
    armed: Option<Armed>,
}

impl Alarm {
    /// One whose timer counts as work, unless it is in the background.
    pub(super) const fn new(background: bool) -> Self {
        Self { background, armed: None }
    }

    /// Whether `moment` has come; if not, the context's waker is woken when it does. Until it has come, always the same is
    /// asked for.
    #[inline(always)]
    pub(super) fn poll(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()> {
        if let Some(armed) = &mut self.armed
            && armed.is_awaited
            && armed.has_fired()
        {
            // What follows its moment is short.
            armed.is_awaited = false;
            lead::hold_until(moment.ticks());
            return Poll::Ready(());
        }
        self.wait(moment, context)
    }

    #[inline(never)]
    fn wait(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()> {
        if let Some(armed) = &mut self.armed
            && armed.is_awaited
        {
            match armed.check(context.waker()) {
                Checked::Waits => return Poll::Pending,
                Checked::Fired => {
                    armed.is_awaited = false;
                    lead::hold_until(moment.ticks());
                    return Poll::Ready(());
                }
                Checked::TakenOut => armed.is_awaited = false,
            }
        }
        if Instant::now() >= moment {
            return Poll::Ready(());
        }
        if !self.arm(moment, context.waker()) {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Whether there was memory for it.
    fn arm(&mut self, moment: Instant, waker: &Waker) -> bool {
        let Some(kept) = keep_waker(waker) else { return false };
        let armed = match &mut self.armed {
            Some(armed) => armed,
            None => match Armed::new(self.background) {
                Some(armed) => self.armed.insert(armed),
                None => return false,
            },
        };
        armed.arm(moment, waker, kept);
        true
    }
}

/// The list of the timers that would wake the process that `waker` wakes, if it wakes one.
fn owner_of(waker: &Waker) -> Option<NonNull<OwnedTimers>> {
    sched::timers_of(waker).map(NonNull::from)
}

/// A timer, in memory of its own. Dropped, it is taken out and freed.
struct Armed {
    timer: NonNull<Timer>,
    /// The core in whose queue it is, or was last.
    core: usize,
    /// It may be in that queue: it was armed, and nobody has seen yet that it has left.
    is_awaited: bool,
}

// SAFETY: the timer is touched under its queue's lock only, until it was seen to have left it.
unsafe impl Send for Armed {}
// SAFETY: as above; and the lock makes one caller at a time of several.
unsafe impl Sync for Armed {}

impl Armed {
    /// A timer that is not armed yet; `None` without memory.
    fn new(background: bool) -> Option<Self> {
        Some(Self { timer: per_core::make(background)?, core: 0, is_awaited: false })
    }

    /// Arms it, not being awaited, to wake `waker`, as which `kept` may be kept.
    fn arm(&mut self, moment: Instant, waker: &Waker, kept: Waker) {
        debug_assert!(!self.is_awaited, "a timer that waits was armed again");
        // SAFETY: the timer is in no queue, so it is this value's alone. It does not move, and is given back
        // in `drop` only, after it was taken out. A crash frees nothing.
        unsafe {
            let timer = &mut *self.timer.as_ptr();
            timer.waker = Some(kept);
            timer.urgent = sched::priority_of(waker).is_urgent();
            timer.owner = owner_of(waker);
            let lead = sched::lead(timer.urgent);
            self.core = per_core::arm(self.timer, lead::armed_for(moment.ticks(), lead));
        }
        self.is_awaited = true;
    }

    /// Whether it has fired. It was armed.
    #[inline(always)]
    fn has_fired(&self) -> bool {
        // SAFETY: it stays until it is given back; the state is atomic, and no more of it is referred to.
        unsafe { &(*self.timer.as_ptr()).state }.has_fired()
    }

    /// Whether it has fired; if not, `waker` is woken when it does.
    fn check(&self, waker: &Waker) -> Checked {
        // SAFETY: armed on that core; the list is in the process that the waker keeps.
        unsafe { per_core::check(self.timer, self.core, waker, || owner_of(waker)) }
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        // SAFETY: if it is awaited it was armed on that core. It is in no queue afterwards, so the memory is this value's
        // alone; it came from `make`.
        unsafe {
            if self.is_awaited {
                per_core::cancel(self.timer, self.core);
            }
            per_core::give_back(self.timer);
        }
    }
}
