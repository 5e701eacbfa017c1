//! Actors as children: each has a process that tends it, which the supervisor knows as the child. It makes the actor, waits for its
//! end, ends as it did, and passes on what it is asked.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;

use super::shutdown::Shutdown;
use crate::actor::{Actor, Addr, Bound, ExecutorHandle, NotSpawned, stop};
use crate::channel::ProcessMailbox;
use crate::time;
use crate::watch::Ended;

/// An actor has failed, or could not be started.
pub(super) struct Failed;

/// Kills the actor when it is dropped and has not ended: its supervisor has waited for as long as it was to.
struct Tended<A: Actor>(Addr<A>);

impl<A: Actor> Tended<A> {
    /// Asks it to end. Whether that was heard.
    fn ask(&self) -> bool {
        !self.0.is_alive() || self.0.send(stop::End).is_ok()
    }
}

impl<A: Actor> Drop for Tended<A> {
    fn drop(&mut self) {
        // Without memory for that it is asked.
        if self.0.kill().is_err() {
            self.ask();
        }
    }
}

/// How long a mailbox that is full, or memory that is used up, is given before it is asked again.
const PAUSE: Duration = Duration::from_millis(1);

/// So often it is looked for a mailbox that is free.
const LOOKS: usize = 100;

/// Spawns it, with a mailbox of its own if it has a bound.
async fn spawn<A: Actor>(
    executor: &ExecutorHandle,
    actor: A,
    bound: Option<Bound>,
) -> Result<Addr<A>, Failed> {
    let Some(bound) = bound else { return executor.spawn(actor).map_err(|_| Failed) };
    let mut waiting = actor;
    for _ in 0..LOOKS {
        match executor.spawn_bounded(waiting, bound) {
            Err(NotSpawned::NoMailbox(actor)) => waiting = actor,
            other => return other.map_err(|_| Failed),
        }
        time::sleep(PAUSE).await;
    }
    Err(Failed)
}

/// Starts an actor, and ends as it does.
pub(super) async fn tend<A: Actor>(
    executor: ExecutorHandle,
    actor: A,
    bound: Option<Bound>,
    mut shutdown: Shutdown,
) -> Result<(), Failed> {
    shutdown.control().note_actor(None);
    let mut ends = ProcessMailbox::<Ended>::new(1).map_err(|_| Failed)?;
    let actor = Tended(spawn(&executor, actor, bound).await?);
    shutdown.control().note_actor(Some(actor.0.actor_id().number()));
    actor.0.watch(&ends.address()).map_err(|_| Failed)?;
    let ended = {
        let (mut end, mut requested) = (ends.receive(), shutdown.requested());
        poll_fn(|context| match Pin::new(&mut end).poll(context) {
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => Pin::new(&mut requested).poll(context).map(|()| None),
        })
        .await
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            while !actor.ask() {
                time::sleep(PAUSE).await;
            }
            // A watch counts as an address until it has told.
            ends.receive().await.ok_or(Failed)?
        }
    };
    // Of one that had ended before it was watched nobody knows how.
    let has_failed = ended.exit().is_failure() || ended.exit() == crate::watch::Exit::Gone;
    if has_failed { Err(Failed) } else { Ok(()) }
}
