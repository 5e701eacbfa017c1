//! The start of an executor: its mailboxes are taken from the directory, its workers made and started, the mailboxes
//! opened.

use alloc::vec::Vec;
use core::ptr;
use core::time::Duration;

use super::batch::Batch;
use super::executor_state::{ExecutorState, Rules};
use super::live::Live;
use super::own_mailboxes::OwnMailboxes;
use super::shutdown::{self, Ender};
use super::worker::Worker;
use super::{owner, resident};
use crate::actor::mail::directory::{self, TakeError};
use crate::actor::mail::{Bound, Mailbox, Segment, Table, table};
use crate::arch::CoreId;
use crate::machine;
use crate::mem::{self, Counted, OutOfMemory, Payer};
use crate::sched::{Priority, Shield, SpawnError};
use crate::sync::PaidBy;

/// Why an executor was not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// There are not as many mailboxes.
    Mailbox(TakeError),
    /// The scheduler takes no worker.
    Worker(SpawnError),
    /// No memory for it.
    OutOfMemory,
    /// Whoever starts it was killed meanwhile.
    Ending,
}

/// The workers' priority, and how soon each should have done what woke it.
pub(super) type Urgency = (Priority, Option<Duration>);

/// How large an executor is.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub workers: usize,
    /// Mailboxes that may be stolen and are for any number of actors.
    pub movable: usize,
    /// Mailboxes for one actor each; they may be stolen, too.
    pub own: usize,
}

/// Starts an executor. `payer` pays for its workers and for what its actors allocate; nobody for what serves all. With an owner it is stopped
/// within that time when the caller has ended. When it cannot, nothing is left behind.
pub(crate) fn start(
    rules: Rules,
    size: Size,
    bound: Bound,
    urgency: Urgency,
    payer: Payer,
    owner: Option<Duration>,
) -> Result<Counted<ExecutorState>, Refused> {
    let _nobody = PaidBy::nobody();
    // All of it or nothing: who is killed in the middle ends behind it, and so does one whose stack runs out.
    let shield = Shield::new();
    let Size { workers, movable, own } = size;
    let taken = take_mailboxes(movable + workers + own)?;
    let executor = match make_state(rules, &taken, size, payer) {
        Some(executor) => executor,
        None => {
            taken.into_iter().for_each(directory::give);
            return Err(Refused::OutOfMemory);
        }
    };
    let started =
        Ender::new(&executor, urgency.0).map_err(|OutOfMemory| Refused::OutOfMemory).and_then(|ender| {
            start_workers(&executor, urgency, payer, workers)?;
            Ok(ender)
        });
    let ender = match started {
        Ok(ender) => ender,
        Err(error) => {
            executor.mailboxes.iter().copied().for_each(directory::give);
            return Err(error);
        }
    };
    for slot in 0..executor.table.slots() {
        let place = executor.table.place_of(slot);
        // The last of each worker's.
        let pinned = usize::from(place.offset) + 1 == executor.table.range_of(place.worker.into()).slots;
        // SAFETY: mailboxes are never freed, and nobody swaps before the first message.
        let mailbox = unsafe { &*executor.table.at(slot) };
        let is_own = executor.mailboxes[movable + workers..].iter().any(|own| ptr::eq(*own, mailbox));
        let bound = if is_own { Bound::NONE.of_one() } else { bound };
        // One for when it is taken in hand the first time; made later if there is no memory now.
        if !is_own
            && let Some(spare) = Segment::new(executor.segment_bytes)
            && !mailbox.hand.keep_spare(spare)
        {
            // SAFETY: just made, and empty.
            unsafe { Segment::free(spare) };
        }
        // SAFETY: every executor's mailboxes are opened here, for its state, which ends after all that work for it.
        unsafe {
            let (runner, core) = (
                executor.pointer().as_ptr().cast_const().cast(),
                executor.workers()[place.worker as usize].core(),
            );
            let is_fixed = pinned || workers == 1;
            mailbox.open(runner, place, core, (pinned, is_fixed), urgency.0.is_urgent(), bound);
        }
    }
    *executor.ender.lock() = Some(ender);
    let owned = owner.map_or(Ok(None), |limit| {
        executor.clearing.set_limit(limit);
        owner::end_with_caller(&executor)
    });
    match owned {
        _ if shield.ends_its_owner() => {
            // Nobody would get it.
            drop(shutdown::stop(executor, Duration::ZERO));
            Err(Refused::Ending)
        }
        Ok(watch) => {
            *executor.owner.lock() = watch;
            Ok(executor)
        }
        Err(OutOfMemory) => {
            drop(shutdown::stop(executor, Duration::ZERO));
            Err(Refused::OutOfMemory)
        }
    }
}

