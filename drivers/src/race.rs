//! Waiting for the first of two.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

/// Which of the two was ready.
pub(crate) enum First<A, B> {
    One(A),
    Other(B),
}

/// What is ready first; the other is dropped, and may be waited for again. Both are asked whenever one wakes, so neither waits behind one that is always
/// ready: the one that was named first goes first.
pub(crate) async fn race<A: Future, B: Future>(one: A, other: B) -> First<A::Output, B::Output> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| {
        if let Poll::Ready(ready) = one.as_mut().poll(context) {
            return Poll::Ready(First::One(ready));
        }
        other.as_mut().poll(context).map(First::Other)
    })
    .await
}
