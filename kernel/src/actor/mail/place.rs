//! Places in the table, as a mailbox's hint says them.

/// Where a mailbox is: a worker, and which of its slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub worker: u16,
    /// The slot, counted from the first of the worker's range.
    pub offset: u16,
}

impl Place {
    #[inline(always)]
    pub(super) const fn from_bits(bits: u32) -> Self {
        Self { worker: (bits >> 16) as u16, offset: bits as u16 }
    }

    pub(super) const fn bits(self) -> u32 {
        (self.worker as u32) << 16 | self.offset as u32
    }
}
