//! Waiting for one of two futures.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

/// Which of the two comes first: what the first one comes to, or as an error what the second one does.
pub async fn first<A: Future, B: Future>(a: A, b: B) -> Result<A::Output, B::Output> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|context| match a.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => b.as_mut().poll(context).map(Err),
    })
    .await
}
