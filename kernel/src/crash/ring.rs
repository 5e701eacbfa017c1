//! The last records.
//!
//! They lie in memory of their own, under a lock of the kernel's: held, with preemption disabled, for as long as a record takes to be
//! copied in or out. So who reads gets a whole record or none, a crash never waits for the application's code, and numbers are in the order of
//! what is kept, without a gap. Interrupts are not masked for it: a reader that is interrupted, or a process that ends, is not
//! preempted, and one that runs out of stack goes on in its reserve until the lock is free.
//!
//! A handler of a fault or of an interrupt takes the lock only when it ends a process: that process had preemption enabled, so it
//! did not hold it.

use core::mem::MaybeUninit;

use super::record::{CrashRecord, Remembered};
use crate::arch::CoreId;
use crate::sync::{CrashNumber, SpinLock};

/// Records that are kept.
const KEPT: usize = 32;

struct Ring {
    /// Crashes so far.
    total: u64,
    /// Crash n is at n modulo `KEPT`: of the crashes so far the last that have the same place there.
    kept: [MaybeUninit<CrashRecord>; KEPT],
}

// What is written down of the dead looks like pointers, and keeps nothing alive.
#[cfg_attr(target_os = "none", unsafe(link_section = ".bss.no_pointers"))]
static RING: SpinLock<Ring> = SpinLock::new(Ring { total: 0, kept: [const { MaybeUninit::uninit() }; KEPT] });

impl Ring {
    fn place(number: u64) -> usize {
        (number % KEPT as u64) as usize
    }

    fn note(&mut self, record: impl FnOnce(CrashNumber) -> CrashRecord) -> CrashNumber {
        self.total += 1;
        let number = CrashNumber::new(self.total);
        self.kept[Self::place(self.total)].write(record(number));
        number
    }

    fn get(&self, number: u64) -> Option<CrashRecord> {
        let is_kept = number != 0 && number <= self.total && self.total - number < KEPT as u64;
        // SAFETY: a crash with this number has happened, and none since that has the same place: `note` wrote it there.
        is_kept.then(|| unsafe { self.kept[Self::place(number)].assume_init() })
    }
}

/// Writes a crash down. `names`: the process's and the actor's.
pub(crate) fn note(
    core: CoreId,
    names: (&'static str, Option<&'static str>),
    crash: &Remembered,
) -> CrashNumber {
    RING.lock().note(|number| CrashRecord::new(number, core, names, crash))
}

/// How many crashes there were: the number of the last one.
///
/// ```
/// use magpie::crash;
///
/// assert_eq!(crash::total(), crash::last().map_or(0, |last| last.number.get()));
/// ```
pub fn total() -> u64 {
    RING.lock().total
}

/// The record of the crash with this number, if it is one of the last 32.
///
/// ```
/// use magpie::crash;
///
/// if let Some(last) = crash::last() {
///     assert!(crash::record(last.number).is_some_and(|record| record.number == last.number));
/// }
/// ```
pub fn record(number: CrashNumber) -> Option<CrashRecord> {
    RING.lock().get(number.get())
}

/// The record of the last crash, if there was one.
///
/// ```
/// use magpie::crash;
///
/// assert!(crash::last().is_none_or(|last| !last.name().is_empty()));
/// ```
pub fn last() -> Option<CrashRecord> {
    let ring = RING.lock();
    ring.get(ring.total)
}

/// The records of the last crashes, up to 32, the oldest first. One that is overwritten by a new one before its turn comes is left out.
///
/// ```
/// use magpie::crash::{self, CrashKind};
///
/// let overflows = crash::records().filter(|record| record.kind == CrashKind::StackOverflow);
/// assert!(overflows.count() <= 32);
/// ```
pub fn records() -> impl Iterator<Item = CrashRecord> {
    let total = total();
    let first = total.saturating_sub(KEPT as u64) + 1;
    (first..=total).filter_map(|number| record(CrashNumber::new(number)))
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Ring};
    use crate::arch::CoreId;
    use crate::crash::{CrashKind, CrashRecord, Message, Remembered, Scene, Trace};
    use core::mem::MaybeUninit;

    fn crash(pc: usize) -> Remembered {
        let scene = Scene { kind: CrashKind::Panic, pc, address: None, trace: Trace::EMPTY };
        Remembered { scene, message: Message::new() }
    }

    #[test]
    fn the_last_are_kept_and_no_others() {
        let mut ring = Ring { total: 0, kept: [const { MaybeUninit::uninit() }; KEPT] };
        assert!(ring.get(0).is_none() && ring.get(1).is_none());
        for number in 1..100_u64 {
            let noted = ring.note(|number| {
                CrashRecord::new(number, CoreId::BOOT, ("process", None), &crash(number.get() as usize * 4))
            });
            assert_eq!(noted.get(), number);
            for asked in 0..=number + KEPT as u64 {
                let kept = ring.get(asked).map(|record| (record.number.get(), record.pc as u64));
                let is_kept = asked >= 1 && asked <= number && asked + KEPT as u64 > number;
                assert_eq!(kept, is_kept.then_some((asked, asked * 4)), "{asked} after {number}");
            }
        }
        assert!(ring.get(u64::MAX).is_none());
    }
}
