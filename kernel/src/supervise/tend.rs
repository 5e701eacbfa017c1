//! Actors as children: each has a process that tends it, which the supervisor knows as the child. It makes the actor, waits for its
//! end, ends as it did, and passes on what it is asked.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;

use super::control::Wish;
use super::shutdown::Shutdown;
use crate::actor::{Actor, Addr, Bound, ExecutorHandle, KillRoom, Limits, NotSpawned, stop};
use crate::channel::ProcessMailbox;
use crate::watch::{Ended, Exit};
use crate::{sched, time};

/// An actor has failed, or could not be started.
pub(super) struct Failed;

/// Memory for the kill of an actor, taken before there is one: a child is never left over for want of memory.
struct Reserved(Option<KillRoom>);

impl Reserved {
    fn new() -> Result<Self, Failed> {
        Ok(Self(Some(KillRoom::new().ok_or(Failed)?)))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(room) = self.0.take() {
            room.free();
        }
    }
}

/// Kills the actor when it is dropped and has not ended.
struct Tended<A: Actor> {
    actor: Addr<A>,
    room: Reserved,
}

impl<A: Actor> Tended<A> {
    /// Asks it to end. Whether that was heard.
    fn ask(&self) -> bool {
        !self.actor.is_alive() || self.actor.send(stop::End).is_ok()
    }

    fn kill(&mut self) {
        if let Some(room) = self.room.0.take() {
            self.actor.kill_in(room);
        }
    }
}

impl<A: Actor> Drop for Tended<A> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How long a mailbox that is full, or memory that is used up, is given before it is asked again.
const PAUSE: Duration = Duration::from_millis(1);

/// So often it is looked for a mailbox that is free.
const LOOKS: usize = 100;

/// What an actor is held to.
#[derive(Clone, Copy)]
pub(super) enum HeldTo {
    Nothing,
    Bound(Bound),
    Limits(Limits),
}

/// Spawns it, when there is a mailbox for it.
async fn spawn<A: Actor>(
    executor: &ExecutorHandle,
    actor: A,
    held_to: HeldTo,
) -> Result<Addr<A>, NotSpawned<A>> {
    let mut waiting = actor;
    for _ in 0..LOOKS {
        let spawned = match held_to {
            HeldTo::Nothing => return executor.spawn(waiting),
            HeldTo::Bound(bound) => executor.spawn_bounded(waiting, bound),
            HeldTo::Limits(limits) => executor.spawn_limited(waiting, limits),
        };
        match spawned {
            Err(NotSpawned::NoMailbox(actor)) => waiting = actor,
            other => return other,
        }
        time::sleep(PAUSE).await;
    }
    Err(NotSpawned::NoMailbox(waiting))
}

/// Starts an actor, and ends as it does, not before. From where it begins to tend, it runs nothing of the application's that could keep it from
/// hearing that it is to kill the actor.
pub(super) async fn tend<A: Actor>(
    executor: ExecutorHandle,
    actor: A,
    held_to: HeldTo,
    mut shutdown: Shutdown,
) -> Result<(), Failed> {
    shutdown.control().note_actor(None);
    let mut ends = ProcessMailbox::<Ended>::new(1).map_err(|_| Failed)?;
    let room = Reserved::new()?;
    if !shutdown.begin_tending() {
        return Err(Failed);
    }
    let actor = match spawn(&executor, actor, held_to).await {
        Ok(actor) => actor,
        Err(refused) => {
            if shutdown.end_tending()
                && let Some(own) = sched::current_process()
            {
                own.kill();
            }
            // Its state's destructor runs here, and may take as long as it likes, or until this process is killed.
            drop(refused);
            return Err(Failed);
        }
    };
    let mut tended = Tended { actor, room };
    shutdown.control().note_actor(Some(actor.actor_id().number()));
    actor.watch(&ends.address()).map_err(|_| Failed)?;
    let exit = wait(&mut tended, &mut ends, &mut shutdown).await?;
    // Of one that had ended before it was watched nobody knows how.
    if exit.is_failure() || exit == Exit::Gone { Err(Failed) } else { Ok(()) }
}

/// Does with the actor what is wanted of it, until it has ended, and says how.
async fn wait<A: Actor>(
    tended: &mut Tended<A>,
    ends: &mut ProcessMailbox<Ended>,
    shutdown: &mut Shutdown,
) -> Result<Exit, Failed> {
    let (mut known, mut is_told) = (Wish::Life, true);
    loop {
        let next = {
            let (mut end, mut more) = (ends.receive(), shutdown.more_than(known));
            let mut pause = (!is_told).then(|| time::sleep(PAUSE));
            poll_fn(|context| {
                // A watch counts as an address until it has told, so it does tell.
                if let Poll::Ready(ended) = Pin::new(&mut end).poll(context) {
                    return Poll::Ready(Some(ended.map(|ended| ended.exit()).ok_or(Failed)));
                }
                let is_over = |pause: &mut time::Sleep| Pin::new(pause).poll(context).is_ready();
                if pause.as_mut().is_some_and(is_over) {
                    return Poll::Ready(None);
                }
                Pin::new(&mut more).poll(context).map(|()| None)
            })
            .await
        };
        if let Some(exit) = next {
            return exit;
        }
        let wish = shutdown.wish();
        if wish == Wish::Kill {
            tended.kill();
            is_told = true;
        } else if wish > known || !is_told {
            is_told = tended.ask();
        }
        known = wish;
    }
}
