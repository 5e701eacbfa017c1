//! A device that interrupts the first core at a moment that is known beforehand: that core's second timer. Its interrupt takes the way
//! of any device's, and wakes a process by its waker, or sends a message to an actor.

use core::future::poll_fn;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Poll, Waker};

use magpie::actor::{Recipient, Signal};
use magpie::internals::arch::{clock, gic, second_timer};
use magpie::internals::sync::SpinLock;
use magpie::interrupt::{Interrupt, Line, Trigger};
use magpie::sched::ExternalSource;
use magpie::time::Instant;
use magpie_boot::claim;

/// Who waits for it. Set before it is armed, so the interrupt never meets the lock held.
static WAITING: SpinLock<Option<Waker>> = SpinLock::new(None);

/// A line that no device of the board has.
const LINE: Line = Line { number: 79, trigger: Trigger::Edge };
/// When that was made pending, in clock ticks, zero if it has not been yet. Where the device is to do something else, whether it has interrupted
/// since it was armed: [`ARMED`] or [`HAS_INTERRUPTED`].
static PENDING_SINCE: AtomicU64 = AtomicU64::new(ARMED);
const ARMED: u64 = u64::MAX - 1;
const HAS_INTERRUPTED: u64 = u64::MAX;

/// It has interrupted.
#[derive(Clone, Copy)]
pub struct Interrupted;

/// What it sends if no process waits.
static SIGNAL: Signal<Interrupted> = Signal::new();

/// The right to use it.
pub struct Device(ExternalSource);

impl Device {
    /// For a process that is pinned to the first core; `None` if something else has claimed a device.
    pub fn claim() -> Option<Self> {
        if !claim::claim(second_timer::INTERRUPT, on_interrupt) {
            return None;
        }
        gic::enable_own(second_timer::INTERRUPT);
        Some(Self(ExternalSource::new()))
    }

    /// Waits until it interrupts, at this moment. Returns when the caller has gone on: its first instruction reads the clock.
    pub async fn interrupts_at(&self, moment: Instant) -> Instant {
        let _keeps_the_system_alive = &self.0;
        let mut is_armed = false;
        poll_fn(|context| {
            let now = Instant::now();
            if !is_armed {
                is_armed = true;
                PENDING_SINCE.store(ARMED, Ordering::Relaxed);
                *WAITING.lock() = Some(context.waker().clone());
                second_timer::arm(moment.ticks());
                return Poll::Pending;
            }
            // Relaxed: stored on this core.
            if PENDING_SINCE.load(Ordering::Relaxed) == HAS_INTERRUPTED {
                Poll::Ready(now)
            } else {
                Poll::Pending
            }
        })
        .await
    }

    /// From now on it sends a message when it interrupts.
    pub fn sends_to(&self, recipient: Recipient<Interrupted>) {
        SIGNAL.send_to(recipient, Interrupted);
        // The benchmark before may have left one.
        let waiting = WAITING.lock().take();
        drop(waiting);
    }

    /// Has it interrupt at this moment. On the first core.
    pub fn arm(&self, moment: Instant) {
        second_timer::arm(moment.ticks());
    }
}

/// A line that is claimed as an application does it. It becomes pending in the handler of the device, at a moment that is noted there.
pub struct ClaimedLine {
    device: Device,
    interrupt: Interrupt,
}

impl ClaimedLine {
    /// As [`Device::claim`].
    pub fn claim() -> Option<Self> {
        Some(Self { device: Device::claim()?, interrupt: Interrupt::claim(LINE).ok()? })
    }

    /// Waits until the line interrupts, some time after this moment. How long after it became pending, in clock ticks; `None` if the claim has
    /// ended.
    pub async fn interrupts_after(&mut self, moment: Instant) -> Option<u64> {
        // Relaxed, here and below: all of it is on this core.
        PENDING_SINCE.store(0, Ordering::Relaxed);
        self.device.arm(moment);
        let waited = self.interrupt.wait().await;
        let now = clock::now();
        let since = PENDING_SINCE.swap(ARMED, Ordering::Relaxed);
        waited.ok().map(|()| now.saturating_sub(since))
    }
}

/// In the interrupt's handler.
fn on_interrupt() {
    second_timer::disarm();
    if PENDING_SINCE.load(Ordering::Relaxed) < ARMED {
        PENDING_SINCE.store(clock::now(), Ordering::Relaxed);
        return gic::set_pending(LINE.number);
    }
    PENDING_SINCE.store(HAS_INTERRUPTED, Ordering::Relaxed);
    match &*WAITING.lock() {
        Some(waiting) => waiting.wake_by_ref(),
        None => SIGNAL.raise(),
    }
}
