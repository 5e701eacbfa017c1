//! Damage to the scheduler's own state is noticed, and the message names the core, the queue and the process.

use magpie::internals::sched::damage;
use magpie_tests::{expect_panic, kernel_test};

kernel_test! {
    /// A process that is in a queue and should not be.
    #[machine("a panic of the kernel")]
    async fn a_corrupted_queue_stops_the_kernel() -> Outcome {
        // Whoever finds it: its core, or a thief.
        expect_panic("queue Normal, and it is not runnable");
        // SAFETY: the end of the kernel is what is expected.
        unsafe { damage::queue_current() };
        // Nothing wakes it, so it is taken from the queue without being runnable.
        core::future::pending::<()>().await;
        Err("the kernel went on".into())
    }
}

kernel_test! {
    /// A process that is moved while it runs.
    #[machine("a panic of the kernel")]
    async fn a_running_process_is_not_moved() -> Outcome {
        expect_panic("'s queue Normal, and it is not runnable");
        // SAFETY: the end of the kernel is what is expected.
        unsafe { damage::migrate_current() };
        Err("the kernel went on".into())
    }
}
