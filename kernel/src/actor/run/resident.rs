//! A worker as the scheduler sees it.

use alloc::boxed::Box;

use super::start::Urgency;
use super::worker::Worker;
use super::{crash, detach};
use crate::mem::{Counted, Payer};
use crate::sched::{self, AtWork, Detached, EndOfPiece, ProcessRef, Resident, SpawnError, Step};
use crate::sync::PreemptGuard;
use crate::watch::Exit;

impl Resident for Worker {
    fn step(&self) -> Step {
        self.turn()
    }

    fn detach(&self) -> Option<Box<dyn Detached>> {
        detach::detach(self)
    }

    fn note_slice_end(&self) -> bool {
        Worker::note_slice_end(self)
    }

    fn has_waiting_for_end(&self, most: usize) -> Option<bool> {
        Worker::has_waiting_for_end(self, most)
    }

    fn end_turn(&self) -> bool {
        Worker::end_turn(self)
    }

    fn crashed(&self, exit: Exit) {
        crash::crashed(self, exit);
    }

    fn is_to_end(&self, asked: EndOfPiece) -> bool {
        Worker::is_to_end(self, asked)
    }

    fn at_work(&self) -> Option<AtWork> {
        Worker::at_work(self)
    }

    fn is_ending(&self) -> bool {
        self.executor.is_stopping()
    }

    fn backlog(&self) -> u32 {
        Worker::backlog(self)
    }

    fn has_waiting(&self, now: u64) -> bool {
        Worker::has_waiting(self, now)
    }

    fn give_back(&self) -> bool {
        Worker::give_back(self)
    }

    fn let_go(&self) {
        Worker::let_go(self);
    }

    fn has_surplus(&self, now: u64) -> bool {
        let here = PreemptGuard::new();
        Worker::has_surplus(self, now, || sched::is_wanted_urgently(&here))
    }
}

/// Starts a worker on its core; it waits until it is woken.
pub(super) fn start(
    worker: Counted<Worker>,
    (priority, deadline): Urgency,
    payer: Payer,
) -> Result<ProcessRef, SpawnError> {
    let core = worker.core();
    // SAFETY: it is returned as it is.
    let worker: Counted<dyn Resident> = unsafe { worker.unsized_by::<dyn Resident>(|place| place) };
    sched::spawn_resident(worker, core, priority, deadline, payer)
}
