//! The kernel, built for a target without floating-point registers.
//@ flags -Ctarget-feature=-neon --crate-type=lib
#![no_std]

#[path = "../../../kernel/src/arch/target.rs"]
mod target;
