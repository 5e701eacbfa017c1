//! Each kind of memory allows what it is for and nothing else. Whoever tries is ended alone.

use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering};

use magpie::sched::{self, JoinError};
use magpie_tests::{Failure, Outcome, ensure_eq, kernel_test};

/// `ret`, as data.
static RETURN: AtomicU32 = AtomicU32::new(0xd65f_03c0);
/// A constant that the linker puts among the constants.
static CONSTANT: [u64; 8] = [0x6d61_6770_6965; 8];

/// A function whose code is written to and which is called; never inlined, so that it has an address.
#[inline(never)]
fn innocent() -> u64 {
    black_box(7)
}

/// Runs `attempt` as a process, which must not survive it.
async fn refused(attempt: impl FnOnce() -> u64 + Send + 'static) -> Outcome {
    let handle = sched::spawn(async move { attempt() }).map_err(|_| Failure::from("no process"))?;
    ensure_eq!(handle.await, Err(JoinError::Crashed), "the process that tried");
    Ok(())
}

kernel_test! {
    /// Code cannot be written.
    async fn code_is_read_only() -> Outcome {
        refused(|| {
            let code = innocent as *const () as *mut u32;
            // SAFETY: deliberately not: the write is to be refused.
            unsafe { code.write_volatile(0) };
            innocent()
        })
        .await?;
        ensure_eq!(innocent(), 7, "the function afterwards");
        Ok(())
    }
}

kernel_test! {
    /// Nor can constants.
    async fn constants_are_read_only() -> Outcome {
        refused(|| {
            let constant = black_box(CONSTANT.as_ptr()).cast_mut();
            // SAFETY: deliberately not: the write is to be refused.
            unsafe { constant.write_volatile(1) };
            1
        })
        .await?;
        ensure_eq!(black_box(&CONSTANT)[0], 0x6d61_6770_6965, "the constant afterwards");
        Ok(())
    }
}

/// Calls the instructions at an address.
fn call(address: usize) -> u64 {
    // SAFETY: deliberately not: what is called lies in memory that must not be executable.
    let function: extern "C" fn() -> u64 = unsafe { core::mem::transmute(black_box(address)) };
    function()
}

kernel_test! {
    /// Statics, the stack and the heap cannot be executed.
    async fn data_is_not_executable() -> Outcome {
        refused(|| call(RETURN.as_ptr() as usize)).await?;
        refused(|| {
            let on_stack = black_box([RETURN.load(Ordering::Relaxed); 4]);
            call(on_stack.as_ptr() as usize)
        })
        .await?;
        refused(|| {
            let on_heap = black_box(alloc::vec![RETURN.load(Ordering::Relaxed); 4]);
            call(on_heap.as_ptr() as usize)
        })
        .await
    }
}

kernel_test! {
    /// Nor can constants, although they are read-only.
    async fn constants_are_not_executable() -> Outcome {
        static INSTRUCTION: u32 = 0xd65f_03c0;
        refused(|| call(&raw const INSTRUCTION as usize)).await
    }
}

kernel_test! {
    /// The first page is not mapped, so a null pointer with an offset faults too.
    async fn the_first_page_is_not_mapped() -> Outcome {
        for offset in [0_usize, 8, 4088] {
            refused(move || {
                // SAFETY: deliberately not: the read is to be refused.
                unsafe { (black_box(offset) as *const u64).read_volatile() }
            })
            .await?;
        }
        Ok(())
    }
}
