//! The interrupt controller of the host back end: there is none, and no device. So nobody can claim an interrupt there.

use crate::arch::{CoreId, Trigger};

/// Interrupts below this number are each core's own.
pub const FIRST_SHARED: u32 = 32;

/// How many interrupts there may be.
pub fn lines() -> u32 {
    0
}

/// # Safety
/// None here; on the machine it has a contract.
pub unsafe fn prepare(_: u32, _: Trigger, _: CoreId) {}

pub fn route(_: u32, _: CoreId) {}

pub fn unmask(_: u32) {}

pub fn mask(_: u32) {}
