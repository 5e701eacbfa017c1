//! An executor's state: what its workers, its handles and its actors share, and how a worker is told of mail.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::ptr;

use super::clearing::Clearing;
use super::live::Live;
use super::mailbox_victim::MailboxVictim;
use super::own_mailboxes::OwnMailboxes;
use super::shutdown::Ender;
use super::worker::Worker;
use super::worker::lane::leave_lane;
use crate::actor::mail::Segment;
use crate::actor::mail::mailbox::{Inside, Runner};
use crate::actor::mail::{Gulp, Mailbox, Place, Table, table};
use crate::actor::storage::{CellRef, Word};
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::mem::{Counted, Payer};
use crate::sched;
use crate::sync::{PreemptGuard, SpinLock, Waiters};
use crate::watch::{Exit, Watch};
use core::ptr::NonNull;

/// The workers may be given turns already, because anybody may wake a resident, but must not look at each other yet.
const STARTING: u8 = 0;
const OPEN: u8 = 1;
const STOPPING: u8 = 2;
/// It was asked to stop, and has had its time for that: behaviours that still run are killed.
const KILLING: u8 = 3;

/// How the workers of an executor work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Bytes of a worker's buffer before it has grown.
    pub segment_bytes: usize,
    /// How thieves choose their victims.
    pub victim_rule: MailboxVictim,
    /// Workers that may search for a victim at once.
    pub thieves: u32,
    /// Messages that a worker handles in one turn.
    pub reductions: u64,
}

/// An executor, as its parts know it: what its workers, its handles and its actors share.
pub(crate) struct ExecutorState {
    pub table: Table,
    /// The mailboxes: those that may be stolen, then one for each worker that may not, then those for one actor each.
    pub mailboxes: Box<[&'static Mailbox]>,
    pub own: OwnMailboxes,
    movable: usize,
    pub worker_count: usize,
    /// The workers, from the start until all have ended.
    workers: AtomicPtr<Vec<Counted<Worker>>>,
    pub live: Live,
    /// Who pays for what its actors allocate.
    pub payer: Payer,
    /// Whether an actor has ever ended and left its storage, or its state, behind.
    kept: AtomicBool,
    pub segment_bytes: usize,
    pub victim_rule: MailboxVictim,
    thieves: u32,
    pub reductions: u64,
    next: AtomicUsize,
    searching: AtomicU32,
    /// One of the four above.
    phase: AtomicU8,
    /// Workers that have not ended, and suspended behaviours.
    running: AtomicU32,
    waiting_for_end: Waiters,
    /// Behaviours that were killed because they did not end.
    killed: AtomicU64,
    /// What carries out its stop, until that begins.
    pub(super) ender: SpinLock<Option<Ender>>,
    /// With whom it ends, if with anybody.
    pub(super) owner: SpinLock<Option<Watch>>,
    /// How far its end has come, after all have ended.
    pub(super) clearing: Clearing,
}

impl ExecutorState {
    /// With these mailboxes, not open yet.
    pub(super) fn new(
        rules: Rules,
        table: Table,
        mailboxes: Vec<&'static Mailbox>,
        own: OwnMailboxes,
        worker_count: usize,
        live: Live,
        payer: Payer,
    ) -> Self {
        Self {
            movable: mailboxes.len() - worker_count - own.count(),
            table,
            mailboxes: mailboxes.into_boxed_slice(),
            own,
            worker_count,
            workers: AtomicPtr::new(ptr::null_mut()),
            live,
            payer,
            kept: AtomicBool::new(false),
            segment_bytes: rules.segment_bytes.max(64),
            victim_rule: rules.victim_rule,
            thieves: rules.thieves,
            reductions: rules.reductions,
            next: AtomicUsize::new(0),
            searching: AtomicU32::new(0),
            phase: AtomicU8::new(STARTING),
            running: AtomicU32::new(worker_count as u32),
            waiting_for_end: Waiters::new(),
            killed: AtomicU64::new(0),
            ender: SpinLock::new(None),
            owner: SpinLock::new(None),
            clearing: Clearing::new(),
        }
    }

