//! References to processes: counted, and the last one frees it.

use core::ptr::NonNull;

use super::Header;

/// A counted reference to a process, which need not live any more. It can be asked what [`Header`] can.
///
/// ```
/// # use magpie::sched;
/// use core::future::poll_fn;
/// use core::sync::atomic::{AtomicBool, Ordering};
/// use core::task::Poll;
///
/// static IS_READY: AtomicBool = AtomicBool::new(false);
/// # sched::run_on_threads(2, 1, async {
/// let waiting = sched::spawn(poll_fn(|_| {
///     if IS_READY.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
/// }))?;
/// let process = waiting.process().clone();
/// assert!(sched::current_process().is_some_and(|own| own.id() != process.id()));
/// IS_READY.store(true, Ordering::Release);
/// process.wake();
/// waiting.await?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
pub struct ProcessRef(NonNull<Header>);

// SAFETY: a header's fields are atomics or never change; the body is only touched by the core that runs
// it, and freed by whoever drops the last reference, which the bodies' `Send` bound allows.
unsafe impl Send for ProcessRef {}
// SAFETY: as above; everything a shared reference offers is atomic.
unsafe impl Sync for ProcessRef {}

impl ProcessRef {
    /// Takes over one reference that was counted already.
    ///
    /// # Safety
    /// `header` is a live process and the caller gives up one of its references.
    pub(crate) unsafe fn from_counted(header: NonNull<Header>) -> Self {
        Self(header)
    }

    /// Counts another reference to a live process.
    ///
    /// # Safety
    /// `header` is kept alive by somebody during the call.
    pub(crate) unsafe fn count(header: NonNull<Header>) -> Self {
        // SAFETY: the caller promised that the header is alive.
        unsafe { header.as_ref() }.references.add();
        Self(header)
    }

    /// Gives up the reference without uncounting it.
    pub(crate) fn into_counted(self) -> NonNull<Header> {
        let header = self.0;
        core::mem::forget(self);
        header
    }

    pub(crate) fn pointer(&self) -> NonNull<Header> {
        self.0
    }

    /// A number that no other living process has.
    #[inline(always)]
    pub fn id(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

impl core::ops::Deref for ProcessRef {
    type Target = Header;

    #[inline(always)]
    fn deref(&self) -> &Header {
        // SAFETY: the reference keeps the header alive.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for ProcessRef {
    fn clone(&self) -> Self {
        // SAFETY: `self` keeps it alive.
        unsafe { Self::count(self.0) }
    }
}

impl Drop for ProcessRef {
    fn drop(&mut self) {
        if self.references.release() {
            // SAFETY: the last reference is gone, so nobody else can reach the process.
            unsafe { (self.vtable.free)(self.0) }
        }
    }
}
