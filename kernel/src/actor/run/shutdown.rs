//! The end of an executor: undelivered messages and actors are dropped, each exactly once, and its
//! mailboxes go back to the directory.
//!
//! Dropping is the application's code, so it is done by a process that may crash: what that was dropping is lost, and
//! another one goes on with the rest. Wherever it stops, each message and each actor is either where it was or is known
//! to be in the hands of the process.

use core::mem::replace;
use core::time::Duration;

use super::at_work::tell_of_end;
use super::clearing::Clearing;
use super::executor_state::ExecutorState;
use crate::actor::mail::{directory, oldest};
use crate::actor::storage::cell::{self, Chunk, all_chunks};
use crate::actor::storage::{Life, pool, static_cell};
use crate::arch::barrier;
use crate::mem::Counted;
use crate::sched::{self, JoinError, JoinHandle, Priority, Spawn};
use crate::sync::PreemptGuard;
use crate::time;
use crate::watch::Exit;

/// What became of an executor that was stopped.
///
/// ```
/// use magpie::actor::Stopped;
/// fn say(stopped: Stopped) -> String {
///     format!("{} messages dropped, {} behaviours killed", stopped.undelivered(), stopped.killed())
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped {
    undelivered: u64,
    killed: u64,
}

impl Stopped {
    /// How many messages were not delivered, and dropped.
    pub const fn undelivered(&self) -> u64 {
        self.undelivered
    }

    /// How many behaviours and destructors did not end in time, and were killed.
    pub const fn killed(&self) -> u64 {
        self.killed
    }
}

/// As long as this is there, interrupts ask what runs for an executor whether it is to end.
struct Killing;

impl Killing {
    fn begin(executor: &ExecutorState) -> Self {
        executor.kill_all();
        sched::begin_pending_kill();
        Self
    }
}

impl Drop for Killing {
    fn drop(&mut self) {
        sched::end_pending_kill();
    }
}

/// Stops an executor: nothing is accepted or delivered any more, behaviours that run end, or are killed after so long, and what is
/// left is dropped; what takes longer than that to be dropped is killed, too.
///
/// # Safety
/// Called once for an executor.
pub(crate) async unsafe fn stop(executor: Counted<ExecutorState>, limit: Duration) -> Stopped {
    executor.request_stop();
    for mailbox in &executor.mailboxes {
        mailbox.close();
    }
    // Pairs with the barrier in `Worker::wait`: a worker that waits later sees the request.
    barrier::full();
    for worker in executor.workers() {
        worker.end_soon();
    }
    if time::background_timeout(limit, executor.all_ended()).await.is_err() {
        let killing = Killing::begin(&executor);
        executor.all_ended().await;
        drop(killing);
    }
    // SAFETY: all workers and behaviours have ended and all mailboxes are closed; once, by contract.
    unsafe { clear(executor, limit) }.await
}

/// Drops everything. What takes longer than `limit` to be dropped is killed.
///
/// # Safety
/// All workers and suspended behaviours have ended, and all mailboxes are closed. Called once.
async unsafe fn clear(executor: Counted<ExecutorState>, limit: Duration) -> Stopped {
    for worker in executor.workers() {
        // SAFETY: by contract.
        unsafe { worker.give_batch_back() };
    }
    let priority = sched::current_process().map_or(Priority::Normal, |process| process.priority());
    loop {
        let in_process = executor.clone();
        // SAFETY: by contract, and one at a time.
        let dropping = async move { unsafe { drop_all(&in_process) } };
        let Ok(dropping) = Spawn::new().priority(priority).start(dropping) else {
            // There is no other process: then in this one.
            // SAFETY: as above.
            unsafe { drop_all(&executor) };
            break;
        };
        if ended(dropping, &executor.clearing, limit).await {
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
    Stopped {
        undelivered: executor.clearing.dropped(),
        killed: executor.killed() + executor.clearing.killed(),
    }
}

/// Waits for the end of a process that drops what is left. Whether it has come to its own end. Killed if it has come no further for
/// so long.
async fn ended(mut dropping: JoinHandle<()>, clearing: &Clearing, limit: Duration) -> bool {
    let mut steps = clearing.steps();
    loop {
        if let Ok(joined) = time::background_timeout(limit, &mut dropping).await {
            return joined.is_ok();
        }
        let before = replace(&mut steps, clearing.steps());
        if before == steps && !dropping.process().is_done() {
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
        pool::give(cell, word, &PreemptGuard::new());
    }
}
