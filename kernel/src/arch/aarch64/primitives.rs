//! The lock-free primitives as LDXR/STXR assembly: what `arch/portable/mod.rs` has over the language's own atomics. They need
//! an Arm core and nothing else of this back end, so a program on an Arm host has them, too.

pub mod deque_ops;
mod exclusive_asm;
pub mod pair;
pub mod swap;
