//! The stretches in which preemption is disabled, from the addresses that each core executes.
//!
//! Which count is the running stack's follows from what the core does: a section counts up and down, a turn begins with zero, and the
//! core's loop has one. Two kinds are told apart: a *section* of what runs in a turn, and the *loop* between two turns, or between a
//! turn and a wait. What begins in an interrupt's handler is none: interrupts are masked there.

use super::code::{Code, Does};
use super::count::Counts;
use super::stretches::{Found, Open};

/// What is known of a core.
#[derive(Default)]
struct Core {
    /// The count of the running stack; not known before the core's first turn.
    count: Option<u32>,
    /// What it has executed last.
    last: Option<u64>,
    /// The stretch in progress, if it is of interest, and whether it is the loop's.
    open: Option<(Open, bool)>,
}

/// What a trace has come to so far.
pub struct Sections<'a> {
    code: &'a Code,
    cores: Vec<Core>,
    /// Of what runs in turns.
    pub in_turns: Found<'a>,
    /// Of the loops.
    pub in_loops: Found<'a>,
    /// How often a section ended that had not begun.
    pub not_understood: u64,
    /// Where that was first.
    pub first_not_understood: Option<u64>,
}

impl<'a> Sections<'a> {
    /// Nothing yet, for so many cores.
    pub fn new(code: &'a Code, cores: usize) -> Self {
        Self {
            code,
            cores: (0..cores).map(|_| Core::default()).collect(),
            in_turns: Found::new(code),
            in_loops: Found::new(code),
            not_understood: 0,
            first_not_understood: None,
        }
    }

    /// A core executes the instruction at an address, with interrupts masked or not.
    pub fn take(&mut self, number: usize, address: u64, is_masked: bool) {
        let Some(core) = self.cores.get_mut(number) else { return };
        if let Some((open, is_loop)) = &mut core.open {
            open.add(address);
            if *is_loop && matches!(self.code.does(address), Does::Wait | Does::Doze) {
                // What follows is another stretch.
                self.in_loops.close(open, address);
                *open = Open::default();
            }
        }
        let counts = self.code.counts(address);
        // No store follows itself: the emulator has begun it, was interrupted, and has begun it again.
        let is_repeated = core.last.replace(address) == Some(address);
        if counts == Counts::Nothing || is_repeated {
            return;
        }
        let before = core.count;
        core.count = match (counts, before) {
            (Counts::Zero, _) => Some(0),
            // Before the first turn it is boot.
            (_, None) => None,
            (Counts::One | Counts::Switch, _) => Some(1),
            (Counts::Up, Some(count)) => Some(count + 1),
            (Counts::Down, Some(0)) => {
                self.not_understood += 1;
                self.first_not_understood.get_or_insert(address);
                Some(0)
            }
            (Counts::Down, Some(count)) => Some(count - 1),
            (Counts::Nothing, count) => count,
        };
        let is_loop = core.count.is_some() && matches!(counts, Counts::One | Counts::Switch);
        if core.count == Some(0) || is_loop {
            match core.open.take() {
                Some((open, true)) => self.in_loops.close(&open, address),
                Some((open, false)) => self.in_turns.close(&open, address),
                None => {}
            }
        }
        if is_loop || (before == Some(0) && core.count == Some(1) && !is_masked) {
            core.open = Some((Open::at(address), is_loop));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Does, Sections};
    use crate::masked::code::Code;

    #[test]
    fn sections_and_the_loop_are_told_apart() {
        use Counts::{Down, Nothing, One, Up, Zero};
        let does = [Does::Nothing, Does::Nothing, Does::Nothing, Does::Nothing, Does::Nothing, Does::Wait];
        // 0 begins a section, 4 ends one, 8 begins a turn, 12 ends it, 16 does nothing, 20 waits.
        let code = Code::counting(&does, &[Up, Down, Zero, One, Nothing, Nothing]);
        let mut sections = Sections::new(&code, 1);
        let unmasked = [
            0, 4, // before the first turn
            8, 16, 0, 16, 0, 4, 16, 4, // six: sections nest
            16, 12, 16, 16, 20, 16, 8, // four up to the wait, two behind it
            4, 4, // none had begun; the second line is the same instruction once more
        ];
        unmasked.iter().for_each(|&address| sections.take(0, address, false));
        // In a handler.
        [0, 16, 16, 16, 16, 16, 16, 4].iter().for_each(|&address| sections.take(0, address, true));
        assert_eq!(sections.not_understood, 1);
        let lengths = |found: super::Found<'_>| -> Vec<u64> {
            found.sorted().iter().map(|stretch| stretch.instructions).collect()
        };
        assert_eq!((lengths(sections.in_turns), lengths(sections.in_loops)), (vec![6], vec![4]));
    }
}
