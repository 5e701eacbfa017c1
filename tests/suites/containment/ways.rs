//! The ways in which something crashes here, and when.

use core::hint::black_box;

use magpie::sched::{self, Setting};
use magpie::time::Instant;

/// How something crashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Panic,
    Overflow,
    Fault,
}

impl Way {
    pub const ALL: [Self; 3] = [Self::Panic, Self::Overflow, Self::Fault];

    /// Crashes.
    pub fn crash(self) -> u64 {
        match self {
            Self::Panic if black_box(true) => panic!("on purpose"),
            Self::Panic => 0,
            Self::Overflow => descend(black_box(0)),
            Self::Fault => {
                let nowhere = black_box(8_usize) as *const u64;
                // SAFETY: deliberately not: nothing is mapped there, and who reads it is to be ended for it.
                unsafe { nowhere.read_volatile() }
            }
        }
    }
}

fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if black_box(depth) == u64::MAX { 0 } else { descend(depth + 1) + frame[(depth % 64) as usize] }
}

/// Runs for several slices, so that it is suspended if anything waits.
pub fn linger() {
    let began = Instant::now();
    let several = core::time::Duration::from_micros(4 * sched::setting(Setting::SliceMicroseconds));
    while began.elapsed() < several {
        core::hint::spin_loop();
    }
}
