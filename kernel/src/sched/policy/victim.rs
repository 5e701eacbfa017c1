//! Which victim to steal from: the five rules, and what a thief has learnt about its victims. The search itself is in
//! `run/steal.rs`.
//!
//! Every rule ranks the cores that have something to take and goes through them, best first, until one
//! yields. A victim that yielded nothing weighs less in the next searches, by half for each failure.

use core::cell::Cell;

use crate::arch::{CoreId, MAX_CORES};
use crate::sched::policy::settings::{self, Setting};

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
    /// The one that nobody has stolen from for the longest time (the C∀ rule).
    LongestVictim = 4,
}

impl VictimRule {
    /// All of them, by number.
    pub const ALL: [Self; 5] = [Self::Random, Self::Load, Self::Locality, Self::Hybrid, Self::LongestVictim];

    /// What the command `victim` calls it.
    ///
    /// ```
    /// use magpie::sched::VictimRule;
    /// let named = VictimRule::ALL.into_iter().find(|rule| rule.name() == "longest-victim");
    /// assert_eq!(named, Some(VictimRule::LongestVictim));
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Load => "load",
            Self::Locality => "locality",
            Self::Hybrid => "hybrid",
            Self::LongestVictim => "longest-victim",
        }
    }
}

/// What a thief remembers of each victim.
pub(crate) struct Memory {
    failures: [Cell<u8>; MAX_CORES],
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self { failures: [const { Cell::new(0) }; MAX_CORES] }
    }
}

impl Memory {
    /// What is left of a victim's weight after its failures.
    fn discount(&self, victim: CoreId, weight: u64) -> u64 {
        weight >> self.failures[victim.index()].get().min(8)
    }

    /// Remembers how an attempt went.
    pub(crate) fn record(&self, victim: CoreId, success: bool) {
        let failures = &self.failures[victim.index()];
        failures.set(if success { 0 } else { failures.get().saturating_add(1) });
    }
}

/// The rule for one search: the hybrid rule throws its dice here. `random_below` gives a number below its argument.
pub(crate) fn rule(random_below: impl FnOnce(usize) -> usize) -> VictimRule {
    let rule = VictimRule::ALL[settings::get(Setting::VictimRule) as usize % VictimRule::ALL.len()];
    if rule != VictimRule::Hybrid {
        rule
    } else if random_below(10) < 7 {
        VictimRule::Load
    } else {
        VictimRule::Random
    }
}

/// What a rule may know of a victim.
pub(crate) struct Candidate {
    pub(crate) core: CoreId,
    /// How many processes could be taken.
    pub(crate) stealable: usize,
    /// How far it is from the thief.
    pub(crate) distance: u32,
    /// When a thief last tried it, in clock ticks.
    pub(crate) robbed_at: u64,
}

/// How attractive a victim is under a rule, in steps large enough to be halved for failures.
pub(crate) fn weight(
    rule: VictimRule,
    memory: &Memory,
    candidate: &Candidate,
    random_below: impl FnOnce(usize) -> usize,
) -> u64 {
    let load = (candidate.stealable as u64).min(1 << 20);
    let weight = match rule {
        VictimRule::Random => 1 + random_below(1 << 30) as u64,
        VictimRule::Load | VictimRule::Hybrid => load << 10,
        VictimRule::Locality => ((64 - u64::from(candidate.distance).min(63)) << 40) + (load << 10),
        VictimRule::LongestVictim => u64::MAX - candidate.robbed_at,
    };
    memory.discount(candidate.core, weight)
}
