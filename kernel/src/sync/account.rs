//! Who pays for memory: a number in the block of the running stack.
//!
//! It travels with the code, as the preemption count does (`preempt.rs`): a process has its number from the beginning of a turn on, wherever
//! the turn goes on, and nobody has to change it when another stack is switched to. Only code on that stack, and interrupts on it,
//! touch the word, so plain loads and stores suffice.
//!
//! What the numbers mean is up to the heap (`mem::limit`); 0 is nobody.

use core::marker::PhantomData;

use crate::arch::atomic::{AtomicU32, Ordering, const_fn};
#[cfg(not(any(loom, shuttle)))]
use crate::arch::percpu;
#[cfg(not(any(loom, shuttle)))]
use crate::sync::PreemptWord;

/// The word of a stack block behind the preemption word: who pays for what the code on the stack allocates.
#[repr(C)]
pub struct AccountWord(AtomicU32);

impl AccountWord {
    const_fn! {
        /// Nobody pays.
        pub fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// Who pays.
    #[inline(always)]
    pub(crate) fn get(&self) -> u32 {
        // Relaxed, here and below: see the opening.
        self.0.load(Ordering::Relaxed)
    }

    /// From now on that one pays.
    #[inline(always)]
    pub(crate) fn set(&self, account: u32) {
        self.0.store(account, Ordering::Relaxed);
    }

    /// The word of the stack that the caller runs on.
    #[cfg(not(any(loom, shuttle)))]
    #[inline(always)]
    fn current() -> &'static Self {
        // SAFETY: a stack block begins with a preemption word and this one (the contract of `set_stack_block`), and is never unmapped
        // while code runs on its stack. The reference is not kept by anyone, as it is private to this file.
        unsafe { &*percpu::stack_block().byte_add(size_of::<PreemptWord>()).cast::<Self>() }
    }
}

/// Who pays for what the caller allocates.
#[inline(always)]
pub(crate) fn account_here() -> u32 {
    // In a model the threads share one stack block, and its heap is the library's.
    #[cfg(any(loom, shuttle))]
    return 0;
    #[cfg(not(any(loom, shuttle)))]
    AccountWord::current().get()
}

/// A section in which another pays. Sections nest.
///
/// Not `Send`: it belongs to the stack it was made on.
pub(crate) struct PaidBy {
    before: u32,
    _not_send: PhantomData<*mut ()>,
}

impl PaidBy {
    /// Nobody pays: for memory of the kernel's that serves others, too.
    #[inline(always)]
    pub(crate) fn nobody() -> Self {
        Self::account(0)
    }

    /// That one pays.
    #[inline(always)]
    pub(crate) fn account(account: u32) -> Self {
        let before = account_here();
        set_here(account);
        Self { before, _not_send: PhantomData }
    }
}

impl Drop for PaidBy {
    #[inline(always)]
    fn drop(&mut self) {
        set_here(self.before);
    }
}

#[inline(always)]
fn set_here(account: u32) {
    #[cfg(any(loom, shuttle))]
    let _ = account;
    #[cfg(not(any(loom, shuttle)))]
    AccountWord::current().set(account);
}
