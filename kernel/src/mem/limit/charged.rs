//! The heap's way to blocks that somebody pays for.
//!
//! What must hold: **a block is charged exactly as long as the table names its account**. Both change with preemption disabled, so that code
//! which is ended in the middle leaves a block of the one kind or of the other to the collector of what crashes leave.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{self, NonNull};

use super::accounts::Payer;
use super::owners::{LEAST_BYTES, Table};
use super::{ACCOUNTS, OutOfMemory};
use crate::mem::heap::{Heap, noted};
use crate::mem::orphans;
use crate::mem::size_class::SizeClass;
use crate::sync::{PaidBy, PreemptGuard};

/// The layout of the block that is allocated where somebody pays.
fn charged_layout(layout: Layout) -> Layout {
    // SAFETY: the alignment is valid, and 64 bytes do not overflow when rounded up to it, or the layout is as it was.
    unsafe { Layout::from_size_align_unchecked(layout.size().max(LEAST_BYTES), layout.align()) }
}

/// Bytes of the block that such a layout gets: what is charged.
fn block_bytes(layout: Layout) -> usize {
    SizeClass::of(layout).map_or_else(|| noted(layout).size(), SizeClass::block_bytes)
}

impl Heap {
    /// Has what is needed before anybody can pay; without memory, as on a host, that is nothing.
    ///
    /// # Errors
    /// When there is no memory for it: a 64th of the heap's, in one piece.
    pub(super) fn keep_accounts(&self) -> Result<(), OutOfMemory> {
        if self.owners.table().is_none() && self.owners.is_needed() {
            // Not noted as a block: nothing in it is a pointer, and it is never freed.
            let attempt = || self.owners.reserve(|layout| self.allocate_central(layout));
            attempt().or_else(|| self.give_up_kept_until(attempt)).ok_or(OutOfMemory)?;
            self.owners.make();
        }
        Ok(())
    }

    /// A block that the account with this number pays for: that of the code which asks.
    #[cold]
    #[inline(never)]
    pub(in crate::mem) fn alloc_charged(&self, layout: Layout, number: u8) -> *mut u8 {
        self.alloc_paid_by(ACCOUNTS.payer(number), layout)
    }

    /// A block that `payer` pays for.
    pub(in crate::mem) fn alloc_paid_by(&self, payer: Payer, layout: Layout) -> *mut u8 {
        let Some(table) = self.owners.table().filter(|_| payer != Payer::NOBODY) else {
            return self.alloc_for_nobody(layout);
        };
        let asked = layout.size();
        let layout = charged_layout(layout);
        let bytes = block_bytes(layout);
        // Before anything is taken apart in search of memory.
        if !ACCOUNTS.has_room(payer.number(), bytes) {
            // Some of it may be what a crash has left.
            orphans::want_if_any();
            return ptr::null_mut();
        }
        let Some(block) = NonNull::new(self.alloc_for_nobody(layout)) else { return ptr::null_mut() };
        // SAFETY: the block was just made, and is that long. As in `clear_rest`, which does it behind what is charged.
        unsafe { block.add(asked).write_bytes(0, layout.size() - asked) };
        let here = PreemptGuard::new();
        if ACCOUNTS.charge(payer, bytes) {
            // SAFETY: the block was just made, and is long enough.
            unsafe { table.set(block.as_ptr().addr(), payer.number()) };
            return block.as_ptr();
        }
        drop(here);
        // SAFETY: allocated above with this layout, and nobody pays for it.
        unsafe { self.dealloc(block.as_ptr(), layout) };
        ptr::null_mut()
    }

    /// By the way that all blocks come: what is in line there would be long twice.
    fn alloc_for_nobody(&self, layout: Layout) -> *mut u8 {
        let _nobody = PaidBy::nobody();
        // SAFETY: layouts of this room are of a block, so not empty.
        unsafe { self.alloc(layout) }
    }

    /// # Safety
    /// The contract of `dealloc`, for a block that this account pays for.
    #[cold]
    #[inline(never)]
    pub(in crate::mem) unsafe fn free_charged(
        &self,
        block: NonNull<u8>,
        layout: Layout,
        table: Table,
        number: u8,
    ) {
        let layout = charged_layout(layout);
        // SAFETY: by contract.
        unsafe {
            self.end_charge(table, number, block.as_ptr().addr(), block_bytes(layout));
            self.dealloc(block.as_ptr(), layout);
        }
    }

    /// Nobody pays any more for the block that begins there and has so many bytes. It is about to be freed.
    ///
    /// # Safety
    /// The block is in use, and nobody uses it any more.
    pub(in crate::mem) unsafe fn end_charge_at(&self, start: usize, bytes: usize) {
        if let Some(table) = self.owners.table() {
            // SAFETY: by contract.
            unsafe {
                match table.get(start) {
                    0 => {}
                    number => self.end_charge(table, number, start, bytes),
                }
            }
        }
    }

    /// # Safety
    /// As for [`Self::end_charge_at`]; this account pays for it.
    unsafe fn end_charge(&self, table: Table, number: u8, start: usize, bytes: usize) {
        let _here = PreemptGuard::new();
        // SAFETY: by contract.
        unsafe { table.set(start, 0) };
        ACCOUNTS.give_back(number, bytes);
    }
}
