//! Interrupts that are lost, doubled and late on purpose, for the suite `drivers`: of all devices, for as long as somebody has asked for it.
//!
//! What is lost here is lost to the driver alone: it is not told, and the device, whose interrupt nobody acknowledges, does not interrupt again.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::time::{Sleep, sleep};

// Each is a number by itself: nothing else is read by it.
static TO_LOSE: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);
static TO_DOUBLE: AtomicU64 = AtomicU64::new(0);
static DOUBLED: AtomicU64 = AtomicU64::new(0);
static LATE_BY: AtomicU64 = AtomicU64::new(0);
static LATE: AtomicU64 = AtomicU64::new(0);

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misled {
    /// Interrupts that a driver was not told.
    pub lost: u64,
    /// Interrupts that it was told twice.
    pub doubled: u64,
    /// Interrupts that it was told later.
    pub late: u64,
}

/// From now on the next `lose` interrupts are lost, the next `double` after those come twice, and all that are not lost come later by that, until this is called again. What was done so far.
pub fn mislead(lose: u64, double: u64, late_by: Duration) -> Misled {
    TO_LOSE.store(lose, Ordering::Relaxed);
    TO_DOUBLE.store(double, Ordering::Relaxed);
    LATE_BY.store(late_by.as_micros() as u64, Ordering::Relaxed);
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    Misled { lost: count(&LOST), doubled: count(&DOUBLED), late: count(&LATE) }
}

/// Takes one of those that are to be treated so.
fn take(left: &AtomicU64, done: &AtomicU64) -> bool {
    let took = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    if took {
        done.fetch_add(1, Ordering::Relaxed);
    }
    took
}

/// What becomes of the interrupts of one device.
#[derive(Default)]
pub(super) struct Misleading {
    /// One has come, which is to be told then.
    late: Option<Sleep>,
    /// The last one is told once more.
    again: bool,
}

impl Misleading {
    /// Whether the last one is to be told once more, which this does.
    pub(super) fn takes_again(&mut self) -> bool {
        core::mem::take(&mut self.again)
    }

    /// One has come: whether the driver is told, perhaps later.
    pub(super) fn comes(&mut self) -> bool {
        if take(&TO_LOSE, &LOST) {
            return false;
        }
        self.again = take(&TO_DOUBLE, &DOUBLED);
        let late_by = LATE_BY.load(Ordering::Relaxed);
        if late_by > 0 {
            LATE.fetch_add(1, Ordering::Relaxed);
            self.late = Some(sleep(Duration::from_micros(late_by)));
        }
        true
    }

    /// Waits until what has come is to be told.
    pub(super) async fn tell(&mut self) {
        if let Some(late) = &mut self.late {
            late.await;
        }
        self.late = None;
    }

    /// Whether one waits to be told.
    pub(super) fn is_late(&self) -> bool {
        self.late.is_some()
    }
}
