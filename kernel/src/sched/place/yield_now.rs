//! Giving up the rest of a turn.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::sched::place::waker;

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
#[inline]
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

/// The future of [`yield_now`].
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        waker::wake_again(context.waker());
        Poll::Pending
    }
}
