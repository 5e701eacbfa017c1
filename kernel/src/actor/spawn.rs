//! Bringing actors to life: from a state to a cell that is attached to a mailbox.
//!
//! The last step is taken under the mailbox's lock, and only if the mailbox is open for the very executor. So
//! an executor that stops, having closed its mailboxes, finds every actor that is its own.

use core::fmt;
use core::ptr::NonNull;

use super::address::Addr;
use super::behaviour::Actor;
use super::mail::Mailbox;
use super::run::ExecutorState;
use super::storage::{CellHeader, Life, Word, cell, pool};
use crate::mem::OutOfMemory;
use crate::stats;
use crate::sync::PreemptGuard;

/// Why an actor was not spawned; its state comes back.
pub enum SpawnError<A> {
    /// No memory for it.
    OutOfMemory(A),
    /// The executor has stopped, or is stopping.
    Stopped(A),
    /// The executor has no worker with that number.
    NoSuchWorker(A),
    /// The storage is not free for a successor: its actor lives, or its storage was freed (as a crash does) or taken.
    NotFree(A),
    /// As many actors have lived in the storage as can be told apart, which is more than 4000 million: use another.
    UsedUp(A),
}

impl<A> SpawnError<A> {
    /// The state.
    pub fn into_actor(self) -> A {
        match self {
            Self::OutOfMemory(actor)
            | Self::Stopped(actor)
            | Self::NoSuchWorker(actor)
            | Self::NotFree(actor)
            | Self::UsedUp(actor) => actor,
        }
    }
}

impl<A> fmt::Debug for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<A> fmt::Display for SpawnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfMemory(_) => "out of memory: the actor was not spawned",
            Self::Stopped(_) => "the executor has stopped: the actor was not spawned",
            Self::NoSuchWorker(_) => "the executor has no worker with that number",
            Self::NotFree(_) => "the storage is not free: its actor lives, or it was given back",
            Self::UsedUp(_) => "too many actors have lived in the storage: use another",
        })
    }
}

impl<A> core::error::Error for SpawnError<A> {}

/// Attaches what is in a claimed cell to a mailbox; `None` if the executor has stopped.
#[inline(always)]
pub(super) fn attach(
    executor: &ExecutorState,
    mailbox: &Mailbox,
    cell: NonNull<CellHeader>,
    claimed: Word,
    here: &PreemptGuard,
) -> Option<Word> {
    let inside = mailbox.inside.lock();
    if inside.closed || !mailbox.is_open_for(executor.as_runner()) {
        return None;
    }
    // Before the actor can end: the counts must not show an end without its beginning.
    executor.live.created(here);
    let word = claimed.spawned(mailbox.index());
    // SAFETY: cells are never unmapped.
    unsafe { cell.as_ref() }.set_word(word);
    drop(inside);
    stats::worker_here().actors_created.bump();
    Some(word)
}

/// Spawns an actor into a cell of its own.
#[inline(always)]
pub(super) fn spawn<A: Actor>(
    executor: &ExecutorState,
    mailbox: &Mailbox,
    actor: A,
) -> Result<Addr<A>, SpawnError<A>> {
    let here = PreemptGuard::new();
    let kind = const { cell::kind_of::<A>() };
    let Some(cell) = pool::take(kind, &here) else { return Err(SpawnError::OutOfMemory(actor)) };
    // SAFETY: the cell is free, of this kind, and ours.
    if let Err((OutOfMemory, actor)) = unsafe { cell::fill(cell, actor) } {
        pool::put_back(cell, kind, &here);
        return Err(SpawnError::OutOfMemory(actor));
    }
    // SAFETY: cells are never unmapped.
    let free = unsafe { cell.as_ref() }.word_relaxed();
    match attach(executor, mailbox, cell, free, &here) {
        Some(word) => Ok(Addr::new(cell, word)),
        None => {
            // SAFETY: filled above, and nobody else knows the cell.
            let actor = unsafe { cell::take_state(cell) };
            pool::put_back(cell, kind, &here);
            Err(SpawnError::Stopped(actor))
        }
    }
}

/// Spawns an actor into the storage of one that ended with [`Context::vacate`](super::Context::vacate).
pub(super) fn respawn<A: Actor>(
    executor: &ExecutorState,
    mailbox: &Mailbox,
    old: Addr<A>,
    actor: A,
) -> Result<Addr<A>, SpawnError<A>> {
    let here = PreemptGuard::new();
    let (cell, word) = (old.cell(), old.word());
    let vacant = word.after_end(Life::Vacant);
    let claimed = vacant.starting();
    // SAFETY: cells are never unmapped.
    let header = unsafe { cell.as_ref() };
    if vacant.is_used_up() && header.word() == vacant {
        return Err(SpawnError::UsedUp(actor));
    }
    if !header.claim(vacant, claimed) {
        return Err(SpawnError::NotFree(actor));
    }
    // SAFETY: the cell is of kind `A`, because an address of that type leads here; without a state since it was
    // vacated, and ours since we claimed it.
    if let Err((OutOfMemory, actor)) = unsafe { cell::fill(cell, actor) } {
        header.set_word(vacant);
        return Err(SpawnError::OutOfMemory(actor));
    }
    match attach(executor, mailbox, cell, claimed, &here) {
        Some(word) => Ok(Addr::new(cell, word)),
        None => {
            // SAFETY: filled above; the cell is claimed, so it is ours.
            let actor = unsafe { cell::take_state(cell) };
            pool::give(cell, claimed, &here);
            Err(SpawnError::Stopped(actor))
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
        // SAFETY: cells are never unmapped.
        if !unsafe { cell.as_ref() }.claim(retired, claimed) {
            return None;
        }
        // SAFETY: the cell is of kind `A` and holds the state of a retired actor, and is ours.
        let actor = unsafe { cell::take_state(cell) };
        pool::give(cell, claimed, &here);
        Some(actor)
    }
}
