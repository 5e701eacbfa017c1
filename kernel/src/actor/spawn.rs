//! Bringing actors to life: from a state to a cell that is attached to a mailbox.
//!
//! The last step is taken under the mailbox's lock, and only if the mailbox is open for the very executor. So
//! an executor that stops, having closed its mailboxes, finds every actor that is its own.

use core::fmt;

use super::address::Addr;
use super::behaviour::Actor;
use super::limits::Limits;
use super::mail::envelope::{self, Inline};
use super::mail::{Bound, Mailbox};
use super::run::ExecutorState;
use super::send;
use super::storage::meter::{self, NoMeter};
use super::storage::{CellRef, Life, Word, cell, pool};
use super::target::{self, Beginning};
use crate::arch::percpu;
use crate::mem::{OutOfMemory, Payer};
use crate::stats;
use crate::sync::{PaidBy, PreemptGuard};

/// Why an actor was not spawned; its state comes back.
///
/// ```
/// use magpie::actor::{Actor, Addr, ExecutorHandle, NotSpawned};
/// struct Keeper(Vec<u8>);
/// impl Actor for Keeper {}
/// /// Starts a keeper, on another executor if the first has stopped.
/// fn keep(first: &ExecutorHandle, other: &ExecutorHandle, what: Vec<u8>) -> Result<Addr<Keeper>, NotSpawned<()>> {
///     match first.spawn(Keeper(what)) {
///         Err(NotSpawned::Stopped(keeper)) => other.spawn(keeper).map_err(|error| error.without_actor()),
///         tried => tried.map_err(|error| error.without_actor()),
///     }
/// }
/// assert_eq!(NotSpawned::OutOfMemory(Keeper(vec![1])).into_actor().0, [1]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotSpawned<A> {
    /// No memory for it.
    OutOfMemory(A),
    /// The executor has stopped, or is stopping.
    Stopped(A),
    /// The executor has no worker on that core.
    NoSuchWorker(A),
    /// Something is in the storage: an actor that lives, or is still being cleared away, or the state of one that has retired.
    NotFree(A),
    /// The storage is not that actor's any more: it was freed at its end, which a crash does too, or a successor has it, or what was left in it
    /// was taken. Spawn an actor anew: what was freed is used again.
    GivenBack(A),
    /// All mailboxes for one actor each are in use, or what waited for the last actor of each has yet to be dropped: see
    /// [`Config::own_mailboxes`](super::Config::own_mailboxes).
    NoMailbox(A),
    /// The other actor has its mailbox alone.
    Alone(A),
    /// As many as can be told apart, 4095, have [limits of their own](super::Limits).
    NoMeter(A),
    /// Its memory limit has no room for it, or was dropped.
    OverLimit(A),
    /// As many actors have lived in the storage as can be told apart, which is more than 4000 million: use another.
    UsedUp(A),
}

impl<A> NotSpawned<A> {
    /// The state.
    pub fn into_actor(self) -> A {
        match self {
            Self::OutOfMemory(actor)
            | Self::Stopped(actor)
            | Self::NoSuchWorker(actor)
            | Self::NotFree(actor)
            | Self::GivenBack(actor)
            | Self::NoMailbox(actor)
            | Self::Alone(actor)
            | Self::NoMeter(actor)
            | Self::OverLimit(actor)
            | Self::UsedUp(actor) => actor,
        }
    }

    /// The same error without the state, to be kept or passed on whatever that was.
    pub const fn without_actor(&self) -> NotSpawned<()> {
        match self {
            Self::OutOfMemory(_) => NotSpawned::OutOfMemory(()),
            Self::Stopped(_) => NotSpawned::Stopped(()),
            Self::NoSuchWorker(_) => NotSpawned::NoSuchWorker(()),
            Self::NotFree(_) => NotSpawned::NotFree(()),
            Self::GivenBack(_) => NotSpawned::GivenBack(()),
            Self::NoMailbox(_) => NotSpawned::NoMailbox(()),
            Self::Alone(_) => NotSpawned::Alone(()),
            Self::NoMeter(_) => NotSpawned::NoMeter(()),
            Self::OverLimit(_) => NotSpawned::OverLimit(()),
            Self::UsedUp(_) => NotSpawned::UsedUp(()),
        }
    }
}

impl<A> fmt::Debug for NotSpawned<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<A> fmt::Display for NotSpawned<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfMemory(_) => "out of memory: the actor was not spawned",
            Self::Stopped(_) => "the executor has stopped: the actor was not spawned",
            Self::NoSuchWorker(_) => "the executor has no worker on that core",
            Self::NotFree(_) => "the storage is not free: an actor lives in it, or has left its state there",
            Self::GivenBack(_) => "the storage is not that actor's any more: spawn one anew",
            Self::NoMailbox(_) => {
                "the executor has no mailbox left for one actor: raise Config::own_mailboxes"
            }
            Self::Alone(_) => "the other actor has its mailbox alone",
            Self::NoMeter(_) => "too many actors have limits of their own: give them to an executor",
            Self::OverLimit(_) => "the memory limit has no room for the actor, or was dropped",
            Self::UsedUp(_) => "too many actors have lived in the storage: use another",
        })
    }
}

