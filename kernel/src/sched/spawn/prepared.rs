//! Processes that are made beforehand and started later: that needs no memory then, and cannot fail.

use core::future::Future;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use crate::arch::CoreId;
use crate::mem::{OutOfMemory, Payer};
use crate::sched::cores::{here, population};
use crate::sched::place::enqueue;
use crate::sched::process::{Header, Priority, ProcessRef, Runnable};
use crate::sched::spawn::task::{self, JoinHandle, Sort};
use crate::sync::PreemptGuard;

/// A process that may be started. Dropped before, it drops its future.
pub(crate) struct Prepared<T> {
    /// With the scheduler's reference.
    process: NonNull<Header>,
    handle: JoinHandle<T>,
}

// SAFETY: as for `ProcessRef`; until it is started nobody else knows the process.
unsafe impl<T> Send for Prepared<T> {}
// SAFETY: as above; a shared reference offers nothing.
unsafe impl<T> Sync for Prepared<T> {}

impl<T: Send + 'static> Prepared<T> {
    /// One that may run anywhere, in no share; joined, it can be killed, otherwise nobody can do that.
    pub(crate) fn new<F>(future: F, is_joined: bool) -> Result<Self, OutOfMemory>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let sort = if is_joined { Sort::Joined } else { Sort::Lasting };
        let made =
            task::create::<F, F>(future, sort, Priority::Normal, (None, None), u64::MAX, Some(Payer::NOBODY));
        let (process, reference) = made.map_err(|_| OutOfMemory)?;
        // SAFETY: just made, of a future with this result; its only handle. One that is not joined tells nobody.
        Ok(Self { process, handle: unsafe { JoinHandle::of(reference) } })
    }

    /// Starts it; what it allocates `payer` pays for. It counts as a process from now on, however many there may be. From anywhere, with
    /// preemption disabled or not, but under no lock of the scheduler's.
    pub(crate) fn start(self, priority: Priority, payer: Payer) -> JoinHandle<T> {
        let this = ManuallyDrop::new(self);
        // SAFETY: not dropped, and not used again.
        let (mut process, handle) = (this.process, unsafe { core::ptr::read(&raw const this.handle) });
        // SAFETY: nobody else has looked at the process yet: not even its handle.
        let header = unsafe { process.as_mut() };
        header.prepare(priority, payer.number(), here::current_core().unwrap_or(CoreId::BOOT));
        // Until it is queued.
        let guard = PreemptGuard::new();
        population::count_detached(u64::MAX, &guard);
        if header.run_state().notify() {
            // SAFETY: made with the scheduler's reference; `notify` has marked it as queued, and this is the only call.
            enqueue::woken(unsafe { Runnable::new(process) }, &guard);
        }
        drop(guard);
        handle
    }
}

impl<T> Drop for Prepared<T> {
    fn drop(&mut self) {
        // SAFETY: it was not started, so nobody else gives up the scheduler's reference.
        drop(unsafe { ProcessRef::from_counted(self.process) });
    }
}
