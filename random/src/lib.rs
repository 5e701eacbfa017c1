//! Random numbers that nobody can guess, for keys, sequence numbers and seeds; and how good they are.
//!
//! There is one *pool* in the program, a key of 256 bits. It begins with what the machine gives: a seed in the device tree, an instruction, or else how
//! long things take. A driver of a source may [stir](stir) in more at any time (`magpie_drivers::entropy::feed`). A [`Random`] is a ChaCha20 with a key of its own from the
//! pool: whoever draws has one, locks nothing, and takes it along to another core.
//!
//! ```
//! use magpie_random::{Quality, Random};
//!
//! let mut random = Random::new();
//! let mut key = [0; 32];
//! random.fill(&mut key);
//! assert!(random.below(6) < 6);
//! // On the host its system gives the seed.
//! assert_eq!(random.quality(), Quality::Given);
//! ```
//!
//! Numbers that may be guessed, as of tests, had better be drawn by something quicker that can be repeated.
#![cfg_attr(target_os = "none", no_std)]
#![forbid(unsafe_code)]

mod generator;
mod jitter;
mod pool;
mod quality;

pub use generator::Random;
pub use pool::{quality, stir};
pub use quality::{Quality, TooGuessable};
/// The traits by which libraries draw from a [`Random`].
pub use rand_core;
