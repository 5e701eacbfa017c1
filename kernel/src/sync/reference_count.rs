//! Counting references: how many keep a thing, and who is the last.
//!
//! What is counted, where it lies and how it is freed is told by those who count: some references are pointers in wakers or
//! lists, which no smart pointer of the library's can be.

use crate::arch::atomic::{AtomicU32, Ordering};

/// How many references to a thing there are.
pub struct ReferenceCount(AtomicU32);

impl ReferenceCount {
    /// A thing with this many references.
    pub fn new(references: u32) -> Self {
        Self(AtomicU32::new(references))
    }

    /// One more, made from one that exists.
    ///
    /// # Panics
    /// If there are more than 2^31: some were forgotten, and the count would begin anew.
    #[inline(always)]
    pub fn add(&self) {
        // Relaxed: whoever makes a reference from another already sees what that one sees.
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        assert!(before < u32::MAX / 2, "too many references: some were forgotten");
    }

    /// One less. Returns whether it was the last, whose owner frees the thing.
    #[inline(always)]
    #[must_use = "the last one frees the thing"]
    pub fn release(&self) -> bool {
        // AcqRel: this owner's accesses happen before the thing is freed by whoever sees the last one go, which acquires what
        // the others released. Not a fence in the branch, because ThreadSanitizer does not know those.
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether the caller's is the only one. Then nobody else can make another.
    #[inline(always)]
    pub fn is_one(&self) -> bool {
        // Acquire: pairs with the release of those that have gone.
        self.0.load(Ordering::Acquire) == 1
    }
}
