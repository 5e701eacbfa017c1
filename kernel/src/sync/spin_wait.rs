//! What a core does while it waits for another one that will be done in a moment: it looks again and again, and after many looks it sleeps
//! in between.
//!
//! A lock is held for a few hundred instructions. So who has looked for longer waits for a core that does not run: the host of a virtual
//! machine has suspended it, because it has fewer processors than the machine has cores. To look on keeps a processor from that core,
//! for as long as the host lets it: milliseconds. A core that sleeps gives its processor away. On a board it does not come to that.
//!
//! It is no queue: who comes to have what all wait for is chance.

use crate::arch::{clock, cpu, timer};

/// So many looks take longer than anything for which locks are held, some ten microseconds.
const LOOKS: u32 = 400;
/// What part of a second it sleeps before it looks again: 15 microseconds.
const SLEEPS_IN_A_SECOND: u64 = 1 << 16;

/// One wait, from its beginning.
#[derive(Default)]
pub struct SpinWait {
    looks: u32,
}

impl SpinWait {
    /// Between two looks.
    #[cold]
    #[inline(never)]
    pub fn pause(&mut self) {
        if self.looks < LOOKS {
            self.looks += 1;
            cpu::relax();
        } else {
            timer::sleep_at_most(clock::frequency() / SLEEPS_IN_A_SECOND);
        }
    }
}
