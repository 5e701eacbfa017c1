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
    /// What it has come to last, if that counts: whether it was executed is seen by what comes next.
    begun: Option<Step>,
    /// The same, where an interrupt has come next.
    interrupted: Option<Step>,
    /// The stretch in progress, if it is of interest, and whether it is the loop's.
    open: Option<(Open, bool)>,
}

/// An instruction that counts.
#[derive(Clone, Copy)]
struct Step {
    address: u64,
    counts: Counts,
    is_masked: bool,
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

    /// A core executes the instruction at an address, with interrupts masked or not; or it has begun it, was interrupted, and will begin it again.
    pub fn take(&mut self, number: usize, address: u64, is_masked: bool) {
        let Some(core) = self.cores.get_mut(number) else { return };
        let does = self.code.does(address);
        let executed = match core.begun.take() {
            Some(step) if does == Does::Enter => {
                core.interrupted = Some(step);
                None
            }
            None if !is_masked && does != Does::Return => core.interrupted.take(),
            step => step,
        };
        // No store follows itself.
        if let Some(step) = executed.filter(|step| step.address != address) {
            self.apply(number, step);
        }
        let Some(core) = self.cores.get_mut(number) else { return };
        if let Some((open, is_loop)) = &mut core.open {
            open.add(address);
            if *is_loop && matches!(does, Does::Wait | Does::Doze) {
                // What follows is another stretch.
                self.in_loops.close(open, address);
                *open = Open::default();
            }
        }
        let counts = self.code.counts(address);
        if counts != Counts::Nothing {
            core.begun = Some(Step { address, counts, is_masked });
        }
    }

    /// A core has executed this.
    fn apply(&mut self, number: usize, Step { address, counts, is_masked }: Step) {
        let Some(core) = self.cores.get_mut(number) else { return };
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
        if matches!(counts, Counts::Zero | Counts::One | Counts::Switch) {
            // Whatever was interrupted is left, or goes on at an instruction of its own.
            core.interrupted = None;
        }
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
        [0, 16, 16, 16, 16, 16, 16, 4, 16].iter().for_each(|&address| sections.take(0, address, true));
        assert_eq!(sections.not_understood, 1);
        let lengths = |found: super::Found<'_>| -> Vec<u64> {
            found.sorted().iter().map(|stretch| stretch.instructions).collect()
        };
        assert_eq!((lengths(sections.in_turns), lengths(sections.in_loops)), (vec![6], vec![4]));
    }

    #[test]
    fn what_was_begun_and_interrupted_counts_once() {
        use Counts::{Down, Nothing, Up, Zero};
        let does = [Does::Nothing, Does::Nothing, Does::Nothing, Does::Nothing, Does::Enter, Does::Return];
        // 0 begins a section, 4 ends one, 8 begins a turn, 12 does nothing, 16 begins a handler, and 20 ends it.
        let code = Code::counting(&does, &[Up, Down, Zero, Nothing, Nothing, Nothing]);
        let mut sections = Sections::new(&code, 1);
        let trace = [
            (8, false),
            // Neither was executed before the interrupt.
            (0, false),
            (16, true),
            (12, true),
            (20, false),
            (0, false),
            (12, false),
            (4, false),
            (16, true),
            (12, true),
            (20, false),
            (4, false),
            // Both were.
            (12, false),
            (0, false),
            (16, true),
            (20, false),
            (12, false),
            (4, false),
            (16, true),
            (20, false),
            (12, false),
        ];
        trace.iter().for_each(|&(address, is_masked)| sections.take(0, address, is_masked));
        assert_eq!(sections.not_understood, 0);
        let lengths: Vec<u64> =
            sections.in_turns.sorted().iter().map(|stretch| stretch.instructions).collect();
        assert_eq!(lengths, [7]);
    }
}
