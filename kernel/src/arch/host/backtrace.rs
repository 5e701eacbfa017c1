//! A host's threads are the host's to look into: nothing is known of their stacks here.

use core::ops::Range;

use super::switch::Frame;

/// As on the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// As on the machine.
    pub pc: usize,
    /// As on the machine.
    pub sp: usize,
}

impl Place {
    /// Nowhere.
    pub fn here() -> Self {
        Self { pc: 0, sp: 0 }
    }

    /// Nowhere.
    pub fn stopped_in(_frame: &Frame) -> Self {
        Self::here()
    }

    /// By nobody.
    ///
    /// # Safety
    /// As on the machine.
    pub unsafe fn caller(&self, _stack: &Range<usize>) -> Option<Self> {
        None
    }
}
