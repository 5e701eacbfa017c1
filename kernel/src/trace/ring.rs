//! The last events of one core, written by that core and read by any.
//!
//! ```text
//!   writer                                      reader of event n
//!   ──────                                      ─────────────────
//!   n: the next number, taken by a read and     n is less than the next number, and not too old
//!      a write that nothing comes between
//!   stamp of the slot: being written            stamp is that of n       acquire
//!   fence, release                              the words
//!   the words                                   fence, acquire
//!   stamp: that of n           release          stamp is still that of n
//! ```
//!
//! A writer may be interrupted at any point by an interrupt of its own core that writes events, too. Each takes a number of its own, so
//! they write to different slots, as long as the ring is longer than what interrupts write meanwhile. Until the interrupted one has
//! gone on, its slot has another stamp, and a reader stops there.
//!
//! Nobody waits for a reader: what it has not read in time is overwritten. It sees that by the numbers, and knows how many were lost.

use crate::arch::atomic::{AtomicU64, Ordering, fence};

/// Words of an event.
pub const WORDS: usize = 3;
/// In the place of a stamp: being written, or never yet.
const WRITING: u64 = 0;

struct Slot {
    /// The number of the event in it, and one.
    stamp: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// The last `N` events of a core.
#[repr(align(128))]
pub struct Ring<const N: usize> {
    slots: [Slot; N],
    /// The number of the next event.
    next: AtomicU64,
}

/// What is found in the place of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Its words.
    Words([u64; WORDS]),
    /// It was overwritten: the oldest that may be there is the one with this number.
    Overwritten(u64),
    /// It has not happened, or is being written.
    NotYet,
}

impl<const N: usize> Ring<N> {
    /// An empty one.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        const { assert!(N.is_power_of_two()) };
        Self {
            slots: [const { Slot { stamp: AtomicU64::new(WRITING), words: [const { AtomicU64::new(0) }; WORDS] } };
                N],
            next: AtomicU64::new(0),
        }
    }

    /// An empty one.
    #[cfg(loom)]
    pub fn new() -> Self {
        let word = |_| AtomicU64::new(0);
        Self {
            slots: core::array::from_fn(|_| Slot {
                stamp: AtomicU64::new(WRITING),
                words: core::array::from_fn(word),
            }),
            next: AtomicU64::new(0),
        }
    }

    /// Writes the next event. Only the ring's own core does this, with preemption disabled.
    #[inline(always)]
    pub fn write(&self, words: [u64; WORDS]) {
        // Relaxed: nothing is told by it. One step, because an interrupt may come that writes, too.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let slot = &self.slots[number as usize % N];
        // Relaxed, with a fence: who sees one of the words below sees, after its own fence, this stamp or a later one.
        slot.stamp.store(WRITING, Ordering::Relaxed);
        fence(Ordering::Release);
        for (place, word) in slot.words.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        // Release: pairs with the acquire in `read`, whoever sees this stamp sees those words.
        slot.stamp.store(number + 1, Ordering::Release);
    }

    /// How many events there were.
    pub fn written(&self) -> u64 {
        // Relaxed: an estimate, which `read` makes sure of.
        self.next.load(Ordering::Relaxed)
    }

    /// The event with this number.
    pub fn read(&self, number: u64) -> Reading {
        let next = self.written();
        if number >= next {
            return Reading::NotYet;
        }
        if next - number > N as u64 {
            return Reading::Overwritten(next - N as u64);
        }
        let slot = &self.slots[number as usize % N];
        // Acquire: pairs with the release of this stamp in `write`.
        let stamp = slot.stamp.load(Ordering::Acquire);
        let words = core::array::from_fn(|index| slot.words[index].load(Ordering::Relaxed));
        // Acquire: pairs with the release fence in `write`. Who has seen a word of a later event sees its stamp below.
        fence(Ordering::Acquire);
        if stamp == number + 1 && slot.stamp.load(Ordering::Relaxed) == stamp {
            return Reading::Words(words);
        }
        if stamp > number + 1 { Reading::Overwritten(number + 1) } else { Reading::NotYet }
    }
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Reading, Ring};

    #[test]
    fn the_last_are_there_and_what_is_lost_is_known() {
        let ring = Ring::<4>::new();
        assert_eq!(ring.read(0), Reading::NotYet);
        for number in 0..10 {
            ring.write([number, number, number]);
            assert_eq!(ring.read(number), Reading::Words([number; 3]));
            assert_eq!(ring.read(number + 1), Reading::NotYet);
        }
        assert_eq!(ring.read(0), Reading::Overwritten(6));
        assert_eq!((6..10).filter(|n| ring.read(*n) == Reading::Words([*n; 3])).count(), 4);
    }

    #[test]
    fn what_is_read_belongs_together() {
        let ring = Ring::<4>::new();
        let most = if cfg!(miri) { 100 } else { 100_000 };
        std::thread::scope(|scope| {
            scope.spawn(|| (0..most).for_each(|number| ring.write([number; 3])));
            let (mut at, mut read, mut lost) = (0, 0, 0);
            while at < most {
                match ring.read(at) {
                    Reading::Words(words) => {
                        assert_eq!(words, [at; 3]);
                        (at, read) = (at + 1, read + 1);
                    }
                    Reading::Overwritten(oldest) => {
                        assert!(oldest > at, "no progress");
                        lost += oldest - at;
                        at = oldest;
                    }
                    Reading::NotYet => core::hint::spin_loop(),
                }
            }
            assert_eq!(read + lost, most);
        });
    }
}
