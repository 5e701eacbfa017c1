//! The end of an executor: undelivered messages and actors are dropped, each exactly once, and its
//! mailboxes go back to the directory.
//!
//! Who asks for it closes everything; the rest is done by a process that was made with the executor. So a stop goes on whoever waits for it.
//!
//! Dropping is the application's code, so it is done by another process, which may crash: what that was dropping is lost, and
//! another one goes on with the rest. Wherever it stops, each message and each actor is either where it was or is known
//! to be in the hands of the process.

use core::mem::replace;
use core::time::Duration;

use super::at_work::tell_of_end;
use super::clearing::Clearing;
use super::executor_state::ExecutorState;
use super::stopping::Stopping;
use crate::actor::mail::{directory, oldest};
use crate::actor::storage::cell::{self, Chunk, all_chunks};
use crate::actor::storage::{Life, meter, pool, static_cell};
use crate::arch::barrier;
use crate::mem::{Counted, OutOfMemory, Payer};
use crate::sched::{self, JoinError, JoinHandle, Prepared, Priority, Shield};
use crate::sync::PreemptGuard;
use crate::time;
use crate::watch::Exit;

/// How long a stop waits at least before it looks again whether what is dropped comes on, or whether there is memory.
const AGAIN: Duration = Duration::from_millis(1);

/// As long as this is there, interrupts ask what runs for an executor whether it is to end.
struct Killing;

impl Killing {
    fn begin(executor: &ExecutorState) -> Self {
        executor.kill_all();
        sched::begin_pending_kill();
        sched::note_kill();
        Self
    }
}

impl Drop for Killing {
    fn drop(&mut self) {
        sched::end_pending_kill();
    }
}

/// What carries out the stop of an executor. Its memory is there from the executor's start, and nobody can kill it: so a stop that has begun
/// comes to its end, whatever becomes of whoever asked for it, and of the memory.
pub(crate) struct Ender {
    process: Prepared<()>,
    /// How urgent it is unless somebody asks for it who says otherwise: as the workers.
    priority: Priority,
}

impl Ender {
    /// That of this executor.
    pub(super) fn new(executor: &Counted<ExecutorState>, priority: Priority) -> Result<Self, OutOfMemory> {
        // One that crashes is followed by another, for which there may be no memory.
        let droppers = [Some(dropper(executor)?), Some(dropper(executor)?)];
        let process = Prepared::new(carry_out(executor.clone(), droppers), false)?;
        Ok(Self { process, priority })
    }
}

/// What drops what is left.
fn dropper(executor: &Counted<ExecutorState>) -> Result<Prepared<()>, OutOfMemory> {
    let executor = executor.clone();
    // SAFETY: started in `clear` only, one at a time.
    Prepared::new(async move { unsafe { drop_all(&executor) } }, true)
}

/// Begins the stop of an executor, if nobody has: nothing is accepted or delivered any more, behaviours that run end, or are killed after so
/// long, and what is left is dropped; what takes longer than that to be dropped is killed, too.
pub(crate) fn stop(executor: Counted<ExecutorState>, limit: Duration) -> Stopping {
    // All of it or nothing: who is killed in the middle ends behind it.
    let _shield = Shield::new();
    // Whoever has the ender closes, and before it is started.
    let ender = executor.ender.lock().take();
    if let Some(ender) = ender {
        close(&executor);
        executor.clearing.set_limit(limit);
        let priority = sched::current_process().map_or(Priority::Normal, |process| process.priority());
        drop(ender.process.start(priority, Payer::NOBODY));
    }
    Stopping::new(executor)
}

/// The owner has ended. From anywhere, with preemption disabled or not, but under no lock of the scheduler's.
pub(super) fn stop_ownerless(executor: &ExecutorState) {
    let ender = executor.ender.lock().take();
    if let Some(Ender { process, priority }) = ender {
        drop(process.start(priority, Payer::NOBODY));
    }
}

/// Nothing is accepted or delivered any more.
fn close(executor: &ExecutorState) {
    sched::begin_stop();
    executor.request_stop();
    for mailbox in &executor.mailboxes {
        mailbox.close();
    }
    // Pairs with the barrier in `Worker::wait`: a worker that waits later sees the request.
    barrier::full();
    for worker in executor.workers() {
        worker.end_soon();
    }
    sched::note_kill();
}

/// The rest of a stop.
async fn carry_out(executor: Counted<ExecutorState>, droppers: [Option<Prepared<()>>; 2]) {
    if !executor.is_stopping() {
        close(&executor);
    }
    let owner = executor.owner.lock().take();
    if let Some(watch) = owner {
        watch.cancel();
    }
    if time::background_timeout(executor.clearing.limit(), executor.all_ended()).await.is_err() {
        let killing = Killing::begin(&executor);
        executor.all_ended().await;
        drop(killing);
    }
    sched::end_stop();
    // SAFETY: all workers and behaviours have ended and all mailboxes are closed; once, for an executor has one ender.
    unsafe { clear(&executor, droppers) }.await;
    executor.clearing.all_done();
}

