//! The heap gives what it has, says when it has no more, and takes everything back.

use alloc::vec::Vec;

use magpie::internals::mem::heap::HEAP;
use magpie::sched::{self, SpawnError};
use magpie_tests::{Changed, HeapExhauster, ensure, ensure_eq, kernel_test};

kernel_test! {
    /// With the heap used up, a process that is to be started is refused with an error, what runs goes on, and
    /// what is given back can be used again.
    async fn exhausted_memory_is_an_ordinary_error() -> Outcome {
        let _still = Changed::no_preemption()?;
        let (used_before, _) = HEAP.usage();
        let exhauster = HeapExhauster::everything(16);
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
        drop(exhauster);
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
