//! The tests of the lock-free structures, as bodies that run anywhere.
//!
//! The hand-written and the portable primitives must pass the same tests, and the hand-written ones run
//! only on an Arm machine. So the bodies are here, and each harness brings its own parallelism: threads
//! on the host (`tests/queues.rs`), pinned processes in the booted kernel. A body panics when a promise is
//! broken. The promises are those that crossbeam-deque's tests ask of its deque (order, one consumer,
//! stampede, stress, destructors), and those of this project's other structures.

mod deque;
mod handshake;
mod items;
mod lists;
mod swap;

use alloc::vec::Vec;

use crate::arch::atomic::{AtomicBool, Ordering};
use crate::arch::cpu;

/// What each core does in a check; its argument is the core's number.
pub type Body<'a> = dyn Fn(usize) + Sync + 'a;

/// How a check gets its parallelism.
pub struct Cores<'a> {
    /// How many cores there are, at least 1.
    pub count: usize,
    /// How much to do: about this many operations on each core.
    pub work: usize,
    /// Where the pseudo-random choices start.
    pub seed: u64,
    /// Runs the body once on each core at the same time, with the numbers `0..count`, and returns when all
    /// have returned.
    pub run: &'a (dyn Fn(&Body) + Sync),
    /// Leaves the processor to others for a moment: there may be fewer processors than cores, and a core that spins may
    /// keep the one that it waits for from running.
    pub give_way: &'a (dyn Fn() + Sync),
}

impl Cores<'_> {
    /// For a loop that waits for another core.
    pub(crate) fn waiting(&self) -> Waiting<'_> {
        Waiting { looks: 0, give_way: self.give_way }
    }
}

/// Unsuccessful looks before the processor is left to others: longer than a core that runs at the same time takes, and
/// far shorter than a host's time slice.
const LOOKS: u32 = 1000;

/// A core that waits for another. With it a check takes as many steps on a busy host as on an idle one.
pub(crate) struct Waiting<'a> {
    looks: u32,
    give_way: &'a (dyn Fn() + Sync),
}

impl Waiting<'_> {
    /// Another look found nothing.
    pub(crate) fn again(&mut self) {
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS) {
            (self.give_way)();
        } else {
            cpu::relax();
        }
    }

    /// A look found something.
    pub(crate) fn is_over(&mut self) {
        self.looks = 0;
    }
}

/// A check: its name says what is promised.
pub struct Check {
    /// As `structure::promise`.
    pub name: &'static str,
    /// With fewer cores than this there is nothing to check.
    pub min_cores: usize,
    /// Panics when the promise is broken.
    pub body: fn(&Cores),
}

/// Every check, in the order to run them.
pub fn all() -> Vec<&'static Check> {
    [deque::ALL, lists::ALL, swap::ALL, handshake::ALL].into_iter().flatten().collect()
}

pub(crate) use crate::random::Random;

/// Ends the others' loops when it is dropped, also when this core's body panics.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        // Relaxed: the end of the run orders what is looked at after it.
        self.0.store(true, Ordering::Relaxed);
    }
}
