//! A gate: where code on one core, and on no other, may append to a buffer.
//!
//! Here is what a gate consists of, because both back ends read it. Who opens and closes it, and what is written, is above.

use core::ptr;

use super::atomic::{AtomicPtr, Ordering};
use super::percpu;

/// A place in a buffer, and the core that may append there. Every access is relaxed: of the core that it is open for, all are
/// that core's, and others only see that it is not theirs.
#[repr(C)]
pub struct Gate {
    /// The block of the core that may append; one byte behind it while somebody must be told of what is appended; or
    /// [`CLOSED`].
    pub(super) state: AtomicPtr<()>,
    /// To where the next word goes. Of use only while the gate is open.
    pub(super) cursor: AtomicPtr<AtomicPtr<u8>>,
    /// Where the buffer ends.
    pub(super) limit: AtomicPtr<u8>,
}

/// No core has its block there.
const CLOSED: *mut () = ptr::without_provenance_mut(1);

impl Gate {
    /// A closed one.
    pub fn closed() -> Self {
        let null = ptr::null_mut();
        Self {
            state: AtomicPtr::new(CLOSED),
            cursor: AtomicPtr::new(ptr::null_mut()),
            limit: AtomicPtr::new(null),
        }
    }

    /// Whether it is open for the core that the caller runs on, with preemption disabled, and nobody must be told.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.state.load(Ordering::Relaxed) == percpu::core_block()
    }

    /// Whether it is open for the core that the caller runs on, with preemption disabled, and somebody must be told of what is
    /// appended.
    #[inline(always)]
    pub fn is_at_rest(&self) -> bool {
        self.state.load(Ordering::Relaxed) == at_rest(percpu::core_block())
    }

    /// Opens it for this core: what is appended goes where `cursor` says, up to `limit`.
    ///
    /// # Safety
    /// `cursor` lives until the gate is closed or the cursor moved, and leads to memory that ends at `limit` and into which only
    /// this core writes.
    #[inline(always)]
    pub unsafe fn open(&self, cursor: &AtomicPtr<u8>, limit: *mut u8) {
        // SAFETY: by contract.
        unsafe { self.move_cursor(cursor) };
        self.set_limit(limit);
        self.wake();
    }

    /// From now on what is appended goes where `cursor` says, in the same buffer.
    ///
    /// # Safety
    /// As for [`Self::open`].
    #[inline(always)]
    pub unsafe fn move_cursor(&self, cursor: &AtomicPtr<u8>) {
        self.cursor.store(ptr::from_ref(cursor).cast_mut(), Ordering::Relaxed);
    }

    /// Whether what is appended goes where `cursor` says.
    #[inline(always)]
    pub fn leads_to(&self, cursor: &AtomicPtr<u8>) -> bool {
        ptr::eq(self.cursor.load(Ordering::Relaxed), cursor)
    }

    /// Where the next word goes.
    ///
    /// # Safety
    /// It is open for this core.
    pub unsafe fn place(&self) -> ptr::NonNull<u8> {
        // SAFETY: by contract, so the cursor is alive, and leads into a buffer.
        unsafe { ptr::NonNull::new_unchecked((*self.cursor.load(Ordering::Relaxed)).load(Ordering::Relaxed)) }
    }

    /// From now on the buffer ends there.
    #[inline(always)]
    pub fn set_limit(&self, limit: *mut u8) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// It is open for this core, and from now on nobody must be told of what is appended.
    #[inline(always)]
    pub fn wake(&self) {
        self.state.store(percpu::core_block(), Ordering::Relaxed);
    }

    /// It is open for this core, and from now on somebody must be told of what is appended.
    #[inline(always)]
    pub fn rest(&self) {
        self.state.store(at_rest(percpu::core_block()), Ordering::Relaxed);
    }

    /// Closes it. The caller is on its core, or it is closed already.
    #[inline(always)]
    pub fn close(&self) {
        self.state.store(CLOSED, Ordering::Relaxed);
    }

    /// Closes it for good, until it is opened anew: it leads nowhere. The caller is on its core, or it is closed already.
    pub fn forget(&self) {
        self.close();
        self.cursor.store(ptr::null_mut(), Ordering::Relaxed);
        self.limit.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// Whether it was never opened, or forgotten since.
    #[cfg(test)]
    pub fn leads_nowhere(&self) -> bool {
        self.cursor.load(Ordering::Relaxed).is_null() && self.limit.load(Ordering::Relaxed).is_null()
    }

    /// Room for `bytes`, if the buffer is long enough. The caller has found it open, has not enabled preemption since, and must
    /// write so many bytes there.
    #[inline(always)]
    pub fn reserve(&self, bytes: usize) -> Option<ptr::NonNull<u8>> {
        // SAFETY: open for this core, so the cursor is alive, and only code on this core changes it.
        let cursor = unsafe { &*self.cursor.load(Ordering::Relaxed) };
        let place = cursor.load(Ordering::Relaxed);
        let next = place.wrapping_add(bytes);
        if next > self.limit.load(Ordering::Relaxed) {
            return None;
        }
        cursor.store(next, Ordering::Relaxed);
        // SAFETY: open, so the cursor leads into a buffer.
        Some(unsafe { ptr::NonNull::new_unchecked(place) })
    }
}

#[inline(always)]
fn at_rest(block: *mut ()) -> *mut () {
    block.wrapping_byte_add(1)
}
