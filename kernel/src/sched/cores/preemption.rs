//! What the end of an interrupt, or of a section that has postponed a preemption, decides about what it finds. What leads to
//! a preemption, and how one is carried out, is in `run/preempt.rs`.
//!
//! A preemption that cannot be now is left as a bit in the word of the stack that was interrupted. The code there writes that word
//! with plain loads and stores, so the bit may be lost: a section that begins or ends just then writes back what it read before, a
//! turn that begins writes zero. And the core's loop, once it has chosen, begins that turn without another look. A slice that has
//! ended is noticed at the end of the next one. What is urgent does not wait for that, so it is tried again soon, until
//! nothing urgent waits behind the turn.

use crate::sync::PreemptWord;

/// What was found where the interrupt came.
#[derive(Clone, Copy)]
pub struct Found {
    /// A turn runs there, as opposed to the core's loop.
    pub is_turn: bool,
    /// There is a reason to leave the turn.
    pub is_wanted: bool,
    /// Something urgent waits: behind a turn that is less so; or behind the loop, which may have looked already.
    pub is_urgent: bool,
}

/// What is done about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Nothing; the section that is in progress comes here at its end, if there is a reason to.
    GoOn,
    /// The same, and another interrupt is to come soon.
    TryAgain,
    /// The turn is left.
    Leave,
}

/// Decides, and notes in the word of the stack that was interrupted what its section's end is to do.
///
/// A request that finds nothing to do any more is forgotten, because each section's end would come here for it.
pub fn decide(word: &PreemptWord, found: Found) -> Decision {
    let Found { is_turn, is_wanted, is_urgent } = found;
    if is_turn && is_wanted {
        if word.is_enabled() {
            return Decision::Leave;
        }
        word.request();
    } else {
        word.clear_request();
    }
    if is_urgent { Decision::TryAgain } else { Decision::GoOn }
}
