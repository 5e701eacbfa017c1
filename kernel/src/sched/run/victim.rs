//! A thief's candidates, and going through them by the [rule](crate::sched::policy::victim) in force.

use crate::machine;
use crate::sched::cores::{self, Core};
use crate::sched::policy::victim::{self, Candidate, VictimRule};

/// The cores that a search has not tried yet, as a mask.
pub(crate) struct Candidates(pub u64);

/// The best candidate that is left, which is then no longer one.
pub(crate) fn choose(thief: &Core, rule: VictimRule, candidates: &mut Candidates) -> Option<&'static Core> {
    let mut best: Option<(u64, &'static Core)> = None;
    let mut mask = candidates.0;
    while mask != 0 {
        let index = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        let Some(core) = cores::get(index) else { continue };
        let weight = weight(thief, rule, core);
        if best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, core));
        }
    }
    let (_, core) = best?;
    candidates.0 &= !core.mask();
    Some(core)
}

fn weight(thief: &Core, rule: VictimRule, victim: &Core) -> u64 {
    let distance = if rule == VictimRule::Locality { machine::distance(thief.id(), victim.id()) } else { 0 };
    let candidate = Candidate {
        core: victim.id(),
        stealable: victim.queue.stealable(),
        distance,
        robbed_at: victim.robbed_at(),
    };
    victim::weight(rule, &thief.memory, &candidate, |bound| thief.random.below(bound))
}

/// Remembers how an attempt went.
pub(crate) fn record(thief: &Core, victim: &Core, success: bool) {
    thief.memory.record(victim.id(), success);
    // Also after a failure, or all thieves would keep trying the same victim without work.
    victim.note_robbed();
}