    /// An actor has ended and left its storage behind.
    pub(super) fn note_kept(&self) {
        // Relaxed: read after all workers have ended, which orders it.
        self.kept.store(true, Ordering::Relaxed);
    }

    /// Whether storage may be in use that an actor has left behind.
    pub(super) fn has_kept(&self) -> bool {
        // Relaxed: as above.
        self.kept.load(Ordering::Relaxed)
    }

    /// How many mailboxes may be stolen and are for any number of actors.
    #[inline(always)]
    pub(crate) fn movable(&self) -> usize {
        self.movable
    }

    /// The workers.
    ///
    /// Used by workers, and by senders under the lock of an open mailbox: the list is set before the first
    /// mailbox is opened, and taken when all are closed and all workers have ended.
    #[inline(always)]
    pub(super) fn workers(&self) -> &[Counted<Worker>] {
        // Acquire: pairs with the release in `set_workers`.
        // SAFETY: not null while those use it that may, see above.
        unsafe { (*self.workers.load(Ordering::Acquire)).as_slice() }
    }

    /// Sets the list of workers, before the first mailbox is opened.
    #[expect(clippy::box_collection, reason = "an atomic pointer must be thin")]
    pub(super) fn set_workers(&self, workers: Box<Vec<Counted<Worker>>>) {
        // Release: pairs with the acquire in `workers`.
        self.workers.store(Box::into_raw(workers), Ordering::Release);
        // Release: pairs with the acquire in `is_open`.
        self.phase.store(OPEN, Ordering::Release);
    }

    /// The workers, for the last time.
    ///
    /// # Safety
    /// All have ended, and all mailboxes are closed.
    pub(super) unsafe fn take_workers(&self) -> Vec<Counted<Worker>> {
        let workers = self.workers.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: stored from a box; by contract nobody uses it any more.
        *unsafe { Box::from_raw(workers) }
    }

    /// As its mailboxes know it.
    pub(crate) fn as_runner(&self) -> *const Runner {
        ptr::from_ref(self).cast()
    }

    /// The executor that a mailbox belongs to.
    ///
    /// # Safety
    /// The mailbox is open, and stays so, or a worker or behaviour of its executor is running.
    #[inline(always)]
    pub(crate) unsafe fn of(mailbox: &Mailbox) -> &Self {
        // SAFETY: mailboxes are opened for these only, and by contract this one exists.
        unsafe { &*mailbox.runner().cast() }
    }

    /// Mail has come for an empty mailbox, and was counted; or a worker has put it down, and there is mail. While a
    /// worker has it in hand nobody is told: that worker looks when it puts it down.
    #[inline(always)]
    pub(crate) fn notify(&self, mailbox: &Mailbox, here: &PreemptGuard) {
        // A full barrier is in here.
        let place = mailbox.owner_after_first_message();
        if mailbox.is_left_to_holder() {
            return;
        }
        let Some(worker) = self.workers().get(usize::from(place.worker)) else { return };
        if worker.is_idle() {
            self.notify_idle(mailbox, worker, place, here);
        } else {
            // It looks through its whole range before it becomes idle, after a barrier that pairs with the one above.
            worker.hint(usize::from(place.offset));
        }
    }

    /// The worker on the caller's core.
    #[inline(always)]
    pub(super) fn worker_here(&self, here: &PreemptGuard) -> Option<&Worker> {
        self.workers().get(sched::core_here(here)?.index()).map(|worker| &**worker)
    }

    /// A behaviour has written the first message, for the actor with this word in its cell: takes the mailbox in hand for the worker
    /// whose turn that is, if it is the mailbox's own, or the own is idle; or, behind a suspended behaviour, for its own on this core. Whether it did.
    #[inline(always)]
    pub(crate) fn take_in_hand(
        &self,
        mailbox: &Mailbox,
        inside: &mut Inside,
        actor: (CellRef, Word),
        here: &PreemptGuard,
    ) -> bool {
        let Some(local) = self.worker_here(here) else { return false };
        // Whoever else takes it is excluded by the mailbox's lock, so a stale place does no harm.
        let may_hold = if local.is_delivering(here) {
            local.has_room_in_hand() && self.may_hold(mailbox, local)
        } else {
            local.may_hold_for_piece(mailbox, here)
        };
        if !may_hold || !mailbox.take_in_hand(inside, actor, here) {
            return false;
        }
        local.list(mailbox, here);
        if usize::from(mailbox.place().worker) != local.index {
            local.count_guest();
        }
        true
    }