fn take_mailboxes(count: usize) -> Result<Vec<&'static Mailbox>, Refused> {
    let mut taken: Vec<&'static Mailbox> = Vec::new();
    taken.try_reserve_exact(count).map_err(|_| Refused::OutOfMemory)?;
    for _ in 0..count {
        match directory::take() {
            Ok(mailbox) => taken.push(mailbox),
            Err(error) => {
                taken.into_iter().for_each(directory::give);
                return Err(Refused::Mailbox(error));
            }
        }
    }
    Ok(taken)
}

/// The table begins with each worker's part of the movable mailboxes, followed by some of those for one actor each, so that the parts are
/// as long as the table says, and by its pinned one.
fn make_state(
    rules: Rules,
    taken: &[&'static Mailbox],
    size: Size,
    payer: Payer,
) -> Option<Counted<ExecutorState>> {
    let Size { workers, movable, own } = size;
    let mut for_one = movable + workers;
    let mut order: Vec<&'static Mailbox> = Vec::new();
    order.try_reserve_exact(taken.len()).ok()?;
    for worker in 0..workers {
        let range = table::range(movable, workers, worker);
        order.extend(&taken[range.first..range.first + range.slots]);
        let more = table::range(movable + own, workers, worker).slots - range.slots;
        order.extend(&taken[for_one..for_one + more]);
        for_one += more;
        order.push(taken[movable + worker]);
    }
    let table = Table::new(order.into_iter(), workers)?;
    let mut mailboxes = Vec::new();
    mailboxes.try_reserve_exact(taken.len()).ok()?;
    mailboxes.extend_from_slice(taken);
    let own = OwnMailboxes::new(&taken[movable + workers..])?;
    let live = Live::new(machine::cores())?;
    Counted::new(ExecutorState::new(rules, table, mailboxes, own, workers, live, payer)).ok()
}

/// Makes the workers and starts them; they wait until they are woken.
fn start_workers(
    executor: &Counted<ExecutorState>,
    urgency: Urgency,
    payer: Payer,
    workers: usize,
) -> Result<(), Refused> {
    let mut list = Vec::new();
    list.try_reserve_exact(workers).map_err(|_| Refused::OutOfMemory)?;
    for core in (0..workers).filter_map(CoreId::new) {
        list.push(make_worker(executor, core).ok_or(Refused::OutOfMemory)?);
    }
    let Ok(list) = mem::try_box(list) else { return Err(Refused::OutOfMemory) };
    for (started, worker) in list.iter().enumerate() {
        match resident::start(worker.clone(), urgency, payer) {
            // SAFETY: the list of workers is not set yet, so nobody can find this one.
            Ok(process) => unsafe { worker.set_process(process) },
            Err(error) => {
                // Those that were started see the request in their first turn.
                executor.request_stop();
                for worker in &list[..started] {
                    worker.wake();
                    // SAFETY: nobody else knows the worker, and its wake-up is on its way.
                    unsafe { worker.drop_process() };
                }
                return Err(Refused::Worker(error));
            }
        }
    }
    executor.set_workers(list);
    Ok(())
}

fn make_worker(executor: &Counted<ExecutorState>, core: CoreId) -> Option<Counted<Worker>> {
    let spare = Segment::new(executor.segment_bytes)?;
    let Some(batch) = Batch::new() else {
        // SAFETY: just made, and empty.
        unsafe { Segment::free(spare) };
        return None;
    };
    // Without memory the worker is dropped, and what was made for it.
    Counted::new(Worker::new(executor.clone(), core, batch, spare)).ok()
}
