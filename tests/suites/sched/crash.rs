//! A process that panics or faults ends alone.

use core::hint::black_box;

use magpie::sched::{self, JoinError};
use magpie_tests::{ensure, ensure_eq, kernel_test};

kernel_test! {
    /// A panic ends the process; whoever joins it is told, and everyone else goes on.
    #[machine("isolation")]
    async fn a_panic_ends_its_process_alone() -> Outcome {
        for _ in 0..20 {
            let Ok(handle) = sched::spawn(async {
                if black_box(true) {
                    panic!("on purpose");
                }
            }) else {
                return Err("the process was not started".into());
            };
            ensure_eq!(handle.await, Err(JoinError::Crashed), "what the handle says");
        }
        let Ok(after) = sched::spawn(async { 7 }) else { return Err("the process was not started".into()) };
        ensure_eq!(after.await, Ok(7), "a process started afterwards");
        Ok(())
    }
}

kernel_test! {
    /// So does a bad access.
    #[machine("isolation")]
    async fn a_bad_access_ends_its_process_alone() -> Outcome {
        let Ok(handle) = sched::spawn(async {
            let nowhere = black_box(8usize) as *const u64;
            // SAFETY: deliberately not: nothing is mapped there, and the process is to be ended for it.
            unsafe { nowhere.read_volatile() }
        }) else {
            return Err("the process was not started".into());
        };
        ensure_eq!(handle.await, Err(JoinError::Crashed), "what the handle says");
        Ok(())
    }
}

/// Uses up any stack.
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if black_box(depth) == u64::MAX { 0 } else { descend(depth + 1) + frame[(depth % 64) as usize] }
}

kernel_test! {
    /// So does running into the guard page of the stack.
    #[machine("isolation")]
    async fn a_stack_overflow_ends_its_process_alone() -> Outcome {
        for _ in 0..3 {
            let Ok(handle) = sched::spawn(async { descend(black_box(0)) }) else {
                return Err("the process was not started".into());
            };
            ensure_eq!(handle.await, Err(JoinError::Crashed), "what the handle says");
        }
        ensure!(sched::live_processes() > 0, "this test is a process");
        Ok(())
    }
}
