//! What a supervisor shares with a child: how that is asked to end. It is kept through all lives of the child, so that no crash leaves
//! another behind.

use core::future::{Future, poll_fn};
use core::task::{Poll, Waker};

use crate::message::Shared;
use crate::sync::{SpinLock, keep_waker};
use crate::watch::Watch;

/// What a supervisor and its child share.
pub(super) struct Control {
    inside: SpinLock<Inside>,
}

struct Inside {
    /// The last life that was asked to end, or has.
    asked: u64,
    /// Of whoever waits for that. One that has crashed leaves it here for the next.
    waker: Option<Waker>,
    /// What ends the child with its supervisor.
    link: Option<Watch>,
}

impl Control {
    pub(super) fn new() -> Self {
        Self { inside: SpinLock::new(Inside { asked: 0, waker: None, link: None }) }
    }

    /// Asks this life, and those before it, to end.
    pub(super) fn ask(&self, life: u64) {
        let mut inside = self.inside.lock();
        inside.asked = inside.asked.max(life);
        let waker = inside.waker.take();
        drop(inside);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_asked(&self, life: u64) -> bool {
        self.inside.lock().asked >= life
    }

    /// Says by what the child, which has begun to run, is linked to its supervisor.
    pub(super) fn note_link(&self, link: Option<Watch>) {
        self.inside.lock().link = link;
    }

    /// The child has ended: its link is given up.
    pub(super) fn unlink(&self) {
        let link = self.inside.lock().link.take();
        if let Some(link) = link {
            link.cancel();
        }
    }

    /// Leaves a waker, unless that life is asked to end already.
    fn leave(&self, life: u64, waker: Waker) -> bool {
        let mut inside = self.inside.lock();
        if inside.asked >= life {
            return false;
        }
        let previous = inside.waker.replace(waker);
        drop(inside);
        // After the lock: it may free a process.
        drop(previous);
        true
    }
}

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
        self.control.is_asked(self.life)
    }

    /// Waits until it is to end.
    pub fn requested(&mut self) -> impl Future<Output = ()> + Send + Unpin + use<'_> {
        poll_fn(|context| {
            if self.is_requested() {
                return Poll::Ready(());
            }
            match keep_waker(context.waker()).map(|waker| self.control.leave(self.life, waker)) {
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
