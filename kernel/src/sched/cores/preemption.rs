//! What the end of an interrupt, or of a section that has postponed a preemption, decides about what it finds. What leads to
//! a preemption, and how one is carried out, is in `run/preempt.rs`.
//!
//! A preemption that cannot be now is requested of the stack that was interrupted. A section's end looks for a request after it has
//! lowered the count, and so does a turn's beginning: then the turn is left there. The core's loop is not left. What is urgent may have
//! come too late for its choice, so it is requested of the turn that was chosen, which is left before its first instruction.

use crate::sync::PreemptWord;

/// What was found where the interrupt came.
#[derive(Clone, Copy)]
pub struct Found {
    /// A turn runs there, as opposed to the core's loop.
    pub is_turn: bool,
    /// There is a reason to leave that turn or, in the loop, any turn that is not urgent.
    pub is_wanted: bool,
}

/// Decides, and notes on the stack that was interrupted what its section's end or the turn's beginning is to do. Whether the turn is
/// left now.
///
/// A request that finds nothing to do any more is forgotten, because each section's end would come here for it.
pub fn decide(word: &PreemptWord, found: Found) -> bool {
    let Found { is_turn, is_wanted } = found;
    if !is_wanted {
        word.clear_request();
    } else if is_turn && word.is_enabled() {
        return true;
    } else {
        word.request();
    }
    false
}
