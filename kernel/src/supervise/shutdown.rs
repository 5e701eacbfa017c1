//! What a child is handed: how it learns that it is to end.

use core::future::{Future, poll_fn};
use core::task::Poll;

use super::control::{Control, Wish};
use crate::message::Shared;
use crate::sync::keep_waker;

/// What a child is handed at its start: whether its supervisor wants it to end. It is asked once in a life, and has as long as
/// [`Child::within`](super::Child::within) says; then it is killed.
///
/// ```
/// use core::time::Duration;
/// use magpie::supervise::Shutdown;
/// use magpie::time;
///
/// async fn tick(mut shutdown: Shutdown) {
///     while time::timeout(Duration::from_millis(10), shutdown.requested()).await.is_err() {
///         // What is to be done every ten milliseconds.
///     }
///     // What is to be done at the end.
/// }
///
/// async fn count(shutdown: Shutdown) {
///     while !shutdown.is_requested() {
///         magpie::sched::yield_now().await;
///     }
/// }
/// # let _ = (tick, count);
/// ```
pub struct Shutdown {
    control: Shared<Control>,
    life: u64,
}

impl Shutdown {
    pub(super) fn new(control: Shared<Control>, life: u64) -> Self {
        Self { control, life }
    }

    pub(super) fn control(&self) -> &Control {
        &self.control
    }

    /// Whether it is to end.
    pub fn is_requested(&self) -> bool {
        self.wish() > Wish::Life
    }

    pub(super) fn wish(&self) -> Wish {
        self.control.wish(self.life)
    }

    /// As [`Control::begin_tending`].
    pub(super) fn begin_tending(&self) -> bool {
        self.control.begin_tending(self.life)
    }

    /// As [`Control::end_tending`].
    pub(super) fn end_tending(&self) -> bool {
        self.control.end_tending(self.life)
    }

    /// Waits until it is to end.
    pub fn requested(&mut self) -> impl Future<Output = ()> + Send + Unpin + use<'_> {
        self.more_than(Wish::Life)
    }

    /// Waits until more is wanted than that.
    pub(super) fn more_than(&mut self, known: Wish) -> impl Future<Output = ()> + Send + Unpin + use<'_> {
        poll_fn(move |context| {
            if self.wish() > known {
                return Poll::Ready(());
            }
            match keep_waker(context.waker()).map(|waker| self.control.leave(self.life, known, waker)) {
                Some(true) => Poll::Pending,
                Some(false) => Poll::Ready(()),
                None => {
                    // Without memory it is asked again at once.
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        })
    }
}

impl core::fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Shutdown(requested: {})", self.is_requested())
    }
}
