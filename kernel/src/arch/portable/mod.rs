//! The lock-free primitives over the language's own atomics: what the host runs, what the model checkers
//! check, and on AArch64, with the feature `portable`, what stands in for the hand-written exclusives.

pub mod deque_ops;
mod exclusive;
pub mod pair;
pub mod swap;
