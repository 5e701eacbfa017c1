//! Whom to rob: the five rules, and what a thief has learnt about its victims.
//!
//! Every rule ranks the cores that have something to take and goes through them, best first, until one
//! yields. A victim that was tried in vain weighs less in the next searches, by half for each failure.

use core::cell::Cell;

use super::cores::{self, Core};
use super::settings::{self, Setting};
use crate::arch::{CoreId, MAX_CORES};
use crate::machine;

/// How a thief chooses its victim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VictimRule {
    /// Any, with equal chance.
    Random = 0,
    /// The one with most to take.
    Load = 1,
    /// The nearest; of several, the one with most to take.
    Locality = 2,
    /// By load seven times in ten, else at random.
    Hybrid = 3,
    /// The one that has not been robbed for the longest time (the C∀ rule).
    LongestVictim = 4,
}

impl VictimRule {
    /// All of them, by number.
    pub const ALL: [Self; 5] = [Self::Random, Self::Load, Self::Locality, Self::Hybrid, Self::LongestVictim];
}

/// What a thief remembers of each victim.
pub(super) struct Memory {
    failures: [Cell<u8>; MAX_CORES],
}

impl Memory {
    pub(super) fn new() -> Self {
        Self { failures: [const { Cell::new(0) }; MAX_CORES] }
    }
}

/// The cores that a search has not tried yet.
pub(super) struct Candidates(u64);

impl Candidates {
    pub(super) fn new(cores: impl Iterator<Item = CoreId>) -> Self {
        Self(cores.fold(0, |mask, core| mask | core.mask()))
    }
}

/// The rule for this search: the hybrid rule throws its dice here.
pub(super) fn rule(thief: &Core) -> VictimRule {
    let rule = VictimRule::ALL[settings::get(Setting::VictimRule) as usize % VictimRule::ALL.len()];
    if rule != VictimRule::Hybrid {
        rule
    } else if thief.random_below(10) < 7 {
        VictimRule::Load
    } else {
        VictimRule::Random
    }
}

/// The best candidate that is left, which is then no longer one.
pub(super) fn choose(thief: &Core, rule: VictimRule, candidates: &mut Candidates) -> Option<&'static Core> {
    let mut best: Option<(u64, &'static Core)> = None;
    let mut mask = candidates.0;
    while mask != 0 {
        let index = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        let Some(core) = cores::get(index) else { continue };
        let weight = weight(thief, rule, core) >> thief.memory.failures[index].get().min(8);
        if best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, core));
        }
    }
    let (_, core) = best?;
    candidates.0 &= !core.id().mask();
    Some(core)
}

/// How attractive a victim is under a rule, in steps large enough to be halved for failures.
fn weight(thief: &Core, rule: VictimRule, victim: &Core) -> u64 {
    let load = (victim.queue.stealable() as u64).min(1 << 20);
    match rule {
        VictimRule::Random => 1 + thief.random_below(1 << 30),
        VictimRule::Load | VictimRule::Hybrid => load << 10,
        VictimRule::Locality => {
            let distance = u64::from(machine::distance(thief.id(), victim.id()));
            ((64 - distance.min(63)) << 40) + (load << 10)
        }
        VictimRule::LongestVictim => u64::MAX - victim.robbed_at(),
    }
}

/// Remembers how an attempt went.
pub(super) fn record(thief: &Core, victim: &Core, success: bool) {
    let failures = &thief.memory.failures[victim.id().index()];
    failures.set(if success { 0 } else { failures.get().saturating_add(1) });
    // Also after a failure, or all thieves would keep to the same barren victim.
    victim.note_robbed();
}
