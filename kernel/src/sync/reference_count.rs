//! Counting references: how many keep a thing, and who is the last.
//!
//! What is counted, where it lies and how it is freed is told by those who count: some references are pointers in wakers or
//! lists, which no smart pointer of the library's can be.

use crate::arch::atomic::{AtomicU32, Ordering};

/// With so many some were forgotten, or they would fill 16 GB. Nobody knows how many are left then, so the thing stays for ever.
const TOO_MANY: u32 = 1 << 31;
/// What the count is set to then: as many would have to be given up until it seems that few are left, and as many more made until it
/// begins anew, as there cannot be.
const FOR_EVER: u32 = 3 << 30;

/// How many references to a thing there are.
pub struct ReferenceCount(AtomicU32);

impl ReferenceCount {
    /// A thing with this many references.
    pub fn new(references: u32) -> Self {
        Self(AtomicU32::new(references))
    }

    /// One more, made from one that exists. A thing that has more than 2^31 is never freed.
    #[inline(always)]
    pub fn add(&self) {
        // Relaxed: whoever makes a reference from another already sees what that one sees.
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        if before >= TOO_MANY {
            self.keep_for_ever();
        }
    }

    /// Applications may forget references, and the kernel makes some under its locks: that is no reason to panic there.
    fn keep_for_ever(&self) {
        // Relaxed: nothing is freed because of it. What others add or take away at the same moment may be lost, a few of a billion.
        self.0.store(FOR_EVER, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::{FOR_EVER, ReferenceCount, TOO_MANY};
    use crate::arch::atomic::Ordering;

    #[test]
    fn forgotten_references_keep_it_for_ever() {
        let count = ReferenceCount::new(TOO_MANY - 1);
        count.add();
        assert_eq!(count.0.load(Ordering::Relaxed), TOO_MANY);
        count.add();
        assert_eq!(count.0.load(Ordering::Relaxed), FOR_EVER);
        for _ in 0..1000 {
            assert!(!count.release());
        }
        assert!(!count.is_one());
        count.add();
        assert_eq!(count.0.load(Ordering::Relaxed), FOR_EVER);
    }
}
