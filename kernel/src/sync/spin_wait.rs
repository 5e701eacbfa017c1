//! What a core does while it waits for another one that will be done soon: it looks again and again, and after many looks it sleeps
//! in between.
//!
//! Nearly all locks are held for a few hundred instructions at most. So who has looked for longer mostly waits for a core that does not run: the host
//! of a virtual machine has suspended it, because it has fewer processors than the machine has cores. To look on keeps a processor from that
//! core, for as long as the host lets it: milliseconds. A core that sleeps gives its processor away. On a board it comes to that where a line of
//! output is written, much memory is zeroed under a lock, or an application's critical section is long; there it saves power.
//!
//! It is no queue: who comes to have what all wait for is chance. So who has slept looks some more times before it sleeps again, or it would
//! meet the moments in which a lock is free far less often than those who have just come.

use crate::arch::{clock, cpu, timer};

/// So many looks take some ten microseconds, longer than most locks are held.
const LOOKS: u32 = 400;
/// And so many after each sleep.
const LOOKS_AGAIN: u32 = 32;
/// What part of a second it sleeps: 15 microseconds.
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
        cpu::relax();
        self.looks += 1;
        if self.looks > LOOKS {
            self.looks = LOOKS - LOOKS_AGAIN;
            timer::sleep_at_most(clock::frequency() / SLEEPS_IN_A_SECOND);
        }
    }
}
