//! Programs of the Savina actor benchmark suite (Imam and Sarkar, 2014), as a user of Magpie's actors would write them.
//!
//! Beside the rows that measure one operation at a time, these show what small messages, waiting and real work come to
//! together. The programs are Savina's, the parameters smaller, so that all of them can be counted on many cores. Each
//! checks its own result when the clock has stopped.

pub mod bank;
pub mod barber;
pub mod chameneos;
pub mod dictionary;
pub mod philosophers;
pub mod queens;
pub mod quicksort;
pub mod sieve;
