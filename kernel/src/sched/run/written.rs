//! A place where one core leaves what another is to read, while it lies on the writer's stack: taken over by the reader, or taken back.
//!
//! ```text
//!   writer                                  reader
//!   ──────                                  ──────
//!   write; leave it here                    take it over, if it is here
//!   wait until it was read, or              read
//!   nobody asks any more: take it back      say that it was read
//! ```
//!
//! Both take it by an exchange, so one of them has it. Who asks and when nobody does any more is not known here (`look_round.rs`).

use core::ptr::{self, NonNull};

use crate::arch::atomic::{AtomicPtr, Ordering, const_fn};

/// The place: null when nothing is here.
pub struct Written<T>(AtomicPtr<T>);

impl<T> Written<T> {
    /// In the place of what is being read.
    const TAKEN: *mut T = ptr::dangling_mut();

    const_fn! {
        /// Nothing is here.
        pub fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// The writer leaves this here. It stays as it is until [`Self::was_read`] or [`Self::take_back`] says that the writer has it again.
    pub fn leave(&self, words: NonNull<T>) {
        // Release: pairs with the acquire in `take`.
        self.0.store(words.as_ptr(), Ordering::Release);
    }

    /// Whether something is here, or is being read.
    pub fn is_here(&self) -> bool {
        // Relaxed: only looked at; who reads takes it over.
        !self.0.load(Ordering::Relaxed).is_null()
    }

    /// The reader takes it over, if it is here. The writer leaves it as it is until [`Self::say_read`].
    pub fn take(&self) -> Option<NonNull<T>> {
        let words = NonNull::new(self.0.load(Ordering::Relaxed))?;
        // Acquire: pairs with the release in `leave`. Relaxed on failure: it has been taken back.
        self.0.compare_exchange(words.as_ptr(), Self::TAKEN, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(words)
    }

    /// The reader has read what it has taken.
    pub fn say_read(&self) {
        // Release: pairs with the acquire in `was_read`: it was read before.
        self.0.store(ptr::null_mut(), Ordering::Release);
    }

    /// Whether what the writer has left was read.
    pub fn was_read(&self) -> bool {
        // Acquire: pairs with the release in `say_read`.
        self.0.load(Ordering::Acquire).is_null()
    }

    /// The writer takes back what it has left. Whether it could; otherwise it is being read, or was.
    pub fn take_back(&self, words: NonNull<T>) -> bool {
        // Relaxed: nobody has read it.
        let taken =
            self.0.compare_exchange(words.as_ptr(), ptr::null_mut(), Ordering::Relaxed, Ordering::Relaxed);
        taken.is_ok()
    }
}

impl<T> Default for Written<T> {
    fn default() -> Self {
        Self::new()
    }
}
