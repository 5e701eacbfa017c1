//! Killing: the end of a process from outside. What becomes of a future that is dropped in time, and of code that is not to go on, is in
//! `run/core_loop.rs` and `run/crash.rs`; that the word of a process keeps it is in `process/run_state.rs`.

use crate::arch::atomic::{AtomicU32, Ordering};
use crate::sched::process::ProcessRef;
use crate::sched::run::ending;
use crate::sync::PreemptGuard;

/// How many kills there are that only a resident, or a piece of one's work, knows of.
static PENDING: AtomicU32 = AtomicU32::new(0);

/// One more: interrupts ask what they find running for an executor whether it is to end. Until [`end_pending`].
pub(crate) fn begin_pending() {
    // Relaxed, here and below: interrupts look again and again, and what was killed is known elsewhere.
    PENDING.fetch_add(1, Ordering::Relaxed);
}

/// One fewer.
pub(crate) fn end_pending() {
    PENDING.fetch_sub(1, Ordering::Relaxed);
}

/// Whether there is one.
pub(crate) fn is_any_pending() -> bool {
    PENDING.load(Ordering::Relaxed) != 0
}

impl ProcessRef {
    /// Ends the process from outside. Returns at once; whoever joins or watches it is told of the end.
    ///
    /// - One that waits, or has its next turn to come, drops what it owns, in a turn of its own. Destructors that take longer than a slice
    ///   are ended like the code of the next line.
    /// - One that runs or is suspended in its turn ends as in a crash, and is on record as one: at the interrupt that ends the slice,
    ///   at the end of the kernel's section if that is in one, or when it would be resumed. Its destructors do not run, its process mailboxes are closed, a mutex
    ///   that it holds is poisoned. On host threads, which interrupt nobody, its turn ends by itself first.
    /// - One that has ended has ended.
    ///
    /// So it takes a slice, and the time until it would have had its turn. Where more urgent work goes on for ever, a core looks for what was killed
    /// between two turns of that: so it takes two slices for each four of its priority that wait at its core, and what it drops then
    /// has 50 µs at least.
    /// The worker of an executor cannot be killed, nor what carries out the stop of one, and this does nothing: in a behaviour
    /// [`current_process`](crate::sched::current_process) is such a worker. A behaviour that is suspended can be, and its actor ends.
    ///
    /// ```
    /// # use magpie::sched;
    /// use magpie::sched::JoinError;
    ///
    /// # sched::run_on_threads(2, 1, async {
    /// let endless = sched::spawn(async { loop { sched::yield_now().await } })?;
    /// endless.process().kill();
    /// assert_eq!(endless.await, Err(JoinError::Killed));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn kill(&self) {
        if self.vtable().cancel.is_some() {
            // Whoever is killed in between has killed nobody.
            let _whole = PreemptGuard::new();
            ending::kill(self);
        }
    }
}
