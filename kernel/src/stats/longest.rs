//! The longest of something that a core has seen, and where that was.
//!
//! How long, who and where belong together. So a reader looks twice at a version, which is odd while they are written, and tries again
//! if it has changed: a few instructions of a core that is not preempted there.

use crate::arch::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use crate::arch::clock;

/// Says who or what it was.
pub(crate) type Name = fn() -> &'static str;

/// The longest of something on one core. Written by that core alone, at one of its places, read by anyone.
pub struct Longest {
    version: AtomicU32,
    ticks: AtomicU64,
    /// A [`Name`], or null before the first.
    name: AtomicPtr<()>,
    place: AtomicU64,
}

/// What was the longest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// How long it was, in clock ticks.
    pub ticks: u64,
    /// Who or what it was.
    pub name: &'static str,
    /// A process's number, or the address of an instruction: see the field of [`CoreStatistics`](super::CoreStatistics).
    pub place: u64,
}

impl Stretch {
    /// How long it was, in nanoseconds.
    pub fn nanoseconds(&self) -> u64 {
        nanoseconds(self.ticks)
    }
}

/// How long so many clock ticks are, in nanoseconds. In words, because a division of more is a call, and long.
pub(super) fn nanoseconds(ticks: u64) -> u64 {
    let frequency = clock::frequency().max(1);
    let rest = (ticks % frequency).saturating_mul(1_000_000_000) / frequency;
    (ticks / frequency).saturating_mul(1_000_000_000).saturating_add(rest)
}

impl Longest {
    pub(super) const fn new() -> Self {
        Self {
            version: AtomicU32::new(0),
            ticks: AtomicU64::new(0),
            name: AtomicPtr::new(core::ptr::null_mut()),
            place: AtomicU64::new(0),
        }
    }

    /// How long it was. Its own core asks.
    #[inline(always)]
    pub(crate) fn ticks(&self) -> u64 {
        // Relaxed: written by this core.
        self.ticks.load(Ordering::Relaxed)
    }

    /// From now on this is the longest. Only its own core does this, and is not interrupted by another that does.
    #[cold]
    #[inline(never)]
    pub(crate) fn replace(&self, ticks: u64, name: Name, place: u64) {
        if cfg!(feature = "uncounted") {
            return;
        }
        let version = self.version.load(Ordering::Relaxed);
        // Relaxed, with a fence: who sees one of the values below sees, after its own fence, this version or a later one.
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.ticks.store(ticks, Ordering::Relaxed);
        self.name.store(name as *mut (), Ordering::Relaxed);
        self.place.store(place, Ordering::Relaxed);
        // Release: pairs with the acquire in `get`, whoever sees this version sees those values.
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// The longest so far; `None` if there was none.
    pub fn get(&self) -> Option<Stretch> {
        loop {
            // Acquire: pairs with the release of this version in `replace`.
            let version = self.version.load(Ordering::Acquire);
            let (ticks, place) = (self.ticks.load(Ordering::Relaxed), self.place.load(Ordering::Relaxed));
            let name = self.name.load(Ordering::Relaxed);
            // Acquire: pairs with the release fence in `replace`. Who has seen one of its values sees its version below.
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && version == self.version.load(Ordering::Relaxed) {
                // SAFETY: null, for which the option has room, or a name that `replace` has stored.
                let name = unsafe { core::mem::transmute::<*mut (), Option<Name>>(name) };
                return name.map(|name| Stretch { ticks, name: name(), place });
            }
            core::hint::spin_loop();
        }
    }
}

#[cfg(all(test, not(feature = "uncounted")))]
mod tests {
    use super::{Longest, Stretch};

    fn note(longest: &Longest, ticks: u64) {
        longest.replace(ticks, if ticks.is_multiple_of(2) { || "even" } else { || "odd" }, ticks);
    }

    #[test]
    fn what_is_noted_is_found() {
        let longest = Longest::new();
        assert_eq!(longest.get(), None);
        note(&longest, 4);
        assert_eq!(longest.get(), Some(Stretch { ticks: 4, name: "even", place: 4 }));
        note(&longest, 5);
        assert_eq!(longest.get(), Some(Stretch { ticks: 5, name: "odd", place: 5 }));
    }

    #[test]
    fn what_is_read_belongs_together() {
        let longest = Longest::new();
        std::thread::scope(|scope| {
            let write = scope
                .spawn(|| (1..if cfg!(miri) { 50 } else { 100_000 }).for_each(|ticks| note(&longest, ticks)));
            while !write.is_finished() {
                if let Some(Stretch { ticks, name, place }) = longest.get() {
                    assert_eq!((place, name), (ticks, if ticks.is_multiple_of(2) { "even" } else { "odd" }));
                }
            }
        });
    }
}
