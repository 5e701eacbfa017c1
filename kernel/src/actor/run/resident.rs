//! A worker as the scheduler sees it.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::worker::Worker;
use super::{crash, detach};
use crate::sched::{self, AtWork, Detached, Priority, ProcessRef, Resident, SpawnError, Step};

impl Resident for Worker {
    fn step(&self) -> Step {
        self.turn()
    }

    fn detach(&self) -> Option<Box<dyn Detached>> {
        detach::detach(self)
    }

    fn crashed(&self) {
        crash::crashed(self);
    }

    fn at_work(&self) -> Option<AtWork> {
        Worker::at_work(self)
    }

    fn backlog(&self) -> u32 {
        Worker::backlog(self)
    }

    fn has_waiting(&self, now: u64) -> bool {
        Worker::has_waiting(self, now)
    }

    fn let_go(&self) {
        Worker::let_go(self);
    }

    fn has_surplus(&self, now: u64) -> bool {
        Worker::has_surplus(self, now)
    }
}

/// Starts a worker on its core; it waits until it is woken.
pub(super) fn start(worker: Arc<Worker>, priority: Priority) -> Result<ProcessRef, SpawnError> {
    let core = worker.core();
    sched::spawn_resident(worker, core, priority)
}
