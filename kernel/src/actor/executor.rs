//! Executors: a table of mailboxes, a worker on each of some cores, and the actors bound to them.
//!
//! Several may exist at once. An executor that is dropped without being stopped runs on for ever.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::batch::Batch;
use super::config::{Config, StartError};
use super::handle::ExecutorHandle;
use super::live::Live;
use super::mail::{Mailbox, Segment, Table, directory, table};
use super::shared::Shared;
use super::worker::Worker;
use super::{resident, shutdown};
use crate::arch::{CoreId, barrier};
use crate::{machine, mem};

/// An executor that runs. Its actors live until they end or it is stopped.
pub struct Executor {
    handle: ExecutorHandle,
}

impl Executor {
    /// Starts an executor.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left behind.
    pub fn start(config: &Config) -> Result<Self, StartError> {
        let (workers, movable) = config.check()?;
        let taken = take_mailboxes(movable + workers)?;
        let shared = match make_shared(config, &taken, workers, movable) {
            Some(shared) => shared,
            None => {
                taken.into_iter().for_each(directory::give);
                return Err(StartError::OutOfMemory);
            }
        };
        if let Err(error) = start_workers(&shared, config, workers) {
            shared.mailboxes.iter().copied().for_each(directory::give);
            return Err(error);
        }
        for slot in 0..shared.table.slots() {
            let place = shared.table.place_of(slot);
            // The last of each worker's.
            let pinned = usize::from(place.offset) + 1 == shared.table.range_of(place.worker.into()).slots;
            // SAFETY: mailboxes are never freed, and nobody swaps before the first message.
            let mailbox = unsafe { &*shared.table.at(slot) };
            // SAFETY: every executor's mailboxes are opened here, for its shared state, which ends after all that work for it.
            unsafe { mailbox.open(Arc::as_ptr(&shared).cast(), place, pinned, config.bound) };
        }
        Ok(Self { handle: ExecutorHandle::new(shared) })
    }

    /// The right to spawn on it.
    pub fn handle(&self) -> &ExecutorHandle {
        &self.handle
    }

    /// Waits until no actor lives. Actors created from outside while this waits count as they come; call it
    /// when the first have been spawned.
    pub async fn all_ended(&self) {
        self.handle.shared().live.none().await;
    }

    /// Stops it: no message is accepted or delivered any more, behaviours that run end, what was not
    /// delivered is dropped, and so is every actor. Returns how many messages were dropped.
    pub async fn stop(self) -> u64 {
        let shared = self.handle.shared();
        shared.request_stop();
        for mailbox in &shared.mailboxes {
            mailbox.close();
        }
        // Pairs with the barrier in `Worker::wait`: a worker that waits later sees the request.
        barrier::full();
        for worker in shared.workers() {
            worker.wake();
        }
        shared.all_ended().await;
        // SAFETY: all workers and behaviours have ended and all mailboxes are closed.
        unsafe { shutdown::clear(self.handle.shared_arc()) }.await
    }
}

fn take_mailboxes(count: usize) -> Result<Vec<&'static Mailbox>, StartError> {
    let mut taken: Vec<&'static Mailbox> = Vec::new();
    taken.try_reserve_exact(count).map_err(|_| StartError::OutOfMemory)?;
    for _ in 0..count {
        match directory::take() {
            Ok(mailbox) => taken.push(mailbox),
            Err(error) => {
                taken.into_iter().for_each(directory::give);
                return Err(error.into());
            }
        }
    }
    Ok(taken)
}

/// The table begins with each worker's part of the movable mailboxes, followed by its pinned one.
fn make_shared(
    config: &Config,
    taken: &[&'static Mailbox],
    workers: usize,
    movable: usize,
) -> Option<Arc<Shared>> {
    let mut order: Vec<&'static Mailbox> = Vec::new();
    order.try_reserve_exact(taken.len()).ok()?;
    for worker in 0..workers {
        let range = table::range(movable, workers, worker);
        order.extend(&taken[range.first..range.first + range.slots]);
        order.push(taken[movable + worker]);
    }
    let table = Table::new(order.into_iter(), workers)?;
    let mut mailboxes = Vec::new();
    mailboxes.try_reserve_exact(taken.len()).ok()?;
    mailboxes.extend_from_slice(taken);
    Some(Arc::new(Shared::new(config, table, mailboxes, workers, Live::new(machine::cores())?)))
}

/// Makes the workers and starts them; they wait until they are woken.
fn start_workers(shared: &Arc<Shared>, config: &Config, workers: usize) -> Result<(), StartError> {
    let mut list = Vec::new();
    list.try_reserve_exact(workers).map_err(|_| StartError::OutOfMemory)?;
    for core in (0..workers).filter_map(CoreId::new) {
        list.push(make_worker(shared, core).ok_or(StartError::OutOfMemory)?);
    }
    let Ok(list) = mem::try_box(list) else { return Err(StartError::OutOfMemory) };
    for (started, worker) in list.iter().enumerate() {
        match resident::start(worker.clone(), config.priority) {
            // SAFETY: the list of workers is not set yet, so nobody can find this one.
            Ok(process) => unsafe { worker.set_process(process) },
            Err(error) => {
                // Those that were started see the request in their first turn.
                shared.request_stop();
                for worker in &list[..started] {
                    worker.wake();
                    // SAFETY: nobody else knows the worker, and its wake-up is on its way.
                    unsafe { worker.drop_process() };
                }
                return Err(error.into());
            }
        }
    }
    shared.set_workers(list);
    Ok(())
}

fn make_worker(shared: &Arc<Shared>, core: CoreId) -> Option<Arc<Worker>> {
    let spare = Segment::new(shared.segment_bytes)?;
    let Some(batch) = Batch::new() else {
        // SAFETY: just made, and empty.
        unsafe { Segment::free(spare) };
        return None;
    };
    Some(Arc::new(Worker::new(shared.clone(), core, batch, spare)))
}
