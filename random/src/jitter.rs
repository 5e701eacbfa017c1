//! How long the same work takes, again and again: the seed where there is nothing better.
//!
//! The work is the same instructions each time, so what varies is the machine: caches, other cores, an emulator's host. Where nothing varies, as in an emulator that
//! counts instructions, that is noticed, and nothing is claimed.

use core::hint::black_box;

use magpie::time::Instant;

/// How often the work is done.
pub const ROUNDS: usize = 512;
/// How much work it is: some thousand instructions, so that the clock moves.
const STEPS: u64 = 1024;
/// In so many rounds at least, it has to take another time than usual.
const LEAST_VARIED: usize = ROUNDS / 4;

/// What each round took, in ticks of the clock; what does not fit is cut.
pub fn measure() -> [u16; ROUNDS] {
    let mut last = Instant::now().ticks();
    core::array::from_fn(|round| {
        let mut number = black_box(round as u64);
        for _ in 0..STEPS {
            number = black_box(number.wrapping_mul(0xd134_2543_de82_ef95).rotate_left(17));
        }
        let now = Instant::now().ticks();
        let took = now.wrapping_sub(last);
        last = now;
        took as u16
    })
}

/// Whether they vary, by more than the tick that a clock of ticks is always off by.
pub fn varies(took: &[u16; ROUNDS]) -> bool {
    let mut sorted = *took;
    sorted.sort_unstable();
    let usual = sorted[ROUNDS / 2];
    took.iter().filter(|took| took.abs_diff(usual) >= 2).count() >= LEAST_VARIED
}

#[cfg(test)]
mod tests {
    use super::{ROUNDS, varies};

    #[test]
    fn what_comes_again_is_no_jitter() {
        assert!(!varies(&[12; ROUNDS]));
        // A clock of 62.5 MHz, and 200 ns: always 12 or 13 ticks.
        assert!(!varies(&core::array::from_fn(|round| 12 + (round % 2) as u16)));
        // An interrupt now and then.
        assert!(!varies(&core::array::from_fn(|round| if round % 50 == 0 { 900 } else { 12 })));
        assert!(varies(&core::array::from_fn(|round| (round * 7919 % 61) as u16)));
    }
}
