//! Giving up the rest of a turn.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// Lets every process that waits at this priority run before the caller goes on.
///
/// ```
/// # use magpie::{sched, time};
/// # sched::run_on_threads(2, 1, async {
/// for _ in 0..3 {
///     sched::yield_now().await;
/// }
/// # }).unwrap();
/// ```
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

/// The future of [`yield_now`].
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        // The process is running, so this only notifies it: `Pending` then puts it at the back.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