impl<A> core::error::Error for NotSpawned<A> {}

/// Why an actor was not attached.
pub(super) enum NotAttached {
    /// The executor has stopped.
    Stopped,
    /// There is no memory for what begins it.
    OutOfMemory,
}

impl NotAttached {
    /// The error, with the state.
    pub(super) fn with<A>(self, actor: A) -> NotSpawned<A> {
        match self {
            Self::Stopped => NotSpawned::Stopped(actor),
            Self::OutOfMemory => NotSpawned::OutOfMemory(actor),
        }
    }
}

/// Attaches what is in a claimed cell of kind `A` to a mailbox. What the actor does when it starts goes into the mailbox in the
/// same hold of the lock, so nothing that is sent to it comes before that. It has the meter with that number, or none with 0. The guard goes
/// into the lock's.
#[inline(always)]
pub(super) fn attach<A: Actor>(
    executor: &ExecutorState,
    mailbox: &Mailbox,
    cell: CellRef,
    claimed: Word,
    meter: u16,
    here: PreemptGuard,
) -> Result<Word, NotAttached> {
    let mut inside = mailbox.inside.lock_here(here);
    let beginning = loop {
        if inside.closed || !mailbox.is_open_for(executor.as_runner()) {
            return Err(NotAttached::Stopped);
        }
        if A::started().is_none() {
            break None;
        }
        // Whatever the mailbox's bound: an actor begins, or is not spawned.
        let bytes = const { envelope::size_of_envelope::<Beginning>() };
        if let Some(place) = inside.queue.reserve(bytes) {
            break Some(place);
        }
        let capacity = inside.queue.next_capacity_bytes(bytes);
        drop(inside);
        if !send::grow(mailbox, bytes, capacity) {
            return Err(NotAttached::OutOfMemory);
        }
        inside = mailbox.inside.lock();
    };
    // Before the actor can end: the counts must not show an end without its beginning.
    let core = percpu::core_number();
    executor.live.created(core, inside.preempt());
    stats::worker_by_number(core).actors_created.bump();
    let word = claimed.spawned(mailbox.index());
    cell.set_word(word.with_meter(meter));
    if let Some(place) = beginning {
        if meter != 0 {
            inside.queue.note_unchecked();
        }
        // SAFETY: the queue reserved that many bytes, aligned. The message is not boxed, and has no bytes.
        unsafe { envelope::write(place, target::beginning::<A>(cell, word), &Inline(Beginning)) };
        send::count(mailbox, inside, (cell, word));
    }
    Ok(word)
}

/// Spawns an actor into a cell of its own.
#[inline(always)]
pub(super) fn spawn<A: Actor>(
    executor: &ExecutorState,
    mailbox: &Mailbox,
    actor: A,
) -> Result<Addr<A>, NotSpawned<A>> {
    spawn_with(executor, mailbox, 0, actor)
}

/// As [`spawn`], with the meter that has this number.
#[inline(always)]
fn spawn_with<A: Actor>(
    executor: &ExecutorState,
    mailbox: &Mailbox,
    meter: u16,
    actor: A,
) -> Result<Addr<A>, NotSpawned<A>> {
    let here = PreemptGuard::new();
    let kind = const { cell::kind_of::<A>() };
    let Some(cell) = pool::take(kind, &here) else { return Err(NotSpawned::OutOfMemory(actor)) };
    // SAFETY: the cell is free, of this kind, and ours.
    if let Err((OutOfMemory, actor)) = unsafe { cell::fill(cell, actor) } {
        pool::put_back(cell, kind, &here);
        return Err(NotSpawned::OutOfMemory(actor));
    }
    let free = cell.word_relaxed();
    match attach::<A>(executor, mailbox, cell, free, meter, here) {
        Ok(word) => Ok(Addr::new(cell, word)),
        Err(why) => {
            // SAFETY: filled above, and nobody else knows the cell.
            let actor = unsafe { cell::take_state(cell) };
            pool::put_back(cell, kind, &PreemptGuard::new());
            Err(why.with(actor))
        }
    }
}

/// Spawns an actor into a mailbox that is its alone.
pub(super) fn spawn_bounded<A: Actor>(
    executor: &ExecutorState,
    bound: Bound,
    actor: A,
) -> Result<Addr<A>, NotSpawned<A>> {
    let Some((found, _here)) = executor.own.find(bound) else { return Err(NotSpawned::NoMailbox(actor)) };
    let spawned = spawn(executor, found.mailbox, actor);
    executor.own.let_to(found, spawned.as_ref().ok().map(|address| address.cell()));
    spawned
}

