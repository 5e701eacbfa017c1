//! The heap gives what it has, says when it has no more, and takes everything back.

use alloc::alloc::{Layout, alloc, dealloc};
use alloc::vec::Vec;
use core::ptr::NonNull;

use magpie::mem::heap::HEAP;
use magpie::sched::{self, SpawnError};
use magpie_tests::{Changed, ensure, ensure_eq, kernel_test};

/// Memory taken from the heap until it is dropped.
struct Hoard {
    blocks: Vec<(NonNull<u8>, Layout)>,
}

// SAFETY: the blocks are this value's own; which core frees them makes no difference to the heap.
unsafe impl Send for Hoard {}

impl Hoard {
    /// Takes whatever is left, in ever smaller blocks down to `least_bytes`.
    fn everything(least_bytes: usize) -> Self {
        // The list itself must not need memory at the end.
        let mut blocks = Vec::with_capacity(100_000);
        let mut bytes = 1 << 30;
        while bytes >= least_bytes && blocks.len() < blocks.capacity() {
            let Ok(layout) = Layout::from_size_align(bytes, 16) else { break };
            // SAFETY: the size is not zero.
            match NonNull::new(unsafe { alloc(layout) }) {
                Some(block) => blocks.push((block, layout)),
                None => bytes /= 2,
            }
        }
        Self { blocks }
    }
}

impl Drop for Hoard {
    fn drop(&mut self) {
        for (block, layout) in self.blocks.drain(..) {
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(block.as_ptr(), layout) };
        }
    }
}

kernel_test! {
    /// With the heap used up, a process that is to be started is refused with an error, what runs goes on, and
    /// what is given back can be used again.
    async fn exhausted_memory_is_an_ordinary_error() -> Outcome {
        let _still = Changed::no_preemption()?;
        let (used_before, _) = HEAP.usage();
        let hoard = Hoard::everything(16);
        ensure!(hoard.blocks.len() < 100_000, "the heap has more blocks than this test can hold");
        let mut started = 0;
        // What is left in the caches may do for a few.
        let refusal = loop {
            match sched::spawn(async { [0_u64; 64].iter().sum::<u64>() }) {
                Ok(_) if started < 1000 => started += 1,
                Ok(_) => break None,
                Err(error) => break Some(error),
            }
        };
        ensure_eq!(refusal, Some(SpawnError::OutOfMemory), "starting a process without memory");
        drop(hoard);
        let Ok(handle) = sched::spawn(async { 7 }) else { return Err("no process after all was given back".into()) };
        ensure_eq!(handle.await, Ok(7), "a process afterwards");
        sched::yield_now().await;
        let (used_after, _) = HEAP.usage();
        ensure!(used_after < used_before + (4 << 20), "{used_before} bytes were in use, now {used_after}");
        Ok(())
    }
}

kernel_test! {
    /// What cannot ever be had is refused at once.
    async fn a_block_larger_than_the_machine_is_refused() -> Outcome {
        let mut list: Vec<u8> = Vec::new();
        ensure!(list.try_reserve_exact(usize::MAX / 4).is_err(), "more memory than there are addresses");
        ensure!(list.try_reserve_exact(1 << 40).is_err(), "a terabyte");
        ensure!(list.try_reserve_exact(1 << 10).is_ok(), "a kilobyte");
        Ok(())
    }
}