    /// Whether `local`, the worker on this core, may have a mailbox in hand: its own, or one whose worker is idle.
    #[inline(always)]
    pub(super) fn may_hold(&self, mailbox: &Mailbox, local: &Worker) -> bool {
        let owner = usize::from(mailbox.place().worker);
        owner == local.index
            || self.workers().get(owner).is_some_and(|owner| self.may_host(mailbox, owner, local))
    }

    /// Whether `local`, the worker on this core, may handle mail in place of its owner.
    fn may_host(&self, mailbox: &Mailbox, owner: &Worker, local: &Worker) -> bool {
        owner.is_idle()
            && !mailbox.is_pinned()
            && self.victim_rule != MailboxVictim::None
            && !(mailbox.pays() && local.has_other_work())
    }

    /// The owner is idle. Its mail stays on this core if a worker here will reach it soon; else the owner is woken.
    #[inline(never)]
    fn notify_idle(&self, mailbox: &Mailbox, owner: &Worker, place: Place, here: &PreemptGuard) {
        if self.is_kept_here(mailbox, owner, here) {
            return;
        }
        owner.hint(usize::from(place.offset));
        owner.wake_if_idle();
    }

    /// A mailbox has waited too long for its host: its owner is woken, and finds it in its range.
    pub(super) fn send_home(&self, mailbox: &Mailbox, host: &Worker) {
        let place = mailbox.owner_after_first_message();
        if let Some(owner) = self.workers().get(usize::from(place.worker)) {
            if owner.index != host.index {
                mailbox.hand_over();
                owner.note_robbed(host.index);
            }
            owner.hint(usize::from(place.offset));
            owner.wake_if_idle();
        }
    }

    /// Lets the worker on this core handle the mail of an idle one. Whether it will.
    #[inline(always)]
    fn is_kept_here(&self, mailbox: &Mailbox, owner: &Worker, here: &PreemptGuard) -> bool {
        if mailbox.is_pinned() || self.victim_rule == MailboxVictim::None {
            return false;
        }
        // A core with a worker is in service, because the worker could run nowhere else.
        let local = sched::core_here(here).and_then(|core| self.workers().get(core.index()));
        let Some(local) = local.filter(|local| local.index != owner.index) else { return false };
        if mailbox.pays() && local.has_other_work() {
            mailbox.hand_over();
            return false;
        }
        if !local.has_room_for_guest(here) {
            return false;
        }
        // Else it is in somebody's list already, who will look.
        if mailbox.guest.claim() {
            local.invite(mailbox, here);
            local.wake_if_idle();
        }
        true
    }

    /// The next movable mailbox, round robin.
    #[inline(always)]
    pub(crate) fn next_mailbox(&self) -> &'static Mailbox {
        // Relaxed: any fair choice will do.
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.movable();
        // SAFETY: those that are movable are among the mailboxes.
        unsafe { self.mailboxes.get_unchecked(next) }
    }