/// Spawns an actor with a meter, and with what it is held to.
pub(super) fn spawn_limited<A: Actor>(
    executor: &ExecutorState,
    Limits { bound, payer }: Limits,
    actor: A,
) -> Result<Addr<A>, NotSpawned<A>> {
    let payer = payer.unwrap_or(Payer::NOBODY);
    let Some(bound) = bound else {
        return spawn_metered(executor, executor.next_mailbox(), payer, actor, &PreemptGuard::new());
    };
    let Some((found, here)) = executor.own.find(bound) else { return Err(NotSpawned::NoMailbox(actor)) };
    let spawned = spawn_metered(executor, found.mailbox, payer, actor, &here);
    executor.own.let_to(found, spawned.as_ref().ok().map(|address| address.cell()));
    spawned
}

/// As [`spawn`], with a meter that `payer` pays for.
fn spawn_metered<A: Actor>(
    executor: &ExecutorState,
    mailbox: &Mailbox,
    payer: Payer,
    actor: A,
    here: &PreemptGuard,
) -> Result<Addr<A>, NotSpawned<A>> {
    let meter = match meter::take(payer, here) {
        Ok(meter) => meter,
        Err(NoMeter::TooMany) => return Err(NotSpawned::NoMeter(actor)),
        Err(NoMeter::OutOfMemory) => return Err(NotSpawned::OutOfMemory(actor)),
        Err(NoMeter::OverLimit) => return Err(NotSpawned::OverLimit(actor)),
    };
    // Its state, if that is large.
    let _paid = (payer != Payer::NOBODY).then(|| PaidBy::account(payer.number().into()));
    let spawned = spawn_with(executor, mailbox, meter.number(), actor);
    // The meter is the actor's, if that was spawned. It may have ended again by now, and have given it back.
    if spawned.is_ok() {
        meter.into_number();
    }
    spawned
}

/// Spawns an actor into the mailbox of another, which has not got it alone.
pub(super) fn spawn_beside<A: Actor>(
    executor: &ExecutorState,
    mailbox: &Mailbox,
    actor: A,
) -> Result<Addr<A>, NotSpawned<A>> {
    if mailbox.bound().is_of_one() {
        return Err(NotSpawned::Alone(actor));
    }
    spawn(executor, mailbox, actor)
}

/// Spawns an actor into the storage of one that ended with [`Context::vacate`](super::Context::vacate), or ended anyhow in storage of the
/// user's own.
pub(super) fn respawn<A: Actor>(
    executor: &ExecutorState,
    mailbox: &Mailbox,
    old: Addr<A>,
    actor: A,
) -> Result<Addr<A>, NotSpawned<A>> {
    let here = PreemptGuard::new();
    let (cell, word) = (old.cell(), old.word());
    let left = cell.word();
    if left.is_same_actor(word) || left == word.ending() || left == word.after_end(Life::Retired) {
        return Err(NotSpawned::NotFree(actor));
    }
    // A cell of a chunk that is free is in a list of such.
    let is_its =
        left == word.after_end(Life::Vacant) || (word.is_static() && left == word.after_end(Life::Free));
    if is_its && left.is_used_up() {
        return Err(NotSpawned::UsedUp(actor));
    }
    let claimed = left.starting();
    if !is_its || !cell.claim(left, claimed) {
        return Err(NotSpawned::GivenBack(actor));
    }
    // SAFETY: the cell is of kind `A`, because an address of that type leads here; without a state since its
    // actor ended, and ours since we claimed it.
    if let Err((OutOfMemory, actor)) = unsafe { cell::fill(cell, actor) } {
        cell.set_word(left);
        return Err(NotSpawned::OutOfMemory(actor));
    }
    match attach::<A>(executor, mailbox, cell, claimed, 0, here) {
        Ok(word) => Ok(Addr::new(cell, word)),
        Err(why) => {
            // SAFETY: filled above; the cell is claimed, so it is ours.
            let actor = unsafe { cell::take_state(cell) };
            match why {
                NotAttached::Stopped if !word.is_static() => {
                    pool::give(cell, claimed, &PreemptGuard::new());
                }
                NotAttached::Stopped | NotAttached::OutOfMemory => cell.set_word(left),
            }
            Err(why.with(actor))
        }
    }
}

impl<A: Actor> Addr<A> {
    /// Takes the state of an actor that has ended with [`Context::retire`](super::Context::retire), once.
    pub fn take(self) -> Option<A> {
        let here = PreemptGuard::new();
        let retired = self.word().after_end(Life::Retired);
        let claimed = retired.starting();
        let cell = self.cell();
        if !cell.claim(retired, claimed) {
            return None;
        }
        // SAFETY: the cell is of kind `A` and holds the state of a retired actor, and is ours.
        let actor = unsafe { cell::take_state(cell) };
        pool::give(cell, claimed, &here);
        Some(actor)
    }
}