/// Drops everything. What does not come on within the limit is killed.
///
/// # Safety
/// All workers and suspended behaviours have ended, and all mailboxes are closed. Called once.
async unsafe fn clear(executor: &Counted<ExecutorState>, mut droppers: [Option<Prepared<()>>; 2]) {
    for worker in executor.workers() {
        // SAFETY: by contract.
        unsafe { worker.give_batch_back() };
    }
    let priority = sched::current_process().map_or(Priority::Normal, |process| process.priority());
    loop {
        let dropping = match droppers.iter_mut().find_map(Option::take) {
            Some(dropping) => dropping,
            None => another(executor).await,
        };
        if ended(dropping.start(priority, executor.payer), &executor.clearing).await {
            break;
        }
        executor.clearing.crashed();
    }
    // SAFETY: by contract.
    for worker in unsafe { executor.take_workers() } {
        // SAFETY: the worker has ended, and with the mailboxes closed nobody wakes it.
        unsafe { worker.drop_process() };
    }
    executor.mailboxes.iter().copied().for_each(directory::give);
}

/// One more that drops what is left. The memory of the last is most likely there for it.
async fn another(executor: &Counted<ExecutorState>) -> Prepared<()> {
    loop {
        match dropper(executor) {
            Ok(dropping) => return dropping,
            Err(OutOfMemory) => time::sleep(AGAIN).await,
        }
    }
}

/// Waits for the end of a process that drops what is left. Whether it has come to its own end. Killed if it is in the same drop after so long;
/// what is the kernel's between two comes to its end.
async fn ended(mut dropping: JoinHandle<()>, clearing: &Clearing) -> bool {
    let limit = clearing.limit().max(AGAIN);
    let mut before = None;
    loop {
        if let Ok(joined) = time::background_timeout(limit, &mut dropping).await {
            return joined.is_ok();
        }
        let now = clearing.dropping();
        if now.is_some() && replace(&mut before, now) == now && !dropping.process().is_done() {
            dropping.process().kill();
            let joined = dropping.await;
            if joined == Err(JoinError::Killed) {
                clearing.note_killed();
            }
            return joined.is_ok();
        }
    }
}

/// Drops messages and actors, as far as that was not done.
///
/// # Safety
/// As [`clear`], after the workers have given back what they had in hand; one process at a time.
unsafe fn drop_all(executor: &ExecutorState) {
    let (clearing, mut room) = (&executor.clearing, oldest::Room::new());
    for mailbox in &executor.mailboxes {
        while let Some(mut message) = oldest::take(mailbox, &mut room) {
            if message.is_message() {
                clearing.count_dropped();
            }
            let (cell, word) = message.target();
            clearing.begin(cell, word);
            message.drop_message();
            clearing.end_step();
        }
        mailbox.tidy();
    }
    drop_actors(executor);
}

/// Drops the actors of this executor, wherever their cells are.
fn drop_actors(executor: &ExecutorState) {
    let mut left = executor.live.count();
    let cells = all_chunks().flat_map(Chunk::cells).chain(static_cell::all());
    for cell in cells {
        // There may be many cells, and few of them this executor's.
        if left == 0 && !executor.has_kept() {
            return;
        }
        // The acquire in it pairs with whoever left the state there.
        let word = cell.word();
        let (has_state, is_kept) = match word.life() {
            Some(Life::Attached | Life::Detached) => (true, false),
            Some(Life::Retired) => (true, word.is_static()),
            Some(Life::Vacant) => (false, word.is_static()),
            // One that is being started, taken or dropped is given back by whoever does that.
            Some(Life::Free | Life::Starting | Life::Ending) | None => continue,
        };
        // What is left in the user's own storage is the user's.
        if is_kept || !directory::get(word.mailbox()).is_open_for(executor.as_runner()) {
            continue;
        }
        // Not as one that is ending: it is told of at once, so nothing that is kept until its end (`run/kill.rs`) may be added any more.
        let claimed = word.starting();
        // A process that is killed is not killed between the two.
        let here = PreemptGuard::new();
        if !cell.claim(word, claimed) {
            continue;
        }
        if word.is_alive() {
            // Before its state is dropped, because the process may end there.
            executor.live.ended(1, &here);
            left -= 1;
            // So is this.
            tell_of_end(cell, word, Exit::Stopped);
        }
        meter::give(word.meter());
        let kind = cell::kind(cell, word);
        executor.clearing.begin(cell, word);
        drop(here);
        if word.is_alive() {
            // SAFETY: as below; the hook is told the word under which the actor was known.
            unsafe { (kind.stopped)(cell, word.attached()) };
        }
        if let Some(drop_state) = kind.drop_state.filter(|_| has_state) {
            // SAFETY: no worker is left that could run the actor, and nobody else can claim the cell.
            unsafe { drop_state(cell) };
        }
        executor.clearing.end_step();
        pool::give(cell, word, &PreemptGuard::new());
    }
}