    /// The next of the movable mailboxes that began with a worker.
    pub(crate) fn next_mailbox_of(&self, worker: usize) -> Option<&'static Mailbox> {
        if worker >= self.worker_count {
            return None;
        }
        let range = table::range(self.movable(), self.worker_count, worker);
        // Relaxed: as above.
        let next = self.next.fetch_add(1, Ordering::Relaxed) % range.slots;
        Some(self.mailboxes[range.first + next])
    }

    /// The mailbox of a worker's that is never stolen.
    pub(crate) fn pinned_mailbox_of(&self, worker: usize) -> Option<&'static Mailbox> {
        self.mailboxes[self.movable()..].get(worker).copied()
    }

    /// Whether one more thief may search; if so, [`Self::end_search`] must follow.
    pub(super) fn begin_search(&self) -> bool {
        // AcqRel: a count that limits; it orders nothing else.
        if self.searching.fetch_add(1, Ordering::AcqRel) < self.thieves {
            return true;
        }
        self.end_search();
        false
    }

    pub(super) fn end_search(&self) {
        self.searching.fetch_sub(1, Ordering::AcqRel);
    }

    /// Asks the workers to end.
    pub(super) fn request_stop(&self) {
        // Release: pairs with the acquire in `is_stopping`.
        self.phase.store(STOPPING, Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn is_stopping(&self) -> bool {
        // Acquire: pairs with the release in `request_stop`.
        self.phase.load(Ordering::Acquire) >= STOPPING
    }

    /// From now on interrupts kill behaviours that still run, and those that are suspended when they would go on. The caller has them
    /// look: `sched::begin_pending_kill`.
    pub(super) fn kill_all(&self) {
        // Release: as in `request_stop`.
        self.phase.store(KILLING, Ordering::Release);
    }

    /// Whether behaviours that run are to be killed.
    pub(super) fn is_killing(&self) -> bool {
        // Relaxed: looked at by interrupts again and again.
        self.phase.load(Ordering::Relaxed) == KILLING
    }

    /// A behaviour has ended as in a crash.
    pub(super) fn note_end_of_piece(&self, exit: Exit) {
        if exit == Exit::Killed && self.is_killing() {
            // Relaxed: read when all have ended, which orders it.
            self.killed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many were killed because they did not end.
    pub(super) fn killed(&self) -> u64 {
        // Relaxed: as above.
        self.killed.load(Ordering::Relaxed)
    }

    /// Whether the workers may work: all are there, and none has been asked to end.
    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        // Acquire: pairs with the release in `set_workers`.
        self.phase.load(Ordering::Acquire) == OPEN
    }

    /// A behaviour is being suspended.
    pub(super) fn behaviour_suspended(&self) {
        // Relaxed: its worker has not ended, so the count is not zero meanwhile.
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// A worker has ended, or a behaviour that was suspended.
    pub(super) fn one_ended(&self) {
        // AcqRel: who sees zero sees everything that workers and behaviours did.
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.waiting_for_end.tell_all(|| ());
        }
    }

    /// Waits until all workers have ended, and all behaviours that were suspended.
    pub(super) async fn all_ended(&self) {
        let mut seat = self.waiting_for_end.seat();
        // Acquire: pairs with the release in `one_ended`.
        poll_fn(|context| seat.poll(context.waker(), |_told| self.running.load(Ordering::Acquire) == 0))
            .await;
    }
}

/// Gives messages back to the mailbox that they were taken from, as [`Mailbox::take_back`], and tells its worker.
///
/// # Safety
/// As for that, and a worker or behaviour of the executor is running, or its workers have ended and it is being cleared.
#[cold]
pub(super) unsafe fn give_back(mailbox: &Mailbox, chain: Gulp, messages: u32) {
    // SAFETY: by contract.
    if let Some(inside) = unsafe { mailbox.take_back(chain, messages) } {
        // SAFETY: it is open, and stays so while the lock is held.
        unsafe { ExecutorState::of(mailbox) }.notify(mailbox, inside.preempt());
    }
}

/// Puts a segment in front of all that waits in a mailbox, as [`Mailbox::put_in_front`], and tells its worker. Frees it if the mailbox
/// accepts nothing any more.
///
/// # Safety
/// As for that. What is in the segment needs not be dropped.
#[cold]
pub(crate) unsafe fn put_in_front(mailbox: &Mailbox, segment: NonNull<Segment>) {
    // SAFETY: by contract.
    match unsafe { mailbox.put_in_front(segment) } {
        Ok(None) => {}
        Ok(Some(inside)) => {
            let here = inside.preempt();
            leave_lane(mailbox, here);
            if !mailbox.hand.wake_from_rest(mailbox, here) {
                // SAFETY: it is open, and stays so while the lock is held.
                unsafe { ExecutorState::of(mailbox) }.notify(mailbox, here);
            }
        }
        // SAFETY: it came back.
        Err(segment) => unsafe { Segment::free(segment) },
    }
}
