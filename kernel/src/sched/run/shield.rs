//! Shields: stretches of the kernel's code that must not be cut off in the middle, and are too long to disable preemption for.
//!
//! The code may be preempted, go on elsewhere, and take what time it takes. But whoever is killed meanwhile ends behind it, and so does
//! one whose stack runs out there, which goes on in the stack's reserve. What is not covered is a failure of the kernel's own.

use core::marker::PhantomData;
use core::ptr::NonNull;

use crate::mem::stack::StackBlock;
use crate::sched::process::{EndOfPiece, Header};
use crate::sched::run::kill;
use crate::sync::PreemptGuard;

/// As long as one lives, the code that has made it is not ended from outside.
pub(crate) struct Shield {
    /// It belongs to the stack that it was made on.
    _not_send: PhantomData<*mut ()>,
}

impl Shield {
    /// They nest.
    pub(crate) fn new() -> Self {
        StackBlock::current().shield(true);
        Self { _not_send: PhantomData }
    }

    /// Whether the caller is to end behind this one, as far as is known: what it has made, nobody will get.
    pub(crate) fn ends_its_owner(&self) -> bool {
        let _here = PreemptGuard::new();
        let block = StackBlock::current();
        block.is_in_reserve()
            || NonNull::new(block.process().cast::<Header>()).is_some_and(|process| {
                // SAFETY: the caller is its turn, so it is alive.
                let header = unsafe { process.as_ref() };
                let is_killed = header.run_state().is_killed();
                match header.vtable().is_to_end {
                    // SAFETY: the caller is its turn, holds no lock, and has disabled preemption.
                    Some(asks) => unsafe {
                        (is_killed || kill::is_any_pending())
                            && asks(process, EndOfPiece { is_killed, is_long: true })
                    },
                    None => is_killed,
                }
            })
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        let block = StackBlock::current();
        block.shield(false);
        if self.ends_its_owner() {
            let _here = PreemptGuard::new();
            // The end of this section looks.
            StackBlock::current().preempt().request();
        }
    }
}
