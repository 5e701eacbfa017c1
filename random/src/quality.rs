//! How good random numbers are: what they were seeded with. Nothing is measured here.

use core::fmt;

/// What a generator was seeded with, the worst first. The numbers themselves look alike.
///
/// ```
/// use magpie_random::Quality;
/// assert!(Quality::Guessable < Quality::Jitter && Quality::Given < Quality::Source);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Quality {
    /// The clock alone: who knows about when the machine was switched on can try all that it may have shown.
    Guessable,
    /// How long the same work took again and again, which varied. Nobody has shown how much of that could be known.
    Jitter,
    /// Bytes that whoever started the machine gave it: firmware, a hypervisor, on the host its system. They know them; if they are honest nobody else does.
    Given,
    /// A source of random numbers: an instruction of the core's, or a device.
    Source,
}

/// There is no seed of the [`Quality`] that was asked for.
///
/// ```
/// use magpie_random::{Quality, Random};
/// // The host has no source that is asked.
/// let error = Random::at_least(Quality::Source).err();
/// assert_eq!(error.map(|error| error.is), Some(Quality::Given));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooGuessable {
    /// What there is.
    pub is: Quality,
}

impl fmt::Display for TooGuessable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("random numbers could be guessed here: they come from ")?;
        f.write_str(match self.is {
            Quality::Guessable => "the clock alone",
            Quality::Jitter => "how long things take",
            Quality::Given => "whoever started the machine",
            Quality::Source => "a source",
        })?;
        f.write_str("; give the machine a source (on QEMU: --random), and feed the pool from it")
    }
}

impl core::error::Error for TooGuessable {}
